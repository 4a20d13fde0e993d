//go:build clients

package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/promise"
)

// network is a conflist on disk, and how cnitool is called with it.
type network struct {
	pod          *testbed.Pod
	dir          string // NETCONFPATH
	name, ifName string
	path         string   // CNI_PATH
	env          []string // more of the caller's environment
}

// write puts conflist, which has a name, into a folder of its own.
func write(t *testing.T, pod *testbed.Pod, ifName string, conflist testbed.Object) *network {
	t.Helper()
	n := &network{pod: pod, dir: t.TempDir(), name: conflist["name"].(string), ifName: ifName, path: bin.Path + ":" + bin.multus}
	b, err := json.Marshal(conflist)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "net.conflist"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	return n
}

// try runs cnitool in the pod's node.
func (n *network) try(t *testing.T, verb string) testbed.Outcome {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), bin.CNITool, verb, n.name, n.pod.Path())
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + n.path, "NETCONFPATH=" + n.dir, "CNI_IFNAME=" + n.ifName,
	}, n.env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	if err := n.pod.Node.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit status says it
	return testbed.Outcome{Stdout: out.String(), Stderr: errs.String(), Exit: cmd.ProcessState.ExitCode(), Took: time.Since(start)}
}

// must is try for what has to succeed; it returns stdout.
func (n *network) must(t *testing.T, verb string) string {
	t.Helper()
	o := n.try(t, verb)
	if err := o.Err(); err != nil {
		t.Fatalf("cnitool %s %s %s: %v", verb, n.name, n.ifName, err)
	}
	return o.Stdout
}

// mustFail is try for what has to fail with a message that holds all of want.
func (n *network) mustFail(t *testing.T, verb string, want ...string) {
	t.Helper()
	o := n.try(t, verb)
	for _, w := range want {
		if o.Exit == 0 || !strings.Contains(o.Stderr+o.Stdout, w) {
			t.Fatalf("cnitool %s %s %s: exit %d, want a failure with %q; it said %s%s", verb, n.name, n.ifName, o.Exit, w, o.Stdout, o.Stderr)
		}
	}
}

// mustTuned asserts that a rail is as railtune promises, to a neighbour and to another
// rail's subnet. With anyTable the rule of another plugin may come first.
func mustTuned(t *testing.T, pod *testbed.Pod, r testbed.Rail, anyTable ...bool) {
	t.Helper()
	rail := promise.Rail{Name: r.Name, Addr: r.Addr}
	if err := promise.Kept(t.Context(), pod.Namespace, rail, slices.Contains(anyTable, true), rail.Near(), "10.61.200.200"); err != nil {
		t.Error(err)
	}
}

// mustHaveNothing asserts that no rule and no route of railtune's is in the pod.
func mustHaveNothing(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	if err := promise.Gone(t.Context(), pod.Namespace); err != nil {
		t.Error(err)
	}
}

// mustBeAsBefore compares the pod with an earlier snapshot.
func mustBeAsBefore(t *testing.T, pod *testbed.Pod, before testbed.Snapshot) {
	t.Helper()
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
}
