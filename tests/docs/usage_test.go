//go:build docs

package docs

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

var (
	subcommand = regexp.MustCompile("`railtune ([a-z]+)([^`\n]*)`")
	option     = regexp.MustCompile(`(?:^|[ (])--?([a-z][a-z-]*)`)
)

// TestUsage: subcommands that pages mention in a sentence exist, and have the flags that
// stand with them.
func TestUsage(t *testing.T) {
	pages, _ := Pages(root) // TestPages has complained
	binary := testbed.MustRailtune(t)
	help := map[string]string{}
	for _, p := range pages {
		for _, m := range subcommand.FindAllStringSubmatch(p.Prose, -1) {
			name := m[1]
			if _, known := help[name]; !known {
				out, err := exec.CommandContext(t.Context(), binary, name, "--help").CombinedOutput()
				if err != nil {
					t.Errorf("%s: railtune %s: %v", p.Path, name, err)
				}
				help[name] = string(out)
			}
			for _, o := range option.FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(help[name], "\n  -"+o[1]+"\n") && !strings.Contains(help[name], "\n  -"+o[1]+" ") {
					t.Errorf("%s: railtune %s has no flag --%s", p.Path, name, o[1])
				}
			}
		}
	}
	if len(help) < 5 {
		t.Errorf("only %d subcommands are mentioned", len(help))
	}
}
