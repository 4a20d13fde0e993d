package firewall

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCommand: a tool of the right make is found by its own name or through the plain one,
// and none is run to learn what it is: the fakes cannot be run.
func TestCommand(t *testing.T) {
	for name, c := range map[string]struct {
		links map[string]string // link to program
		tool  string
		found string // "" for none
	}{
		"own name":                  {map[string]string{"iptables-nft": "xtables-nft-multi"}, "iptables-nft", "iptables-nft"},
		"plain name, nft":           {map[string]string{"iptables": "xtables-nft-multi"}, "iptables-nft", "iptables"},
		"plain name, legacy":        {map[string]string{"iptables": "xtables-legacy-multi"}, "iptables-legacy", "iptables"},
		"before 1.8":                {map[string]string{"ip6tables": "xtables-multi"}, "ip6tables-legacy", "ip6tables"},
		"nft wanted, legacy there":  {map[string]string{"iptables": "xtables-legacy-multi"}, "iptables-nft", ""},
		"legacy wanted, nft there":  {map[string]string{"iptables": "xtables-nft-multi"}, "iptables-legacy", ""},
		"none":                      {nil, "iptables-nft", ""},
		"the other family's is not": {map[string]string{"iptables": "xtables-nft-multi"}, "ip6tables-nft", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			for link, program := range c.links {
				if err := os.WriteFile(filepath.Join(dir, program), []byte("not a program"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(program, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			want := ""
			if c.found != "" {
				want = filepath.Join(dir, c.found)
			}
			if got, err := (kind{tool: c.tool}).command(); got != want || (err == nil) != (want != "") {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}
