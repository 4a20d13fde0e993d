//go:build clients

package clients

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/evidence"
	"github.com/railtune/railtune/tests/recorder"
)

// bin are the programs the tests run, found once.
var bin struct {
	testbed.Tools
	multus string // its folder
}

// The clients as the table names them, with the versions of the binaries.
var cnitool, multus string

var table evidence.Table

func TestMain(m *testing.M) {
	recorder.Main()
	flag.Parse()
	if err := testbed.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	if err := find(); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	exit := m.Run()
	// A selection of the tests makes a part of the table.
	if exit == 0 && flag.Lookup("test.run").Value.String() == "" {
		fmt.Print("\n", table.Markdown())
		if err := table.Keep("clients"); err != nil {
			fmt.Fprintln(os.Stderr, "clients:", err)
			exit = 1
		}
	}
	os.Exit(exit)
}

// find looks for the programs and prints their versions.
func find() (err error) {
	if bin.Tools, err = testbed.FindTools(); err != nil {
		return err
	}
	if _, err := testbed.FindRailtune(); err != nil {
		return err
	}
	bin.multus = filepath.Join(filepath.Dir(bin.Railtune), "clients", "multus")
	if cnitool, err = evidence.VersionOf("cnitool", bin.CNITool); err != nil {
		return err
	}
	if multus, err = evidence.VersionOf("Multus", filepath.Join(bin.multus, "multus")); err != nil {
		return fmt.Errorf("%w: build it with `scripts/clients/build multus`", err)
	}
	plugins, err := evidence.VersionOf("plugins", filepath.Join(filepath.Dir(bin.CNITool), "macvlan"))
	if err != nil {
		return err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Printf("with %s, %s, CNI %s, Linux %s\n", cnitool, multus, plugins, strings.TrimSpace(string(kernel)))
	return err
}
