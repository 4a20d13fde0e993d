package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// CI is what .ci/run runs.
type CI struct {
	// targets are those of the Makefile: true where .ci/run calls it, or one that needs it.
	targets map[string]bool
	// scripts are those that the Makefile and its scripts call.
	scripts map[string]bool
}

var (
	variable = regexp.MustCompile(`\b[A-Z_]+=('[^']*'|\S*)`)
	script   = regexp.MustCompile(`\bscripts/[a-z/]+\b`)
	called   = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	rule     = regexp.MustCompile(`(?m)^([A-Za-z][\w /.-]*?):([^=\n][^#|\n]*)?(?:\|([^#\n]*))?(?:#.*)?$`)
)

// ReadCI reads .ci/run and the Makefile of the repository at root: the targets it
// calls, and all that those depend on.
func ReadCI(root string) (CI, error) {
	run, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		return CI{}, err
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return CI{}, err
	}
	needs := map[string][]string{}
	for _, r := range rule.FindAllStringSubmatch(string(makefile), -1) {
		needs[r[1]] = append(needs[r[1]], strings.Fields(r[2]+" "+r[3])...)
	}
	c := CI{targets: map[string]bool{}, scripts: map[string]bool{}}
	c.follow(root, string(makefile))
	for t := range needs {
		c.targets[t] = false
	}
	var reach func(target string)
	reach = func(target string) {
		if _, exists := needs[target]; !exists || c.targets[target] {
			return
		}
		c.targets[target] = true
		for _, n := range needs[target] {
			reach(n)
		}
	}
	for _, m := range called.FindAllStringSubmatch(string(run), -1) {
		reach(m[1])
	}
	return c, nil
}

// follow notes the scripts that a text calls, and those they call.
func (c CI) follow(root, text string) {
	for _, name := range script.FindAllString(text, -1) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || c.scripts[name] { // a folder of Go
			continue
		}
		c.scripts[name] = true
		c.follow(root, string(b))
	}
}

var errNoTarget = errors.New("the Makefile has no target")

// Runs tells whether a command of the documentation is one that CI runs, and if it is
// such a one, what is wrong with it.
func (c CI) Runs(command string) (is bool, err error) {
	command, _, _ = strings.Cut(command, " #")
	words := strings.Fields(variable.ReplaceAllString(command, ""))
	if len(words) == 0 {
		return false, nil
	}
	switch {
	case words[0] == ".ci/run" || c.scripts[words[0]]:
		return true, nil
	case words[0] != "make":
		return false, nil
	}
	for _, target := range words[1:] {
		switch run, exists := c.targets[target]; {
		case !exists:
			return true, fmt.Errorf("%w %q", errNoTarget, target)
		case !run:
			return true, fmt.Errorf(".ci/run does not run the target %q", target)
		}
	}
	return true, nil
}
