//go:build vm

package vm

import (
	"maps"
	"testing"
)

// TestSmallMTU has rails whose MTU is below IPv6's least, from the start and later: the
// kernel then keeps no IPv6 settings for them, and gives them defaults when it grows.
func TestSmallMTU(t *testing.T) {
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	small := macvlan("par0")
	small["mtu"] = 1200
	r := rail(t, l.node, pod, "net1", small, with(nil), "10.61.0.11/16").add(t)
	mustFind(t, r.said, "MTU below 1280", "skipped net.ipv6.conf.net1.accept_ra")
	mustPing(t, pod, "10.61.0.11", gateway4, "-M", "do", "-s", "1172")
	mustHold(t, gateway4, r)

	shrunk := append([]object{{"type": "tuning", "mtu": 1200}}, with(nil)...)
	rail(t, l.node, pod, "net2", macvlan("par1"), shrunk, "10.61.0.12/16", "fd61::12/64").
		mustFail(t, "add", "fd61::12 cannot be used on net2", "its MTU is 1200", "1280")

	pod = linkPod(t)
	r = rail(t, l.node, pod, "net1", macvlan("par1"), with(nil), "fd61::13/64", "10.61.0.13/16").add(t)
	mustPing(t, pod, "fd61::13", gateway6)
	ip(t, pod, "link set net1 mtu 1200")
	r.mustNotLeave(t, gateway6)
	mustRoute(t, pod, gateway4+" from 10.61.0.13", "dev net1")
	mustFind(t, r.alone(t, l.node, "CHECK").Stdout, "fd61::13 cannot be used on net1", "its MTU is 1200")

	ip(t, pod, "link set net1 mtu 1500")
	r.mustNotLeave(t, gateway6)
	mustFind(t, r.alone(t, l.node, "CHECK").Stdout, "fd61::13 is not on net1")
	ip(t, pod, "addr add fd61::13/64 dev net1 nodad")
	r.again(t, "ADD")
	r.again(t, "CHECK")
	mustKeep(t, gateway4, r)
	mustPing(t, pod, "fd61::13", gateway6)
}

// TestJumboMTU has the MTU that InfiniBand's largest packets need, on an ipvlan child of a
// parent with a larger one: the private table's routes carry packets as long as that.
func TestJumboMTU(t *testing.T) {
	needLink(t, "ipvlan")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	jumbo := maps.Clone(ipvlan("par0", "l2"))
	jumbo["mtu"] = 4220
	ip(t, l.node, "link set par0 mtu 9000")
	r := rail(t, l.node, pod, "net1", jumbo, with(nil), "10.61.0.11/16", "fd61::11/64").add(t)
	mustNotWarn(t, r.said)
	mustPing(t, pod, "10.61.0.11", gateway4, "-M", "do", "-s", "4192")
	mustPing(t, pod, "fd61::11", gateway6, "-M", "do", "-s", "4172")
	if out, err := try(t.Context(), pod, "ping -c 1 -w 20 -M do -s 4193 -I 10.61.0.11 "+gateway4); err == nil {
		t.Errorf("a longer packet than the MTU went out whole: %s", out)
	}
	mustKeep(t, gateway4, r)
	r.again(t, "CHECK")
}
