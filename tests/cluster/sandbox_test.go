//go:build cluster

package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// sandbox is a pod as the kubelet would ask containerd for it.
type sandbox struct {
	name, uid, id string
	config        string // its file
}

// newSandbox makes the pod in the API server and its configuration for crictl.
func newSandbox(t *testing.T, name, networks string) *sandbox {
	t.Helper()
	s := &sandbox{name: name, uid: createPod(t, name, networks), config: filepath.Join(t.TempDir(), "pod.json")}
	if err := writeJSON(s.config, testbed.Object{
		"metadata": testbed.Object{"name": name, "namespace": "default", "uid": s.uid, "attempt": 0},
		"linux":    testbed.Object{"cgroup_parent": "/" + cgroup()},
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// cri runs crictl and returns what it printed, or said about a failure.
func cri(t *testing.T, args ...string) (string, error) {
	t.Helper()
	endpoint := "unix://" + node.socket()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin.clients, "crictl", "crictl"),
		append([]string{"--runtime-endpoint", endpoint, "--image-endpoint", endpoint, "--timeout", "120s"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return string(out) + errs.String(), err
	}
	return strings.TrimSpace(string(out)), nil
}

func mustCRI(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cri(t, args...)
	if err != nil {
		t.Fatalf("crictl %s: %v: %s\n%s", strings.Join(args, " "), err, out, node.containerd.said())
	}
	return out
}

// remove stops and removes a sandbox, also one that a failed test left.
func (s *sandbox) remove(t *testing.T) {
	t.Helper()
	mustCRI(t, "stopp", s.id)
	mustCRI(t, "rmp", "--force", s.id)
	s.id = ""
}

// traces is what pods could leave on the node: namespaces, links, addresses in use.
func traces(t *testing.T) []string {
	t.Helper()
	out, err := node.Run(t.Context(), "ip", "-br", "link", "show")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, " ")
		all = append(all, "link "+name)
	}
	for _, dir := range []string{"/run/netns", "/var/lib/cni/networks/cluster", "/var/lib/cni/networks/rail-1", "/var/lib/cni/networks/rail-2"} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "last_reserved_ip") && e.Name() != "lock" {
				all = append(all, filepath.Join(dir, e.Name()))
			}
		}
	}
	slices.Sort(all)
	return all
}

// mustContainerd starts containerd on first use, and names it as the table does.
func mustContainerd(t *testing.T) (runtime string) {
	t.Helper()
	if node.containerd == nil {
		c := thinClient(t).config
		c["clusterNetwork"], c["binDir"] = node.clusterNetwork, filepath.Join(node.dir, "containerd", "bin")
		c["cniDir"], c["confDir"] = filepath.Join(node.dir, "multus-cni"), filepath.Join(node.dir, "multus-conf")
		if err := node.startContainerd(c); err != nil {
			t.Fatal(err)
		}
	}
	version := mustCRI(t, "version")
	t.Log(version)
	return crictl + ", " + containerdVersion(version)
}

// TestSandbox starts pods as a kubelet does, with containerd 1.6 and runc: a good
// one, one whose address is taken, and the first one's removal.
func TestSandbox(t *testing.T) {
	runtime := mustContainerd(t)
	for i, r := range node.rails[:2] {
		name := fmt.Sprintf("rail-%d", i+1)
		createNAD(t, name, macvlan(r, "1.0.0", name, hostLocal(r), railtune), nil)
	}
	// Attached once, so that the bridge of the cluster network is there.
	warm := newSandbox(t, "warm", "rail-1")
	warm.id = mustCRI(t, "runp", warm.config)
	warm.remove(t)
	before := traces(t)

	good := newSandbox(t, "good", "rail-1,rail-2")
	good.id = mustCRI(t, "runp", good.config)
	defer func() {
		if good.id != "" {
			good.remove(t)
		}
	}()
	container := filepath.Join(t.TempDir(), "container.json")
	if err := writeJSON(container, testbed.Object{
		"metadata": testbed.Object{"name": "c"}, "image": testbed.Object{"image": image}, "linux": testbed.Object{},
	}); err != nil {
		t.Fatal(err)
	}
	id := mustCRI(t, "create", "--no-pull", good.id, container, good.config)
	mustCRI(t, "start", id)
	for _, rail := range []string{"net1", "net2"} {
		seen := mustCRI(t, "exec", "--sync", id, "/pod", "show", rail)
		t.Logf("in the pod, %s:\n%s", rail, seen)
		addr := netip.MustParseAddr(after(t, seen, "addr "))
		for _, want := range []string{
			"arp_ignore=1", "arp_announce=2",
			fmt.Sprintf("rule 720 src %s/32 oif  protocol 72", addr),
			fmt.Sprintf("rule 721 src <nil> oif %s protocol 72", rail),
			fmt.Sprintf("rule 722 src %s/32 oif  protocol 72", addr),
		} {
			if !strings.Contains(seen, want) {
				t.Errorf("the process in the pod does not see %q", want)
			}
		}
	}

	t.Run("duplicate", func(t *testing.T) { duplicateSandbox(t, mustCRI(t, "exec", "--sync", id, "/pod", "show", "net1")) })

	good.remove(t)
	if left := traces(t); !slices.Equal(left, before) {
		t.Errorf("left on the node: %v, before %v", left, before)
	}
	if !t.Failed() {
		table.Passed(runtime, "a pod of two NADs through Multus, seen from inside, removed", "1.0.0", "ADD", "DEL")
		table.Passed(runtime, "an address that another pod has: the sandbox fails with railtune's sentence", "1.0.0", "ADD", "DEL")
	}
}

// duplicateSandbox asks for a pod with the address of one that runs, and shows what
// its user will read in the pod's events.
func duplicateSandbox(t *testing.T, running string) {
	before := traces(t)
	r := node.rails[0]
	r.Addr = netip.PrefixFrom(netip.MustParseAddr(after(t, running, "addr ")), r.Addr.Bits())
	createNAD(t, "taken", macvlan(r, "1.0.0", "taken", static(r), railtune), nil)
	bad := newSandbox(t, "bad", "taken")
	out, err := cri(t, "runp", bad.config)
	if err == nil {
		bad.id = out
		bad.remove(t)
		t.Fatal("a pod with the address of another one runs")
	}
	t.Logf("what the user sees:\n%s", out)
	for _, want := range []string{"failed to setup network for sandbox", `plugin type=\"railtune\" failed (add)`, "duplicate: " + r.Addr.Addr().String() + " of net1 is also answered by"} {
		if !strings.Contains(out, want) {
			t.Errorf("the error of the sandbox lacks %q", want)
		}
	}
	if left := traces(t); !slices.Equal(left, before) {
		t.Errorf("the pod that could not start left on the node: %v, before %v", left, before)
	}
}

// after returns the rest of the line that starts with prefix.
func after(t *testing.T, text, prefix string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), prefix); found {
			return rest
		}
	}
	t.Fatalf("no line starts with %q:\n%s", prefix, text)
	return ""
}

// containerdVersion is the version in what `crictl version` prints.
func containerdVersion(said string) string {
	for line := range strings.Lines(said) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "RuntimeVersion:"); found {
			version, _, _ := strings.Cut(strings.TrimSpace(rest), "~") // Debian's part
			return "containerd " + version
		}
	}
	return "containerd"
}
