//go:build vm

package vm

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// patience bounds what must end by itself. The guest is emulated, on machines that do
// other things too: only what hangs takes so long.
const patience = 2 * time.Minute

// namespace is a network namespace for the time of the test, without links but lo:
// a pod, or a fabric between pods.
func namespace(t *testing.T, role string) *testbed.Namespace {
	t.Helper()
	return testbed.MustNamespace(t, role)
}

// try runs a command line, split at its spaces, in a namespace, or where that is nil in
// the guest's first one, in which its NICs are.
func try(ctx context.Context, where *testbed.Namespace, line string) (string, error) {
	args := strings.Fields(line)
	if where != nil {
		return where.Run(ctx, args[0], args[1:]...)
	}
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return string(out), &failed{line, string(out), err}
	}
	return string(out), nil
}

// run is try for what has to succeed.
func run(t *testing.T, where *testbed.Namespace, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := try(ctx, where, line)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type failed struct {
	line, out string
	err       error
}

func (f *failed) Error() string {
	return f.line + ": " + f.err.Error() + ": " + strings.TrimSpace(f.out)
}
func (f *failed) Unwrap() error { return f.err }

// needLink skips the test where the kernel cannot make links of a kind that stands
// alone or on a parent: ipvlan, macvlan, vlan, vrf, dummy, bridge.
func needLink(t *testing.T, kind string) {
	t.Helper()
	n := namespace(t, "need")
	run(t, n, "ip link add parent type veth peer name other")
	line := "ip link add tried type " + kind
	switch kind {
	case "ipvlan", "macvlan":
		line = "ip link add tried link parent type " + kind
	case "vlan":
		line = "ip link add tried link parent type vlan id 7"
	case "vrf":
		line += " table 7"
	}
	if _, err := try(t.Context(), n, line); err != nil {
		t.Skipf("this kernel has no %s: %v", kind, err)
	}
}
