//go:build vm

package vm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// linkLab is a node with two NICs, par0 and par1, on one link layer, and a bridge that
// is all others on it. The bridge has the gateway's addresses.
type linkLab struct{ node, fabric *testbed.Namespace }

// The gateway of the lab, and the prefixes of all of it.
const (
	gateway4, subnet4 = "10.61.0.1", "10.61.0.0/16"
	gateway6, subnet6 = "fd61::1", "fd61::/64"
)

func newLinkLab(t *testing.T) linkLab {
	t.Helper()
	l := linkLab{namespace(t, "node"), namespace(t, "fabric")}
	ignoreRouters(t, l.node)
	ignoreRouters(t, l.fabric)
	ip(t, l.fabric, "link add br0 mtu 9000 type bridge", "link set br0 up",
		"addr add "+gateway4+"/16 dev br0", "addr add "+gateway6+"/64 dev br0")
	for _, n := range []string{"0", "1"} {
		l.plug(t, l.node, "par"+n, "far"+n)
	}
	return l
}

// plug connects a new link of a namespace to the bridge, both ends up.
func (l linkLab) plug(t *testing.T, n *testbed.Namespace, name, port string) {
	t.Helper()
	ip(t, l.fabric, fmt.Sprintf("link add %s mtu 9000 type veth peer name %s mtu 9000 netns %s", port, name, n.Name),
		"link set "+port+" master br0 up")
	ip(t, n, "link set "+name+" up")
}

// station is somebody else on the link, with these addresses.
func (l linkLab) station(t *testing.T, name string, addresses ...string) *testbed.Namespace {
	t.Helper()
	n := namespace(t, name)
	ignoreRouters(t, n)
	l.plug(t, n, "wire", name)
	for _, a := range addresses {
		ip(t, n, "addr add "+a+" dev wire")
	}
	return n
}

// linkPod is a pod whose eth0 leads everywhere: what no rail takes leaves by it.
func linkPod(t *testing.T) *testbed.Namespace {
	t.Helper()
	pod := namespace(t, "pod")
	skipDAD(t, pod)
	ip(t, pod, "link add eth0 type dummy", "link set eth0 up", "addr add 172.20.0.5/32 dev eth0", "route add default dev eth0",
		"addr add fd20::5/128 dev eth0", "route add ::/0 dev eth0")
	return pod
}

// skipDAD lets IPv6 addresses be usable at once, on links that come later.
func skipDAD(t *testing.T, n *testbed.Namespace) {
	t.Helper()
	setDefault(t, n, "accept_dad", "0")
}

// ignoreRouters keeps all but the pods from taking part in what a router says, and asking
// for it.
func ignoreRouters(t *testing.T, n *testbed.Namespace) {
	t.Helper()
	skipDAD(t, n)
	setDefault(t, n, "accept_ra", "0")
}

// setDefault sets an IPv6 value for links that come later.
func setDefault(t *testing.T, n *testbed.Namespace, key, value string) {
	t.Helper()
	set(t, n, "ipv6/conf/default/"+key, value)
}

func set(t *testing.T, n *testbed.Namespace, key, value string) {
	t.Helper()
	if err := n.SetSysctl(key, value); err != nil {
		t.Fatal(err)
	}
}

// ip runs ip commands in a namespace, as one process.
func ip(t *testing.T, n *testbed.Namespace, lines ...string) {
	t.Helper()
	if _, err := n.Feed(t.Context(), strings.Join(lines, "\n")+"\n", "ip", "-batch", "-"); err != nil {
		t.Fatalf("%v: %q", err, lines)
	}
}

// macOf is a link's MAC.
func macOf(t *testing.T, n *testbed.Namespace, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(run(t, n, "ip -o link show dev "+name), "link/ether ")
	if !found {
		t.Fatalf("%s of %s has no MAC", name, n.Name)
	}
	mac, _, _ := strings.Cut(rest, " ")
	return mac
}

// mustPing sends pings, as many as it takes for one to come back. One alone, with more
// time, would end at the first error that the network reports.
func mustPing(t *testing.T, n *testbed.Namespace, from, to string, options ...string) {
	t.Helper()
	line := strings.Join(append([]string{"ping -q -c 1 -W 1 -I", from}, append(options, to)...), " ")
	var out string
	var err error
	for range 20 {
		if out, err = try(t.Context(), n, line); err == nil {
			return
		}
	}
	t.Fatalf("%s in %s: %v: %s", line, n.Name, err, out)
}
