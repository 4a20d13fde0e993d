package neigh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// twoPods are two pods with n tuned rails each: 10.61.1.k and 10.61.2.k.
func twoPods(t testing.TB, n int) (a, b *pod) {
	t.Helper()
	l := newLab(t)
	a, b = l.pod(), l.pod()
	for k := 1; k <= n; k++ {
		a.tune(a.rail(fmt.Sprintf("10.61.1.%d/16", k)))
		b.tune(b.rail(fmt.Sprintf("10.61.2.%d/16", k)))
	}
	return a, b
}

func peersOf(p *pod) (list []string) {
	for _, r := range p.rails {
		for _, a := range r.Addrs {
			list = append(list, a.Addr().String())
		}
	}
	return list
}

func TestCleanRailsAreOK(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 4)
	gateway := a.lab.pod()
	gateway.rail("10.61.0.1/16")
	req := a.request(1)
	req.Gateways, req.Peers = addrs("10.61.0.1"), addrs(peersOf(b)...)
	report := a.prove(req)
	var order []string
	for _, r := range report.Results {
		if r.Verdict != OK || r.Severe() {
			t.Errorf("false alarm: %s", r)
		}
		order = append(order, fmt.Sprintf("%s %s", r.Role, r.Addr))
	}
	want := "own 10.61.1.1, sibling 10.61.1.2, sibling 10.61.1.3, sibling 10.61.1.4, gateway 10.61.0.1, " +
		"peer 10.61.2.1, peer 10.61.2.2, peer 10.61.2.3, peer 10.61.2.4"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("order of the report:\n got %s\nwant %s", got, want)
	}
	for i, r := range b.rails {
		got := find(t, report, r.Addrs[0].Addr().String())
		if len(got.Answers) != 1 || got.Answers[0].MAC.String() != r.Link.MAC.String() {
			t.Errorf("peer rail %d: answers %v, want its MAC %s", i+1, got.Answers, r.Link.MAC)
		}
	}
	if got := find(t, report, "10.61.1.2"); len(got.Answers) != 1 || got.Answers[0].Owner != "net2" {
		t.Errorf("the sibling's answer has owner %v, want net2", got.Answers)
	}
	if report.Probes == 0 || report.Elapsed == 0 {
		t.Errorf("probes %d, elapsed %s", report.Probes, report.Elapsed)
	}
	// Asking makes no entries here.
	if got := a.entry(req.Rail.Link, "10.61.0.1"); got != "" {
		t.Errorf("the proof left an entry for the gateway: %s", got)
	}
}

func TestForeignOwnerIsADuplicateAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 1)
	gateway := a.lab.pod()
	gatewayRail := gateway.rail("10.61.0.1/16")
	thief := a.lab.pod()
	thiefRail := thief.rail("10.61.1.1/16")
	req := a.request(1)
	// The peers may be a whole subnet, with our own address in it.
	req.Gateways, req.Peers = addrs("10.61.0.1"), addrs("10.61.2.1", "10.61.1.1")
	report := a.prove(req)
	got := expect(t, report, "10.61.1.1", Duplicate, thiefRail.Link.MAC.String(), "net1")
	if !got.Severe() {
		t.Error("a duplicate of an own address is not severe")
	}
	expect(t, report, "10.61.0.1", Skipped, "10.61.1.1")
	expect(t, report, "10.61.2.1", Skipped, "10.61.1.1")
	for name, e := range map[string]string{
		"the thief":   thief.entry(thiefRail.Link, "10.61.1.1"),
		"the gateway": gateway.entry(gatewayRail.Link, "10.61.1.1"),
		"the peer":    b.entry(b.rails[0].Link, "10.61.1.1"),
	} {
		if e != "" {
			t.Errorf("%s has an entry %s for an address that was not proven", name, e)
		}
	}
	// A virtual router's MAC that was declared is no intruder.
	req.Anycast = []net.HardwareAddr{thiefRail.Link.MAC}
	expect(t, a.prove(req), "10.61.1.1", OK)
}

// A station that stops answering before the second look was on its way out.
func TestOneTimeDuplicateIsNoFalseAlarm(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	old := a.lab.pod()
	rail := old.rail("10.61.1.1/16")
	a.onARP(a.rails[0].Link, replyOf("10.61.1.1", rail.Link), func() bool {
		old.write("net1", "arp_ignore", "8") // it answers nothing any more
		return false
	})
	got := expect(t, a.prove(a.request(1)), "10.61.1.1", OK, "stopped")
	if len(got.Answers) != 1 || !got.Answers[0].Stopped {
		t.Errorf("answers %v, want one that stopped", got.Answers)
	}
}

// Somebody who does not answer but asks with our address claims it as well.
func TestClaimByRequestIsEvidence(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	thief := a.lab.pod()
	rail := thief.rail("10.61.9.9/16")
	thief.tune(rail)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- thief.ns.Do(func(ns.NetNS) error {
			socket, err := packet.Open(rail.Link.Index, 0, nil)
			if err != nil {
				return err
			}
			defer func() { _ = socket.Close() }()
			claim := arp.Question(rail.Link.ethernet(), addrs("10.61.1.1")[0], addrs("10.61.77.7")[0]).Marshal()
			for ctx.Err() == nil && err == nil {
				err = socket.Send(arp.EtherType, arp.Broadcast, claim)
			}
			return err
		})
	}()
	expect(t, a.prove(a.request(1)), "10.61.1.1", Duplicate, rail.Link.MAC.String())
	stop()
	if err := <-done; err != nil && !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}

func probeFor(addr string) func(arp.Packet) bool {
	want := addrs(addr)[0]
	return func(p arp.Packet) bool { return p.Operation == arp.Request && p.TargetIP == want }
}

func replyOf(addr string, link Link) func(arp.Packet) bool {
	want := addrs(addr)[0]
	return func(p arp.Packet) bool {
		return p.Operation == arp.Reply && p.SenderIP == want && p.SenderMAC == link.ethernet()
	}
}

func TestUntunedSiblingIsFlux(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 3)
	a.set("net3", "arp_ignore", "0")
	report := a.prove(a.request(1))
	got := expect(t, report, "10.61.1.1", Flux, "net3", a.rails[2].Link.MAC.String(), "arp_ignore is 0")
	if !got.Severe() {
		t.Error("a sibling that answers for an own address is not severe")
	}
	sibling := expect(t, report, "10.61.1.2", Flux, "net3")
	if sibling.Severe() {
		t.Error("what is wrong between two siblings fails this rail")
	}
	expect(t, report, "10.61.1.3", OK)
}

// Sixteen rails may be attached at once: a sibling is given the time to be
// tuned by its own ADD.
func TestSiblingTunedMeanwhileIsOK(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 2)
	a.set("net2", "arp_ignore", "0")
	probes := 0
	a.onARP(a.rails[1].Link, probeFor("10.61.1.1"), func() bool {
		// Only with the last question of the first round: a single look sees it answer.
		if probes++; probes < len(selfSends) {
			return true
		}
		_ = write("/proc/sys/net/ipv4/conf/net2/arp_ignore", "1")
		return false
	})
	req := a.request(1)
	req.Timeout = patient
	got := expect(t, a.prove(req), "10.61.1.1", OK, "net2", "stopped")
	if len(got.Answers) != 1 || !got.Answers[0].Stopped || got.Answers[0].Owner != "net2" {
		t.Errorf("answers %v, want net2's, stopped", got.Answers)
	}
}

// A rail that was attached after the caller looked is a sibling all the same.
func TestNewcomerIsRecognisedAsSibling(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	req := a.request(1)
	a.rail("10.61.1.2/16")
	expect(t, a.prove(req), "10.61.1.1", Flux, "net2", "arp_ignore is 0")
}

func TestSiblingWithoutItsOwnAddressIsWrongRail(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 3)
	a.set("net2", "arp_ignore", "8") // the owner is silent
	a.set("net3", "arp_ignore", "0") // another rail answers in its place
	got := expect(t, a.prove(a.request(1)), "10.61.1.2", WrongRail, "net3")
	if got.Severe() {
		t.Error("what is wrong between two siblings fails this rail")
	}
}

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
	a.onARP(a.rails[0].Link, replyOf("10.61.2.1", b.rails[1].Link), func() bool {
		b.write("net1", "arp_ignore", "8")
		b.write("net2", "arp_ignore", "8")
		return false
	})
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	expect(t, a.prove(req), "10.61.2.1", Flux, "2 MACs")
}

// A bridge port in hairpin mode sends our own questions back.
func TestOwnFramesComingBackAreHealthy(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 2)
	a.plug(1, func(l netlink.Link) error { return netlink.LinkSetHairpin(l, true) })
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	report := a.prove(req)
	if got := expect(t, report, "10.61.1.1", OK); len(got.Answers) != 1 || got.Answers[0].Owner != "net1" {
		t.Errorf("answers %v, want our own frames", got.Answers)
	}
	expect(t, report, "10.61.2.1", OK)
}

// The peer's pod is being started as well and tunes itself once it answered.
func TestPeerTunedMeanwhileIsOK(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 2)
	b.set("net2", "arp_ignore", "0")
	a.onARP(a.rails[0].Link, replyOf("10.61.2.1", b.rails[1].Link), func() bool {
		b.write("net2", "arp_ignore", "1")
		return false
	})
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	expect(t, a.prove(req), "10.61.2.1", OK, "stopped")
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
	req.Anycast = []net.HardwareAddr{second.Link.MAC}
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
	req.Anycast = []net.HardwareAddr{rail.Link.MAC}
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
	link := Link{Index: 7, Name: "net1", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Up: true, Carrier: true, ARPType: arpEthernet}
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

func TestPointToPointPrefix(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, s := l.pod(), l.pod()
	a.tune(a.rail("10.62.0.0/31"))
	s.rail("10.62.0.1/31")
	req := a.request(1)
	req.Gateways = addrs("10.62.0.1")
	report := a.prove(req)
	expect(t, report, "10.62.0.0", OK)
	expect(t, report, "10.62.0.1", OK)
}

// The gateway's one MAC on all rails is healthy, and so are two addresses on one.
func TestSeveralAddressesOnOneRail(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, s := l.pod(), l.pod()
	a.tune(a.rail("10.61.1.1/16", "10.62.1.1/16"), a.rail("10.61.1.2/16", "10.63.1.2/16"))
	s.rail("10.61.0.1/16", "10.62.0.1/16")
	req := a.request(1)
	req.Gateways = addrs("10.61.0.1", "10.62.0.1")
	report := a.prove(req)
	for _, r := range report.Results {
		if r.Verdict != OK {
			t.Errorf("false alarm: %s", r)
		}
		if r.Addr.String() == "10.63.1.2" {
			t.Error("a sibling's address in another subnet was asked about")
		}
	}
	if len(report.Results) != 5 {
		t.Errorf("%d results, want 5", len(report.Results))
	}
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
		if got.Sent != 2 || got.Severe() {
			t.Errorf("%s: asked %d times in 120 ms, want 2 (0 and 50 ms); severe %v", p, got.Sent, got.Severe())
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
