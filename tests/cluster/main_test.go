//go:build cluster

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
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
	clients string // the folder of those that make test-cluster builds
}

// The clients as the table names them, with the versions of the binaries.
var thin, thick, whereabouts, operator, apiserver, crictl string

var (
	table evidence.Table
	// node is what all tests share: one machine with an API server on its loopback.
	node *machine
)

func TestMain(m *testing.M) {
	standInForSRIOV()
	recorder.Main()
	flag.Parse()
	if err := testbed.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) (exit int) {
	err := find()
	if err == nil {
		node, err = newMachine()
	}
	if err == nil {
		exit = m.Run()
		// A selection of the tests makes a part of the table.
		if exit == 0 && flag.Lookup("test.run").Value.String() == "" {
			fmt.Print("\n", table.Markdown())
			err = table.Keep("cluster")
		}
	}
	if err = errors.Join(err, node.close()); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return exit
}

// find looks for the programs and prints their versions.
func find() (err error) {
	if bin.Tools, err = testbed.FindTools(); err != nil {
		return err
	}
	if _, err := testbed.FindRailtune(); err != nil {
		return err
	}
	bin.clients = filepath.Join(filepath.Dir(bin.Railtune), "clients")
	var all []string
	for _, p := range []struct {
		as         *string
		name, path string
	}{
		{&thin, "Multus", "multus/multus"},
		{&thick, "Multus thick", "multus/multus-daemon"},
		{&whereabouts, "whereabouts", "whereabouts/whereabouts"},
		{&apiserver, "kube-apiserver", "apiserver/kube-apiserver"},
		{&crictl, "crictl", "crictl/crictl"},
	} {
		if *p.as, err = evidence.VersionOf(p.name, filepath.Join(bin.clients, p.path)); err != nil {
			return fmt.Errorf("%w: build it with `scripts/clients/build %s`", err, filepath.Dir(p.path))
		}
		all = append(all, *p.as)
	}
	if operator, err = evidence.VersionOfDependency("SR-IOV Network Operator", filepath.Join(bin.clients, "operator", "operator"),
		"github.com/k8snetworkplumbingwg/sriov-network-operator"); err != nil {
		return err
	}
	for _, debian := range []string{"etcd", "containerd", "runc"} {
		version, err := exec.Command(debian, "--version").Output()
		if err != nil {
			return fmt.Errorf("the version of %s: %w", debian, err)
		}
		first, _, _ := strings.Cut(string(version), "\n")
		all = append(all, first)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Printf("with %s, %s, Linux %s\n", strings.Join(all, ", "), operator, strings.TrimSpace(string(kernel)))
	return err
}
