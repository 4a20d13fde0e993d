//go:build docs

package docs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

// World is where the commands of a page run, by the words of its world comment. The
// folders they write to (/etc, /opt, /usr/local, /var/log) are this process's own.
//
//	machine           the default: a namespace with nothing in it
//	pods              a node with the parents rail1, rail2, …, and two pods on it, pod1
//	                  and pod2 below /run/netns; the plugins are in /opt/cni/bin
//	node              a node whose own rails are rdma0, rdma1, …, in one subnet with
//	                  those of another
//
// and then, for pods and node:
//
//	rails=N           how many each has; 4 without
//	layout=per-rail   a subnet for each rail, and a router between them
//	attached          the rails are in the pods already, with railtune in their chain
//	supernets         and then with the supernet in railtune's configuration
//	untuned           the same without railtune
type World struct {
	*Shell
	Dir string // where commands start
}

// own are the folders that commands may write to.
var own = []string{"/etc", "/opt", "/usr/local", "/var/log"}

// MustWorld makes a world for a test.
func MustWorld(t *testing.T, words string) *World {
	t.Helper()
	testbed.NeedRoot(t)
	for _, dir := range own {
		layOver(t, dir)
	}
	tools, err := testbed.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(testbed.MustRailtune(t))
	linkPlugins(t, filepath.Dir(tools.CNITool))
	kind, options := kindOf(words)
	var host *testbed.Namespace
	switch kind {
	case "", "machine":
		host = testbed.MustNamespace(t, "machine")
	case "pods":
		host = pods(t, bin, options)
	case "node":
		host = node(t, options)
	default:
		t.Fatalf("no world is called %q", kind)
	}
	dir, err := NewDir(t.TempDir(), root)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Dir: dir}
	standins, err := filepath.Abs("standins")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PATH=" + strings.Join([]string{standins, bin, filepath.Dir(tools.CNITool), "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":"),
		"HOME=" + w.Dir, "LANG=C.UTF-8",
	}
	if w.Shell, err = NewShell(w.Dir, env, host.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// kindOf reads a world comment.
func kindOf(words string) (kind string, options map[string]string) {
	options = map[string]string{}
	for i, w := range strings.Fields(words) {
		if i == 0 {
			kind = w
			continue
		}
		name, value, _ := strings.Cut(w, "=")
		options[name] = value
		if value == "" {
			options[name] = "yes"
		}
	}
	return kind, options
}

// layOver lets a test write to a folder of the machine without changing it.
func layOver(t *testing.T, dir string) {
	t.Helper()
	top := t.TempDir()
	upper, work := filepath.Join(top, "upper"), filepath.Join(top, "work")
	if err := errors.Join(unix.Mount("tmpfs", top, "tmpfs", 0, ""), os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)); err != nil {
		t.Fatalf("laying a folder over %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(dir, unix.MNT_DETACH), unix.Unmount(top, unix.MNT_DETACH)); err != nil {
			t.Error(err)
		}
	})
}

// linkPlugins puts the reference plugins where nodes have them.
func linkPlugins(t *testing.T, from string) {
	t.Helper()
	const to = "/opt/cni/bin"
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	plugins, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		if err := os.Symlink(p, filepath.Join(to, filepath.Base(p))); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
}

func fabric(t *testing.T, options map[string]string, o testbed.Options) *testbed.Fabric {
	t.Helper()
	o.Rails = 4
	if n, given := options["rails"]; given {
		var err error
		if o.Rails, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	if options["layout"] == "per-rail" {
		o.Layout = testbed.PerRail
	}
	return testbed.MustFabric(t, o)
}

// pods makes a fabric whose pods have the names that pages use, and a container each.
func pods(t *testing.T, bin string, options map[string]string) (host *testbed.Namespace) {
	t.Helper()
	f := fabric(t, options, testbed.Options{})
	if err := os.Symlink(filepath.Join(bin, "railtune"), "/opt/cni/bin/railtune"); err != nil {
		t.Fatal(err)
	}
	var err error
	switch {
	case options["attached"] != "":
		entry := maps.Clone(testbed.Railtune)
		if options["supernets"] != "" {
			entry["supernets"] = []testbed.Object{{"dst": testbed.Supernet.String()}}
		}
		err = f.AttachInOrder(t.Context(), entry)
	case options["untuned"] != "":
		err = f.AttachInOrder(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range f.Pods {
		named(t, p.Namespace, fmt.Sprintf("pod%d", i+1))
		container := exec.Command("sleep", "infinity")
		if err := p.Start(container); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = container.Process.Kill(); _ = container.Wait() })
	}
	return f.Pods[0].Node
}

// named lets a namespace be found by the name that a page gives it.
func named(t *testing.T, n *testbed.Namespace, name string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(n.Path()), name)
	if err := os.Symlink(n.Name, path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
}

// node makes a fabric whose first pod is the node itself.
func node(t *testing.T, options map[string]string) *testbed.Namespace {
	t.Helper()
	f := fabric(t, options, testbed.Options{Direct: true})
	for _, p := range f.Pods {
		for _, r := range p.Rails {
			if _, err := p.Run(t.Context(), "ip", "link", "set", r.Name, "name", fmt.Sprintf("rdma%d", r.Index-1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	named(t, f.Pods[1].Namespace, "node2")
	return f.Pods[0].Namespace
}
