//go:build vm

package vm

import (
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

func ipvlan(parent, mode string) object {
	return object{"type": "ipvlan", "master": parent, "mode": mode}
}

// TestIPVLAN has a pod with three rails on two parents and another with one on the first
// of them, all in one subnet, in the mode in which children do ARP.
func TestIPVLAN(t *testing.T) {
	needLink(t, "ipvlan")
	t.Parallel()
	l := newLinkLab(t)
	a, b := linkPod(t), linkPod(t)
	before := testbed.MustSnapshot(t, a)
	l.station(t, "peer", "10.61.0.9/16")
	e := with(object{"logLevel": "debug", "verify": object{"peers": []string{"10.61.0.9"}, "timeout": "5s"}})
	rails := []*attached{
		rail(t, l.node, a, "net1", ipvlan("par0", "l2"), e, "10.61.0.11/16"),
		rail(t, l.node, a, "net2", ipvlan("par0", "l2"), e, "10.61.0.12/16"),
		rail(t, l.node, a, "net3", ipvlan("par1", "l2"), e, "10.61.0.13/16"),
	}
	for _, r := range rails {
		mustNotWarn(t, r.add(t).said)
	}
	other := rail(t, l.node, b, "net1", ipvlan("par0", "l2"), e, "10.61.0.21/16").add(t)
	mustNotWarn(t, other.said)
	mustFind(t, other.said, "nobody else on par0, the parent of net1, answers for 10.61.0.21", "10.61.0.9 is answered by")

	for i, parent := range []string{"par0", "par0", "par1"} {
		from := rails[i].addr.Addr().String()
		mustPing(t, a, from, gateway4)
		mustPing(t, a, from, "10.61.0.21")
		// I.e. by its own parent, both ways.
		mustFind(t, run(t, l.fabric, "ip neigh show "+from), macOf(t, l.node, parent))
	}
	settled(t, rails...)
	mustHold(t, gateway4, rails...)
	for _, r := range rails {
		r.must(t, "del")
	}
	mustBe(t, a, before, "left after DEL")
	mustKeep(t, gateway4, other)
}

// settled waits for the link-local addresses, which come some time after the link, so
// that snapshots before and after them do not differ.
func settled(t *testing.T, rails ...*attached) {
	t.Helper()
	for _, r := range rails {
		if err := r.pod.SettleAddresses(r.ifName); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIPVLANByRouting is the same in the modes that do no ARP: the children have subnets
// of their own, which others reach through the node.
func TestIPVLANByRouting(t *testing.T) {
	needLink(t, "ipvlan")
	for _, mode := range []string{"l3", "l3s"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := newLinkLab(t)
			ip(t, l.node, "addr add 10.61.0.2/16 dev par0", "addr add 10.61.0.3/16 dev par1")
			ip(t, l.fabric, "route add 10.62.0.0/24 via 10.61.0.2", "route add 10.63.0.0/24 via 10.61.0.3")
			a, b := linkPod(t), linkPod(t)
			by := func(gw string) []object {
				return with(object{"supernets": []any{object{"dst": "10.60.0.0/14", "gw": gw}}})
			}
			rails := []*attached{
				rail(t, l.node, a, "net1", ipvlan("par0", mode), by("10.62.0.1"), "10.62.0.11/24"),
				rail(t, l.node, a, "net2", ipvlan("par0", mode), by("10.62.0.1"), "10.62.0.12/24"),
				rail(t, l.node, a, "net3", ipvlan("par1", mode), by("10.63.0.1"), "10.63.0.13/24"),
			}
			rail(t, l.node, b, "net1", ipvlan("par0", mode), by("10.62.0.1"), "10.62.0.21/24").add(t)
			for _, r := range rails {
				addr := r.addr.Addr().String()
				mustFind(t, r.add(t).said, "own "+addr+": skipped", r.ifName+" uses no ARP (NOARP)")
				mustPing(t, a, addr, gateway4)
			}
			mustPing(t, a, "10.62.0.11", "10.62.0.21")
			if mode == "l3" { // the modes are one to railtune, and this takes a while
				settled(t, rails...)
				mustHold(t, gateway4, rails...)
			}
			mustKeep(t, gateway4, rails...)
		})
	}
}

// TestIPVLANDuplicate gives the rail's address to a station on the parent's link. The
// probe that finds it goes out by the parent, in the namespace the plugin was called in;
// from elsewhere the parent cannot be reached, and silence must not pass for an answer.
func TestIPVLANDuplicate(t *testing.T) {
	needLink(t, "ipvlan")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	thief := l.station(t, "thief", "10.61.0.11/16")
	mac := macOf(t, thief, "wire")
	// A peer that nobody is has the proof listen to the end of the timeout: a processor of
	// an emulated machine may stand still, with the thief's answer, for longer than a proof.
	patient := with(object{"verify": object{"timeout": "5s", "peers": []string{"10.61.0.99"}}})

	whole := rail(t, l.node, pod, "net1", ipvlan("par0", "l2"), patient, "10.61.0.11/16")
	whole.mustFail(t, "add", "duplicate", mac)
	whole.must(t, "del")

	// Without railtune the plugin sees nothing wrong.
	r := rail(t, l.node, pod, "net1", ipvlan("par0", "l2"), []object{{"type": "tuning"}}, "10.61.0.11/16").add(t)
	r.entry = patient[0]
	r.mustRefuse(t, 103, "duplicate", "10.61.0.11", mac)

	r.entry = with(nil)[0]
	mustFind(t, r.alone(t, l.fabric, "ADD").Stderr, "own 10.61.0.11: skipped", "ipvlan", "its parent was not to be used")
	r.again(t, "DEL")

	ip(t, l.node, "link set par0 down")
	mustFind(t, r.again(t, "ADD"), "own 10.61.0.11: skipped", "no carrier")
	r.again(t, "DEL")
	ip(t, l.node, "link set par0 up")

	ip(t, thief, "addr del 10.61.0.11/16 dev wire", "addr add 10.61.0.12/16 dev wire")
	mustNotWarn(t, r.again(t, "ADD"))
	mustPing(t, pod, "10.61.0.11", "10.61.0.12")
}

// TestIPVLANOneMACOnTwoParents: children of one parent have one MAC by design, those of
// two that share one do not.
func TestIPVLANOneMACOnTwoParents(t *testing.T) {
	needLink(t, "ipvlan")
	t.Parallel()
	l, pod := newLinkLab(t), linkPod(t)
	mac := macOf(t, l.node, "par0")
	ip(t, l.node, "link set par1 down", "link set par1 address "+mac, "link set par1 up")
	rail(t, l.node, pod, "net1", ipvlan("par0", "l2"), with(nil), "10.61.0.11/16").add(t)
	rail(t, l.node, pod, "net2", ipvlan("par1", "l2"), with(nil), "10.61.0.13/16").
		mustFail(t, "add", "net1", "net2", mac, "in one subnet")
}

func mustNotWarn(t *testing.T, said string) {
	t.Helper()
	if strings.Contains(said, "warning") {
		t.Errorf("a false alarm: %s", said)
	}
}
