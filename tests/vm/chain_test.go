//go:build vm

package vm

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// chain is a network of one interface of a pod, as a conflist, and how the real cnitool
// is called with it.
//
//	c := newChain(t, nil, pod, "net1", object{"type": "ipvlan", "master": "eth0", "ipam": static("10.1.0.1/24")}, testbed.Railtune)
//	c.must(t, "add")
//	c.must(t, "check")
//	c.mustFail(t, "add", `"code": 103`)
type chain struct {
	node   *testbed.Namespace // where the plugins run; nil is the guest's first namespace
	pod    *testbed.Namespace
	ifName string
	dir    string // NETCONFPATH
	added  bool
}

type object = testbed.Object

// static is the configuration of the real static IPAM plugin.
func static(addresses ...string) object {
	list := []object{}
	for _, a := range addresses {
		list = append(list, object{"address": a})
	}
	return object{"type": "static", "addresses": list}
}

// newChain writes the conflist and nothing else. What it adds is deleted at the end of
// the test, before pod is.
func newChain(t *testing.T, node, pod *testbed.Namespace, ifName string, plugins ...object) *chain {
	t.Helper()
	c := &chain{node: node, pod: pod, ifName: ifName, dir: t.TempDir()}
	b, err := json.Marshal(object{"cniVersion": "1.1.0", "name": ifName, "plugins": plugins})
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, ifName+".conflist"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call runs cnitool with a verb: add, check, del, gc, status.
func (c *chain) call(t *testing.T, verb string) (out string, err error) {
	t.Helper()
	tools, err := testbed.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.Command(tools.CNITool, verb, c.ifName, c.pod.Path())
	cmd.Env = append(os.Environ(), "CNI_PATH="+tools.Path, "NETCONFPATH="+c.dir, "CNI_IFNAME="+c.ifName)
	cmd.Stdout, cmd.Stderr = &said, &said
	start := cmd.Start
	if c.node != nil {
		start = func() error { return c.node.Start(cmd) }
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	return said.String(), err
}

// must is call for what has to succeed; after an add the test ends with a del, unless it
// has made one.
func (c *chain) must(t *testing.T, verb string) string {
	t.Helper()
	out, err := c.call(t, verb)
	if err != nil {
		t.Fatalf("cnitool %s %s in %s: %v: %s", verb, c.ifName, c.pod.Name, err, out)
	}
	switch verb {
	case "add":
		c.added = true
		t.Cleanup(func() {
			if !c.added { // host-device cannot delete twice
				return
			}
			if out, err := c.call(t, "del"); err != nil {
				t.Errorf("cnitool del %s in %s: %v: %s", c.ifName, c.pod.Name, err, out)
			}
		})
	case "del":
		c.added = false
	}
	return out
}

// mustFail is call for what has to fail with a message that holds all of want.
func (c *chain) mustFail(t *testing.T, verb string, want ...string) string {
	t.Helper()
	out, err := c.call(t, verb)
	if err == nil {
		t.Fatalf("cnitool %s %s in %s succeeded, want a failure with %q: %s", verb, c.ifName, c.pod.Name, want, out)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Fatalf("cnitool %s %s in %s lacks %q: %s", verb, c.ifName, c.pod.Name, w, out)
		}
	}
	return out
}
