//go:build vm

package vm

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// beyond is an address that only the announced default route leads to.
const beyond = "2001:db8:1::1"

// raLab is a pod whose rail railtune tunes, and one whose rail it does not, on the link of
// a router.
type raLab struct {
	router      *router
	tuned, bare *attached
}

// newRALab attaches both rails, without addresses: what they have comes from the router.
// Links that come into the pods start with these IPv6 settings.
func newRALab(t *testing.T, defaults map[string]string, chain []object) raLab {
	t.Helper()
	l := newLinkLab(t)
	host := l.station(t, "router", "fd61:a::1/64")
	set(t, host, "ipv6/conf/all/forwarding", "1")
	ip(t, host, "addr add "+beyond+"/128 dev lo")
	lab := raLab{router: newRouter(t, host, "wire")}
	attach := func(chain []object) *attached {
		pod := namespace(t, "pod")
		skipDAD(t, pod)
		for key, value := range defaults {
			setDefault(t, pod, key, value)
		}
		return rail(t, l.node, pod, "net1", object{"type": "macvlan", "master": "par0", "ipam": object{}}, chain).add(t)
	}
	lab.bare, lab.tuned = attach([]object{{"type": "tuning"}}), attach(chain)
	return lab
}

// own is the address the rail makes itself in the router's prefix (RFC 4291, appendix A).
func (a *attached) own(t *testing.T) string {
	t.Helper()
	var mac [6]byte
	copy(mac[:], parseMAC(t, macOf(t, a.pod, a.ifName)))
	addr := routed.Addr().As16()
	copy(addr[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(addr).String()
}

// hasAddress and hasDefault say what the router gave the rail.
func (a *attached) hasAddress(t *testing.T) bool {
	return strings.Contains(run(t, a.pod, "ip -6 addr show dev net1 -tentative"), a.own(t)+"/64")
}

func (a *attached) hasDefault(t *testing.T) bool {
	return strings.Contains(run(t, a.pod, "ip -6 route show default dev net1"), "proto ra")
}

func (a *attached) hasBoth(t *testing.T) bool { return a.hasAddress(t) && a.hasDefault(t) }

// mustReach asserts that the announced default route is used from the announced address.
func (a *attached) mustReach(t *testing.T, r *router) {
	t.Helper()
	mustRoute(t, a.pod, beyond+" from "+a.own(t), "via "+r.addr.WithZone("").String()+" dev net1")
	mustPing(t, a.pod, a.own(t), beyond)
}

// TestAdvertisementsAccepted has rails whose kernel ignores advertisements when they
// arrive: because forwarding was on in the pod before ADD, or because they are switched
// off there and on in railtune's configuration. railtune sets accept_ra=2 and asks the
// router once, as the kernel has not; nobody asks, or hears the router, without it.
func TestAdvertisementsAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		defaults map[string]string
		chain    []object
	}{
		"forwarding before ADD": {map[string]string{"forwarding": "1"}, with(nil)},
		"switched on by ADD": {
			map[string]string{"accept_ra": "0"},
			with(object{"sysctl": object{"net.ipv6.conf.IFNAME.accept_ra": 2}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newRALab(t, c.defaults, c.chain)
			mac := macOf(t, l.tuned.pod, "net1")
			if from := l.router.solicited(t); from != mac {
				t.Fatalf("the router was solicited by %s, not by %s, the tuned rail", from, mac)
			}
			heard := hearRouters(t, l.bare.pod, "net1")
			l.router.advertise(t, time.Hour)
			until(t, l.tuned.pod, "an address and a default route", func() bool { return l.tuned.hasBoth(t) })
			l.tuned.mustReach(t, l.router)

			// What is heard is also done with when the next one is heard.
			heard()
			l.router.advertise(t, time.Hour)
			heard()
			if l.bare.hasAddress(t) || l.bare.hasDefault(t) {
				t.Error("the rail has what was announced without railtune too: this test shows nothing")
			}
			before := testbed.MustSnapshot(t, l.tuned.pod)
			l.tuned.again(t, "ADD")
			l.tuned.again(t, "CHECK")
			mustBe(t, l.tuned.pod, before, "a second ADD and CHECK changed the pod")
			l.router.mustNotHaveBeenAsked(t)
		})
	}
}

// TestForwardingAfterADD turns forwarding on as a container runtime does with a pod's
// sysctls: after ADD, for all interfaces. That purges default routes and ends the renewal
// of addresses where accept_ra is not 2, however often the router advertises.
func TestForwardingAfterADD(t *testing.T) {
	t.Parallel()
	l := newRALab(t, nil, with(nil))
	l.router.keepAdvertising(t, 6*time.Second)
	for _, r := range []*attached{l.bare, l.tuned} {
		until(t, r.pod, "an address and a default route", func() bool { return r.hasBoth(t) })
		r.mustReach(t, l.router)
		set(t, r.pod, "ipv6/conf/all/forwarding", "1")
	}
	if l.bare.hasDefault(t) {
		t.Error("the rail keeps its default route without railtune too: this test shows nothing")
	}
	until(t, l.bare.pod, "the end of the address without railtune", func() bool { return !l.bare.hasAddress(t) })
	until(t, l.tuned.pod, "an address and a default route", func() bool { return l.tuned.hasBoth(t) })
	l.tuned.mustReach(t, l.router)
	l.tuned.again(t, "CHECK")
}
