package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tools are the binaries the bed runs, all made by make.
type Tools struct {
	CNITool  string
	Railtune string
	Path     string // CNI_PATH: the plugins' folder and railtune's
}

// FindTools looks in RAILTUNE_BIN, the folder that holds railtune and cni/, or
// else in the bin folder of the module the working directory is in. It says what
// is missing and how to build it; railtune itself is looked for by FindRailtune.
func FindTools() (Tools, error) {
	bin := os.Getenv("RAILTUNE_BIN")
	if bin == "" {
		root, err := moduleRoot()
		if err != nil {
			return Tools{}, err
		}
		bin = filepath.Join(root, "bin")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return Tools{}, err
	}
	plugins := filepath.Join(bin, "cni")
	t := Tools{
		CNITool:  filepath.Join(plugins, "cnitool"),
		Railtune: filepath.Join(bin, "railtune"),
		Path:     plugins + ":" + bin,
	}
	for _, name := range []string{"cnitool", "macvlan", "static"} {
		if _, err := os.Stat(filepath.Join(plugins, name)); err != nil {
			return t, fmt.Errorf("%w: build it with `make tools` (or set RAILTUNE_BIN to the folder that holds railtune and cni/)", err)
		}
	}
	return t, nil
}

// FindRailtune returns the plugin's path, or says how to build it.
func FindRailtune() (string, error) {
	t, err := FindTools()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(t.Railtune); err != nil {
		return "", fmt.Errorf("%w: build it with `make build`", err)
	}
	return t.Railtune, nil
}

// findPlugin returns the path of a chain's plugin.
func findPlugin(kind any) (string, error) {
	if kind == Railtune["type"] {
		return FindRailtune()
	}
	t, err := FindTools()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(filepath.Dir(t.CNITool), fmt.Sprint(kind)))
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		b, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/railtune/railtune\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside railtune's checkout: set RAILTUNE_BIN", dir)
		}
	}
}
