// Command licenses prints the licences of everything that is in the given binaries:
// this project, Go, and each module, whose authors ask for their text to come along.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, binaries []string) error {
	modules := map[string]bool{}
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			modules[m.Path] = true
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	if err := errors.Join(print(w, "railtune", "."), print(w, "Go", strings.TrimSpace(string(root)))); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		out, err := exec.Command("go", "list", "-m", "-json", path).Output()
		if err != nil {
			return fmt.Errorf("go list -m %s: %w", path, err)
		}
		var m struct{ Version, Dir string }
		if err := json.Unmarshal(out, &m); err != nil {
			return err
		}
		if err := print(w, path+" "+m.Version, m.Dir); err != nil {
			return err
		}
	}
	return nil
}

// print prints the files of a folder that grant the use of what is in it.
func print(w io.Writer, name, dir string) error {
	var files []string
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no licence in %s: nothing says that it may be shipped", name, dir)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "==== %s: %s\n\n%s\n\n", name, filepath.Base(file), strings.TrimSpace(string(text)))
	}
	return nil
}
