package neigh

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/neigh/arp"
)

func TestUntunedPeerIsFlux(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := l.pod(), l.pod()
	for k := 1; k <= 4; k++ {
		a.tune(a.rail(fmt.Sprintf("10.61.1.%d/16", k)))
		b.rail(fmt.Sprintf("10.61.2.%d/16", k))
	}
	req := a.request(1)
	req.Peers = addrs(peersOf(b)...)
	report := a.prove(req)
	for _, peer := range peersOf(b) {
		got := expect(t, report, peer, Flux, "4 MACs", "arp_ignore=1")
		if len(got.Answers) != 4 || !got.Severe() {
			t.Errorf("%s: %d answers, severe %v", peer, len(got.Answers), got.Severe())
		}
		for _, r := range b.rails {
			if !contains(got.Message, r.Link.MAC.String()) {
				t.Errorf("%s: the message does not list %s: %s", peer, r.Link.MAC, got.Message)
			}
		}
	}
	b.tune(b.rails...)
	report = a.prove(req)
	for _, peer := range peersOf(b) {
		expect(t, report, peer, OK)
	}
}

// A second look that hears nobody proves nothing against the first.
func TestFluxThenSilenceStaysFlux(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 2)
	b.set("net2", "arp_ignore", "0")
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	report := a.proveWith(req, "10.61.2.1", 2, func() {
		b.write("net1", "arp_ignore", "8")
		b.write("net2", "arp_ignore", "8")
	})
	expect(t, report, "10.61.2.1", Flux, "2 MACs")
}

// The peer's pod is being started as well and tunes itself once it answered.
func TestPeerTunedMeanwhileIsOK(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 2)
	b.set("net2", "arp_ignore", "0")
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	report := a.proveWith(req, "10.61.2.1", 2, func() { b.write("net2", "arp_ignore", "1") })
	expect(t, report, "10.61.2.1", OK, "stopped")
}

func TestGatewayWithTwoMACs(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	one, two := a.lab.pod(), a.lab.pod()
	first, second := one.rail("10.61.0.1/16"), two.rail("10.61.0.1/16")
	req := a.request(1)
	req.Gateways = addrs("10.61.0.1")
	got := expect(t, a.prove(req), "10.61.0.1", Flux, "2 MACs", "anycastMACs")
	if !got.Severe() {
		t.Error("a gateway with two MACs is not severe")
	}
	req.Anycast = []hwaddr.MAC{second.Link.MAC}
	expect(t, a.prove(req), "10.61.0.1", OK, first.Link.MAC.String())
}

func TestProxyARPIsReportedAndHealthy(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 1)
	router := a.lab.pod()
	router.rail("10.61.0.1/16")
	router.in(router.ns, func() error {
		return joined(
			write("/proc/sys/net/ipv4/conf/net1/proxy_arp", "1"),
			write("/proc/sys/net/ipv4/neigh/net1/proxy_delay", "0"),
			write("/proc/sys/net/ipv4/conf/all/forwarding", "1"),
			routeVia("lo", "10.61.3.0/24"), routeVia("lo", "10.61.2.1/32"),
		)
	})
	req := a.request(1)
	req.Gateways, req.Peers = addrs("10.61.0.1"), addrs("10.61.3.1", "10.61.3.2", "10.61.2.1")
	report := a.prove(req)
	expect(t, report, "10.61.0.1", OK)
	for _, peer := range []string{"10.61.3.1", "10.61.3.2"} {
		if got := expect(t, report, peer, Proxied, "gateway"); got.Severe() {
			t.Errorf("%s: a proxied peer is severe", peer)
		}
	}
	expect(t, report, "10.61.2.1", Proxied, b.rails[0].Link.MAC.String())
}

// routeVia makes a pod believe that a subnet is behind another of its links.
func routeVia(link, subnet string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	_, dst, err := net.ParseCIDR(subnet)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK})
}

func TestPeersWithOneMACAreShared(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	other := a.lab.pod()
	rail := other.rail("10.61.5.1/16", "10.61.5.2/16")
	req := a.request(1)
	req.Peers = addrs("10.61.5.1", "10.61.5.2")
	report := a.prove(req)
	expect(t, report, "10.61.5.1", Shared, "10.61.5.2", rail.Link.MAC.String())
	if got := expect(t, report, "10.61.5.2", Shared, "10.61.5.1"); !got.Severe() {
		t.Error("two declared NICs with one MAC are not severe")
	}
	// The same as a gateway's addresses, or on ipvlan, or declared: healthy.
	req.Anycast = []hwaddr.MAC{rail.Link.MAC}
	expect(t, a.prove(req), "10.61.5.1", OK)
	req.Anycast, req.Rail.Link.Kind = nil, "ipvlan"
	report = a.prove(req)
	expect(t, report, "10.61.5.1", OK)
	expect(t, report, "10.61.5.2", OK)
}

func TestPeerAnsweredByOwnSiblingIsWrongRail(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 2)
	a.in(a.ns, func() error {
		return joined(
			address("net2", "10.61.2.9/16"),
			address("net2", "10.61.0.1/16"),
			write("/proc/sys/net/ipv4/conf/net2/accept_local", "1"),
		)
	})
	req := a.request(1) // as the caller saw it before: net2 does not own them
	req.Gateways, req.Peers = addrs("10.61.0.1"), addrs("10.61.2.9")
	report := a.prove(req)
	for _, addr := range []string{"10.61.2.9", "10.61.0.1"} {
		if got := expect(t, report, addr, WrongRail, "net2", a.rails[1].Link.MAC.String()); !got.Severe() {
			t.Errorf("%s: not severe", addr)
		}
	}
}

// A switch delivers to one of two ports with the same MAC, so that a peer with
// ours is mostly silent; what is judged here is the answer that got through.
func TestPeerWithOurMACIsShared(t *testing.T) {
	t.Parallel()
	link := Link{Index: 7, Name: "net1", MAC: hwaddr.MAC{2, 0, 0, 0, 0, 1}, Up: true, Carrier: true, ARPType: arpEthernet}
	for kind, want := range map[string]Verdict{"": Shared, "ipvlan": OK} {
		link.Kind = kind
		p, err := plan(Request{
			Rail:  Rail{Link: link, Addrs: []netip.Prefix{netip.MustParsePrefix("10.61.1.1/16")}},
			Peers: addrs("10.61.2.1"),
		})
		if err != nil {
			t.Fatal(err)
		}
		p.peers[0].sent = 1
		p.peers[0].hear(link.ethernet(), time.Now())
		expect(t, Report{Results: p.judge()}, "10.61.2.1", want)
	}
}

func TestOwnAndSiblingAddressesAmongPeersAreSkipped(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 2)
	req := a.request(1)
	req.Gateways = addrs("10.61.2.2")
	req.Peers = addrs("10.61.1.1", "10.61.1.2", "10.61.2.1", "10.61.2.1", "10.61.2.2", "::ffff:10.61.2.1")
	var got []string
	for _, r := range a.prove(req).Results {
		got = append(got, fmt.Sprintf("%s %s %s", r.Role, r.Addr, r.Verdict))
	}
	want := "own 10.61.1.1 ok, sibling 10.61.1.2 ok, gateway 10.61.2.2 ok, " +
		"peer 10.61.1.1 skipped, peer 10.61.1.2 skipped, peer 10.61.2.1 ok"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	_ = b
}

// Sixteen silent peers are asked together, not one after the other: every first
// question is on the wire before any second one.
func TestSilentPeersCostOneTimeout(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 1)
	seen := make(chan arp.Packet, 1000)
	b.onARP(b.rails[0].Link, func(p arp.Packet) bool {
		if p.Operation == arp.Request && p.TargetIP.As4()[2] == 77 {
			seen <- p
		}
		return false
	}, nil)
	req := a.request(1)
	req.Timeout = 120 * time.Millisecond
	for i := range 16 {
		req.Peers = append(req.Peers, addrs(fmt.Sprintf("10.61.77.%d", i+1))...)
	}
	report := a.prove(req)
	for _, p := range req.Peers {
		got := expect(t, report, p.String(), Silent, "nobody answered")
		if got.Sent < 1 || got.Sent > 2 || got.Severe() {
			t.Errorf("%s: asked %d times in 120 ms, want 2 (0 and 50 ms) or, where the machine is busy, 1; severe %v",
				p, got.Sent, got.Severe())
		}
	}
	first := map[string]bool{}
	for range 16 {
		first[(<-seen).TargetIP.String()] = true
	}
	if len(first) != 16 {
		t.Errorf("the first 16 questions were about %d peers", len(first))
	}
}
