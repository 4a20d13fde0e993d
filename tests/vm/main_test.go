//go:build vm

package vm

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// inGuest is set by the guest's init alone: these tests take the NICs of the machine
// they run on.
const inGuest = "RAILTUNE_VM"

// The guest is the sandbox (its init says so to testbed), with these folders of its own.
var sandbox = []string{"/run/netns", "/run/cni", "/run/railtune-testbed", "/var/lib/cni"}

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
	exit := m.Run()
	for section, text := range reports {
		fmt.Printf("<!-- %s -->\n%s<!-- end %[1]s -->\n", section, text)
	}
	os.Exit(exit)
}

// reports are the tables of docs/vm.md, by section: a test that passed puts its own in.
var reports = map[string]string{}

func prepare() error {
	if os.Getenv(inGuest) == "" {
		return errors.New("these tests run in a virtual machine: use make test-vm")
	}
	for _, dir := range sandbox {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	_, err := testbed.FindRailtune()
	return err
}
