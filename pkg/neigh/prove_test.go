package neigh

import (
	"fmt"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/hwaddr"
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
	req.Anycast = []hwaddr.MAC{thiefRail.Link.MAC}
	expect(t, a.prove(req), "10.61.1.1", OK)
}

// A station that stops answering before the second look was on its way out.
func TestOneTimeDuplicateIsNoFalseAlarm(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	old := a.lab.pod()
	old.rail("10.61.1.1/16")
	report := a.proveWith(a.request(1), "10.61.1.1", len(selfSends)+1, func() {
		old.write("net1", "arp_ignore", "8") // it answers nothing any more
	})
	got := expect(t, report, "10.61.1.1", OK, "stopped")
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
	var socket *packet.Socket
	thief.in(thief.ns, func() (err error) {
		socket, err = packet.Open(rail.Link.Index, 0, nil)
		return err
	})
	defer func() { _ = socket.Close() }()
	claim := arp.Question(rail.Link.ethernet(), addrs("10.61.1.1")[0], addrs("10.61.77.7")[0]).Marshal()
	report := a.proveEach(a.request(1), "10.61.1.1", func(int) {
		if err := socket.Send(arp.EtherType, arp.Broadcast, claim); err != nil {
			t.Error(err)
		}
	})
	expect(t, report, "10.61.1.1", Duplicate, rail.Link.MAC.String())
}

// A claim that is heard while the peers are asked is looked into before it is
// believed.
func TestClaimDuringPhase2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arpIgnore string
		want      Verdict
	}{"once": {"8", OK}, "for good": {"0", Duplicate}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _ := twoPods(t, 1)
			thief := a.lab.pod()
			rail := thief.rail("10.61.1.1/16")
			thief.set("net1", "arp_ignore", "8")
			req := a.request(1)
			req.Peers = addrs("10.61.2.1")
			report := a.proveWith(req, "10.61.2.1", 1, func() {
				thief.write("net1", "arp_ignore", c.arpIgnore)
				if err := thief.ns.Do(func(ns.NetNS) error { return Announce(rail.Link, addrs("10.61.1.1")) }); err != nil {
					t.Error(err)
				}
			})
			got := expect(t, report, "10.61.1.1", c.want)
			if len(got.Answers) != 1 || got.Answers[0].Stopped != (c.want == OK) {
				t.Errorf("answers %v", got.Answers)
			}
			expect(t, report, "10.61.2.1", OK)
		})
	}
}

func probeFor(addr string) func(arp.Packet) bool {
	want := addrs(addr)[0]
	return func(p arp.Packet) bool { return p.Operation == arp.Request && p.TargetIP == want }
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
// tuned by its own ADD, and not disturbed by questions meanwhile.
func TestSiblingTunedMeanwhileIsOK(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 2)
	a.set("net2", "arp_ignore", "0")
	req := a.request(1)
	req.Timeout = patient
	looks := 0
	req.EffectiveARPIgnore = func(ifindex int) string {
		if looks++; looks == 3 {
			a.write("net2", "arp_ignore", "1")
		}
		return arpIgnoreOf(ifindex)
	}
	got := expect(t, a.prove(req), "10.61.1.1", OK, "net2", "stopped")
	if len(got.Answers) != 1 || !got.Answers[0].Stopped || got.Answers[0].Owner != "net2" {
		t.Errorf("answers %v, want net2's, stopped", got.Answers)
	}
	if want := 2 * len(selfSends); got.Sent != want {
		t.Errorf("asked %d times, want %d: before and after it was tuned", got.Sent, want)
	}
}

// Where the setting cannot be read anew, only asking can tell.
func TestSiblingTunedMeanwhileIsNoticedWithoutReading(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 2)
	a.set("net2", "arp_ignore", "0")
	a.rails[1].ARPIgnore = "0" // as the caller once read it
	req := a.request(1)
	req.Timeout, req.EffectiveARPIgnore = patient, nil
	// Not before the third round, which a second look alone would not see.
	report := a.proveWith(req, "10.61.1.1", 2*len(selfSends)+1, func() { a.write("net2", "arp_ignore", "1") })
	expect(t, report, "10.61.1.1", OK, "net2", "stopped")
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
