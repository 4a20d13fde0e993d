//go:build vm

package vm

import (
	"os"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// The tests of mode exclusive come first, before any that leaves many GIDs and
// neighbours: after those the kernel at times keeps a deleted namespace for minutes, with
// no process or descriptor in it, and refuses to switch.

// TestGIDsExclusive: the device is found where it is, and only there; the plugin stays in
// the node's mount namespace, whose /sys does not show it.
func TestGIDsExclusive(t *testing.T) {
	exclusive(t)
	pod := namespace(t, "pod")
	cable(t, pod, "net1", railAddrs...)
	name := softRoCE(t, pod, "net1")
	enforced := object{"gid": "enforce"}

	// The kernel makes Soft-RoCE devices in its first namespace, wherever the link is.
	out := tune(t, nil, pod, "ADD", enforced)
	mustSay(t, out.Stdout, `"code": 101`, "has no RDMA device", "RDMA netns mode exclusive", "moved there, before railtune runs")
	mustPass(t, tune(t, nil, pod, "ADD", object{}))

	run(t, nil, "rdma dev set "+name+" netns "+pod.Name)
	if _, err := os.Stat("/sys/class/infiniband/" + name); err == nil {
		t.Fatalf("the node's /sys still shows %s: this test proves nothing", name)
	}
	for _, verb := range []string{"ADD", "CHECK"} {
		mustPass(t, tune(t, nil, pod, verb, enforced))
	}
	if found, absent := ports(t, pod); len(found) != 1 || found[0].Device != name || found[0].NetDev != "net1" || len(absent) != 0 {
		t.Errorf("found %v, absent %v", found, absent)
	}
}

// TestGIDsExclusiveChild: an ipvlan child's GIDs are made, and nothing in the pod can use
// the device they are on.
func TestGIDsExclusiveChild(t *testing.T) {
	exclusive(t) // before there is any namespace
	needLink(t, "ipvlan")
	pod := namespace(t, "pod")
	cable(t, nil, "rail0")
	name := softRoCE(t, nil, "rail0")
	c := newChain(t, nil, pod, "net1", object{"type": "ipvlan", "master": "rail0", "ipam": static(railAddrs...)},
		object{"type": "railtune", "verify": object{"gid": "enforce"}})
	c.mustFail(t, "add", "has no RDMA device", "mode exclusive", "that of the link below it, "+name+" port 1, is in another network namespace")
}

// TestGIDsOfTheRail: the rail's own device, mode shared. Once ADD is back both addresses
// are GIDs, although the device is a moment older than the ADD and the IPv6 address is
// in duplicate address detection.
func TestGIDsOfTheRail(t *testing.T) {
	pod := namespace(t, "pod")
	cable(t, pod, "net1", railAddrs...)
	name := softRoCE(t, pod, "net1")
	for _, verb := range []string{"ADD", "CHECK"} {
		mustPass(t, tune(t, nil, pod, verb, object{"gid": "enforce"}))
	}
	found, absent := ports(t, pod)
	if len(found) != 1 || len(absent) != 0 {
		t.Fatalf("found %v, absent %v", found, absent)
	}
	if p := found[0]; p.Device != name || p.Number != 1 || p.State != "ACTIVE" || p.Protocol != "roce" || p.NetDev != "net1" || p.IfIndex == 0 {
		t.Errorf("%+v", p)
	}
}

// TestGIDsWithoutADevice: other rails' devices are there, this one's is not.
func TestGIDsWithoutADevice(t *testing.T) {
	pod, other := namespace(t, "pod"), namespace(t, "other")
	cable(t, pod, "net1", railAddrs...)
	cable(t, other, "net1", railAddrs...)
	softRoCE(t, other, "net1")
	before := testbed.MustSnapshot(t, pod)
	mustPass(t, tune(t, nil, pod, "ADD", object{}))
	mustPass(t, tune(t, nil, pod, "DEL", object{}))
	restored(t, pod, before)
	out := tune(t, nil, pod, "ADD", object{"gid": "enforce"})
	mustSay(t, out.Stdout, `"code": 101`, "net1 in "+pod.Path()+" has no RDMA device", "RDMA netns mode shared")
	restored(t, pod, before)
}

// TestGIDsOfStackedLinks: the child's GIDs are in the table of the device on the link
// below it, which is in the node's namespace, and the pod sees the device but not that
// link. Both ways find it: through the node, and by what is in the table.
func TestGIDsOfStackedLinks(t *testing.T) {
	for _, plugin := range []object{
		{"type": "ipvlan", "master": "rail0", "mode": "l2"},
		{"type": "macvlan", "master": "rail0"},
		{"type": "vlan", "master": "rail0", "vlanId": 7},
	} {
		t.Run(plugin["type"].(string), func(t *testing.T) {
			needLink(t, plugin["type"].(string))
			node, pod := namespace(t, "node"), namespace(t, "pod")
			cable(t, node, "rail0")
			name := softRoCE(t, node, "rail0")
			plugin["ipam"] = static(railAddrs...)
			c := newChain(t, node, pod, "net1", plugin, object{"type": "railtune", "verify": object{"gid": "enforce"}})
			c.must(t, "add")
			c.must(t, "check")
			found, absent := ports(t, pod)
			if len(found) != 1 || found[0].Device != name || found[0].IfIndex != 0 || len(absent) != 0 {
				t.Errorf("found %+v, absent %v", found, absent)
			}
		})
	}
}

// TestGIDsMissing: a node whose GID table is full, as with very many ipvlan children.
// The kernel gives the child its addresses and says nothing but a line in its log.
func TestGIDsMissing(t *testing.T) {
	needLink(t, "ipvlan")
	node := namespace(t, "node")
	cable(t, node, "rail0")
	name := softRoCE(t, node, "rail0")
	empty := fillTable(t, node, "rail0")

	pod := namespace(t, "pod")
	run(t, node, "ip link add link rail0 name net1 netns "+pod.Name+" type ipvlan mode l2")
	run(t, pod, "ip link set net1 up")
	for _, a := range railAddrs {
		run(t, pod, "ip addr add "+a+" dev net1 nodad")
	}
	before := testbed.MustSnapshot(t, pod)
	says := []string{"RDMA device " + name + " port 1 has no RoCE v2 GID for 10.61.1.11 (all 1024 entries", "1 more is missing", symptom}

	t.Run("warned", func(t *testing.T) {
		out := tune(t, node, pod, "ADD", object{"timeout": "100ms"})
		if out.Exit != 0 {
			t.Errorf("exit %d: %s", out.Exit, out.Stdout)
		}
		mustSay(t, out.Stderr, says...)
		mustPass(t, tune(t, node, pod, "DEL", object{}))
	})
	t.Run("off", func(t *testing.T) {
		mustPass(t, tune(t, node, pod, "ADD", object{"gid": "off"}))
		out := tune(t, node, pod, "CHECK", object{"gid": "enforce", "timeout": "100ms"})
		mustSay(t, out.Stdout, append(says, `"code": 101`)...)
		mustPass(t, tune(t, node, pod, "CHECK", object{}))
		mustPass(t, tune(t, node, pod, "DEL", object{}))
	})
	t.Run("enforced", func(t *testing.T) {
		out := tune(t, node, pod, "ADD", object{"gid": "enforce", "timeout": "100ms"})
		mustSay(t, out.Stdout, append(says, `"code": 101`, "fd5a:1::11")...)
		restored(t, pod, before)
	})
	t.Run("seen by doctor", func(t *testing.T) {
		run(t, node, "ip addr add 10.61.2.1/24 dev rail0")
		out, err := try(t.Context(), node, "/payload/railtune doctor --netns "+node.Path()+" --rail rail0 --brief")
		mustSay(t, out, "gid-missing", "10.61.2.1", name)
		if err == nil {
			t.Error("doctor found nothing, by its exit status")
		}
		run(t, node, "ip addr del 10.61.2.1/24 dev rail0")
	})
	t.Run("made while ADD waits", func(t *testing.T) {
		done := make(chan testbed.Outcome)
		go func() {
			out, err := call(t.Context(), node, pod, "ADD", object{"gid": "enforce", "timeout": "30s"})
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		await(t, "ADD to have made its rules", func() bool {
			out, err := try(t.Context(), pod, "ip rule show")
			return err == nil && strings.Contains(out, "from 10.61.1.11")
		})
		empty()
		for _, a := range railAddrs {
			run(t, pod, "ip addr del "+a+" dev net1")
			run(t, pod, "ip addr add "+a+" dev net1 nodad")
		}
		mustPass(t, <-done)
	})
}
