package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestInitialisedFirst holds package ahead in its place: a call of the plugin is answered
// before anything is initialised that only the command line tool needs, but for these
// packages: they sort before what the plugin waits for, and cost little.
func TestInitialisedFirst(t *testing.T) {
	t.Parallel()
	binary := testbed.MustRailtune(t)
	for _, c := range []struct {
		verb, pkg string
		beside    []string
	}{
		{"VERSION", "pkg/ahead/first", []string{"encoding/base64", "internal/godebug", "iter", "math"}},
		{"DEL", "pkg/ahead", []string{
			"flag", "github.com/goccy/go-yaml", "github.com/goccy/go-yaml/parser", "github.com/goccy/go-yaml/printer",
			"github.com/goccy/go-yaml/token", "os/signal", "regexp", "regexp/syntax", "vendor/golang.org/x/net/dns/dnsmessage",
		}},
	} {
		cmd := exec.Command(binary)
		cmd.Env = []string{"CNI_COMMAND=" + c.verb, "CNI_CONTAINERID=x", "CNI_IFNAME=x", "CNI_PATH=/", "GODEBUG=inittrace=1"}
		cmd.Stdin = strings.NewReader(`{"cniVersion": "1.0.0", "name": "x"}`)
		trace, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.verb, err, trace)
		}
		needed := dependencies(t, "github.com/railtune/railtune/"+c.pkg)
		initialised := 0
		for line := range strings.Lines(string(trace)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "init" {
				continue
			}
			initialised++
			if pkg := fields[1]; !slices.Contains(needed, pkg) && !slices.Contains(c.beside, pkg) {
				t.Errorf("%s: %s is initialised, which package ahead does not need", c.verb, pkg)
			}
		}
		if initialised == 0 {
			t.Errorf("%s: nothing is initialised: %s", c.verb, trace)
		}
	}
}

// dependencies are the packages that a package imports, and it.
func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

// TestVersionUnwritten: an answer that nobody gets is an error.
func TestVersionUnwritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	var said bytes.Buffer
	cmd := exec.Command(testbed.MustRailtune(t))
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"CNI_COMMAND=VERSION"}, full, &said
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "cannot be written to stdout") {
		t.Errorf("%v: %s", err, said.String())
	}
}
