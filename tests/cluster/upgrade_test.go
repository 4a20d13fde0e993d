//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// creator makes pods and removes them, one after another, until it is told to stop.
type creator struct {
	what string
	// once makes one and removes it; name is one that no pod had.
	once  func(name string) error
	count atomic.Int64
	again chan struct{} // has room for one, so that nobody waits for the reader; closed in the end
}

func (c *creator) run(ctx context.Context, t *testing.T) {
	defer close(c.again)
	for ctx.Err() == nil {
		if err := c.once(fmt.Sprintf("upgrade-%d", pod0.Add(1))); err != nil {
			t.Errorf("pod %d by %s: %v", c.count.Load()+1, c.what, err)
			return // what follows would only fail over what this left
		}
		c.count.Add(1)
		select {
		case c.again <- struct{}{}:
		default:
		}
	}
}

// wait waits until as many more pods have been made, or no more will be.
func (c *creator) wait(n int64) {
	for until := c.count.Load() + n; c.count.Load() < until; {
		if _, open := <-c.again; !open {
			return
		}
	}
}

// byRuntime makes pods as the kubelet would have them made, through Multus, of which
// each has a definition for one rail.
func byRuntime(t *testing.T, nad string) *creator {
	return &creator{what: "containerd", again: make(chan struct{}, 1), once: func(name string) error {
		s := newSandbox(t, name, nad)
		out, err := cri(t, "runp", s.config)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, args := range [][]string{{"stopp", out}, {"rmp", "--force", out}} {
			if said, err := cri(t, args...); err != nil {
				return fmt.Errorf("%v: %w: %s", args, err, said)
			}
		}
		return nil
	}}
}

// byTool attaches and detaches one rail with cnitool, many times a second.
func byTool(t *testing.T, r testbed.Rail, pluginDir string) *creator {
	n, confs := testbed.MustNamespace(t, "pod"), t.TempDir()
	network := "tool-" + r.Name
	if err := writeJSON(filepath.Join(confs, "10.conflist"), macvlan(r, "1.0.0", network, static(r), railtune)); err != nil {
		t.Fatal(err)
	}
	return &creator{what: "cnitool on " + r.Name, again: make(chan struct{}, 1), once: func(name string) error {
		for _, verb := range []string{"add", "check", "del"} {
			var said strings.Builder
			cmd := exec.Command(bin.CNITool, verb, network, n.Path())
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + pluginDir, "NETCONFPATH=" + confs, "CNI_IFNAME=" + r.Name}
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := node.Start(cmd); err != nil {
				return err
			}
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%s: %w: %s", verb, err, said.String())
			}
		}
		return nil
	}}
}

// TestUpgrade goes back and forth between two versions while pods are made and removed
// all the time, in the ways a node can be upgraded: by the pods of the DaemonSet, and by
// the binary itself. Not one ADD, CHECK or DEL may fail.
func TestUpgrade(t *testing.T) {
	runtime := mustContainerd(t)
	releases := []release{dist(t), newRelease(t, "v0.0.0-other")}
	dir, plugin := bareNode(t)
	var templates []podTemplate
	for _, r := range releases {
		r.load(t)
		templates = append(templates, applyAll(t, kustomize(t, overlay(t, "base", r.version, ""))).Spec.Template)
	}
	createNAD(t, "rail-1", macvlan(node.rails[0], "1.0.0", "rail-1", hostLocal(node.rails[0]), railtune), nil)
	installed := startInstaller(t, templates[0], dir)

	creators := []*creator{byRuntime(t, "rail-1"), byTool(t, node.rails[1], dir), byTool(t, node.rails[2], dir)}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, c := range creators {
		running.Go(func() { c.run(ctx, t) })
	}
	defer running.Wait()
	defer stop()
	served := func() {
		for _, c := range creators {
			c.wait(1)
		}
	}
	served()
	for i := range 4 {
		next := (i + 1) % 2
		installed.mustEnd(t) // as the update of a DaemonSet does: the old pod goes first
		served()
		installed = startInstaller(t, templates[next], dir)
		releases[next].mustBeInstalled(t, plugin)
		served()
	}
	installed.mustEnd(t)
	for i := range 20 {
		next := (i + 1) % 2
		out, err := exec.Command(releases[next].binary(), "install", "--to", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		releases[next].mustBeInstalled(t, plugin)
		creators[1].wait(2)
	}
	stop()
	running.Wait()
	for _, c := range creators {
		t.Logf("%d pods by %s", c.count.Load(), c.what)
	}

	// Only now may it go: what is left of a pod's network is deleted with it.
	removed := startInstaller(t, applyAll(t, kustomize(t, overlay(t, "overlays/uninstall", releases[1].version, ""))).Spec.Template, dir)
	removed.mustEnd(t)
	left, err := filepath.Glob(filepath.Join(dir, "*railtune*"))
	hidden, err2 := filepath.Glob(filepath.Join(dir, ".*"))
	if left = slices.Concat(left, hidden); len(left) > 0 || err != nil || err2 != nil {
		t.Errorf("left in the folder of plugins: %q (%v, %v)", left, err, err2)
	}
	if !t.Failed() {
		table.Passed(runtime, "two versions of railtune in turn by its DaemonSet while pods come and go, none fails", "1.0.0", "ADD", "DEL")
	}
}
