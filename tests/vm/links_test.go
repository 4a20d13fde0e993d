//go:build vm

package vm

import (
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/promise"
)

func macvlan(parent string) object {
	return object{"type": "macvlan", "master": parent, "mode": "bridge"}
}

// TestVLAN has two VLANs of one parent as rails. They share its MAC and have one subnet,
// each with a gateway of the same address, and never meet. When the parent goes down the
// kernel takes them down with it, and up again, but not what was in their tables.
func TestVLAN(t *testing.T) {
	needLink(t, "vlan")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	before := testbed.MustSnapshot(t, pod)
	var rails []*attached
	for i, id := range []string{"100", "200"} {
		gateway := l.station(t, "gw"+id)
		ip(t, gateway, "link add link wire name tagged type vlan id "+id, "link set tagged up", "addr add "+gateway4+"/16 dev tagged")
		r := rail(t, l.node, pod, []string{"net1", "net2"}[i], object{"type": "vlan", "master": "par0", "vlanId": 100 * (i + 1)},
			with(nil), []string{"10.61.0.11/16", "10.61.0.12/16"}[i]).add(t)
		mustNotWarn(t, r.said)
		mustPing(t, pod, r.addr.Addr().String(), gateway4)
		mustFind(t, run(t, pod, "ip neigh show "+gateway4+" dev "+r.ifName), macOf(t, gateway, "tagged"))
		rails = append(rails, r)
	}
	mustHold(t, gateway4, rails...)
	rails[0].must(t, "check")

	ip(t, l.node, "link set par0 down")
	for _, r := range rails {
		r.mustNotLeave(t, gateway4)
	}
	ip(t, l.node, "link set par0 up")
	for _, r := range rails {
		mustHeal(t, r)
	}
	for _, r := range rails {
		r.must(t, "del")
	}
	mustBe(t, pod, before, "left after DEL")
}

// mustHeal is for a rail whose private table a flap has emptied: packets go nowhere,
// CHECK says what is missing, and another ADD puts it right.
func mustHeal(t *testing.T, r *attached) {
	t.Helper()
	r.mustNotLeave(t, gateway4)
	r.mustFail(t, "check", r.ifName, "route missing or changed", r.addr.Masked().String())
	mustNotWarn(t, r.again(t, "ADD"))
	r.must(t, "check")
	mustKeep(t, gateway4, r)
	mustPing(t, r.pod, r.addr.Addr().String(), gateway4)
}

// TestFlap takes a pod's rails and their parents down and up again. Main has another way
// for their packets all the time, by the other rail.
func TestFlap(t *testing.T) {
	needLink(t, "ipvlan")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	rails := []*attached{
		rail(t, l.node, pod, "net1", macvlan("par0"), with(nil), "10.61.0.11/16").add(t),
		rail(t, l.node, pod, "net2", ipvlan("par1", "l2"), with(nil), "10.61.0.12/16").add(t),
	}
	for i, r := range rails {
		ip(t, pod, "link set "+r.ifName+" down")
		r.mustNotLeave(t, gateway4)
		r.mustNotLeave(t, "192.0.2.1")
		mustKeep(t, gateway4, rails[1-i])
		ip(t, pod, "link set "+r.ifName+" up")
		mustHeal(t, r)
	}
	for i, parent := range []string{"par0", "par1"} {
		// The rail loses its carrier only, and keeps its routes, which lead nowhere.
		ip(t, l.node, "link set "+parent+" down")
		mustKeep(t, gateway4, rails...)
		set(t, pod, "ipv4/conf/"+rails[i].ifName+"/ignore_routes_with_linkdown", "1")
		rails[i].mustNotLeave(t, gateway4)
		ip(t, l.node, "link set "+parent+" up")
		mustPing(t, pod, rails[i].addr.Addr().String(), gateway4)
		rails[i].again(t, "CHECK")
	}
}

// TestDummy has a rail that does no ARP, so that nobody can be asked.
func TestDummy(t *testing.T) {
	needLink(t, "dummy")
	t.Parallel()
	node, pod := namespace(t, "node"), linkPod(t)
	r := rail(t, node, pod, "net1", object{"type": "dummy"},
		with(object{"verify": object{"peers": []string{"10.61.0.9"}, "peerMode": "enforce", "requireReply": true}}), "10.61.0.11/16").add(t)
	mustFind(t, r.said, "own 10.61.0.11: skipped", "gateway 10.61.0.1: skipped", "peer 10.61.0.9: skipped", "net1 uses no ARP (NOARP)")
	mustHold(t, gateway4, r)
	r.must(t, "check")
	ip(t, pod, "link set net1 down", "link set net1 up")
	r.mustNotLeave(t, gateway4)
	r.again(t, "ADD")
	mustKeep(t, gateway4, r)
}

// TestVRF has two rails of one subnet in one VRF. The kernel keeps its local and connected
// routes in the VRF's table, and leads sockets bound to the VRF there, by a rule at 1000:
// in that table either rail's connected route may win.
func TestVRF(t *testing.T) {
	needLink(t, "vrf")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	vrf := object{"type": "vrf", "vrfname": "blue"}
	// eth0 lies in this supernet, and is none of the VRF's.
	chain := append([]object{vrf}, with(object{"supernets": []any{object{"dst": "172.16.0.0/12"}}})...)
	rails := []*attached{
		rail(t, l.node, pod, "net1", macvlan("par0"), chain, "10.61.0.11/16", "fd61::11/64").add(t),
		rail(t, l.node, pod, "net2", macvlan("par1"), chain, "10.61.0.12/16", "fd61::12/64").add(t),
	}
	for _, r := range rails {
		mustNotWarn(t, r.said)
		own4, own6 := r.addr.Addr().String(), strings.Replace(r.addr.Addr().String(), "10.61.0.", "fd61::", 1)
		for _, bound := range []string{"", " oif " + r.ifName, " oif blue"} {
			mustRoute(t, pod, gateway4+" from "+own4+bound, "dev "+r.ifName)
			mustRoute(t, pod, "172.31.0.1 from "+own4+bound, "via "+gateway4+" dev "+r.ifName)
			mustRoute(t, pod, gateway6+" from "+own6+bound, "dev "+r.ifName)
			mustRoute(t, pod, own4+" from "+own4+bound, "local "+own4)
			mustRoute(t, pod, own6+" from "+own6+bound, "local "+own6)
		}
		for _, to := range []string{gateway4, own4} {
			mustPing(t, pod, "blue", to, "-I", own4)
		}
		mustPing(t, pod, r.ifName, gateway6)
		mustFind(t, run(t, l.fabric, "ip neigh show "+own4), macOf(t, pod, r.ifName))
	}
	// Sockets that belong to no rail are led as before, those of the VRF find the supernet.
	mustRoute(t, pod, "172.31.0.1", "dev eth0")
	mustRoute(t, pod, "172.31.0.1 oif blue", "via "+gateway4+" dev net1 table 1")
	mustHold(t, gateway4, rails...)

	ip(t, pod, "link set net1 down", "link set net1 up")
	rails[0].mustNotLeave(t, gateway4)
	mustKeep(t, gateway4, rails[1])
	rails[0].again(t, "ADD")
	mustKeep(t, gateway4, rails[0])
	for _, r := range rails {
		r.must(t, "del")
	}
	if err := promise.Gone(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

// mustRoute asserts where the kernel sends a packet.
func mustRoute(t *testing.T, pod *testbed.Namespace, question, want string) {
	t.Helper()
	out, err := try(t.Context(), pod, "ip route get "+question)
	if out = strings.Join(strings.Fields(out), " "); err != nil || !strings.Contains(out+" ", want+" ") {
		t.Errorf("route get %s: %q (%v), want %s", question, out, err, want)
	}
}

// TestVRFAfterRailtune enters the VRF last. The kernel takes the rail down and up for
// that: nothing leaves by another interface, and CHECK and another ADD do their part.
func TestVRFAfterRailtune(t *testing.T) {
	needLink(t, "vrf")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	r := rail(t, l.node, pod, "net1", macvlan("par0"), append(with(nil), object{"type": "vrf", "vrfname": "blue"}), "10.61.0.11/16").add(t)
	r.entry = with(nil)[0]
	r.mustNotLeave(t, gateway4)
	if o := r.alone(t, l.node, "CHECK"); o.Exit == 0 {
		t.Error("CHECK finds nothing missing")
	} else {
		mustFind(t, o.Stdout, "route missing or changed", "local 10.61.0.11", "10.61.0.0/16")
	}
	r.again(t, "ADD")
	mustKeep(t, gateway4, r)
	mustPing(t, pod, "blue", gateway4, "-I", "10.61.0.11")
}
