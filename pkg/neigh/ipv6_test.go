package neigh

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/neigh/internal/poll"
	"github.com/railtune/railtune/pkg/neigh/nd"
)

// pod6 is a pod with IPv6, whose links take no part in autoconfiguration and
// detect duplicates with one probe.
func (l *lab) pod6() *pod {
	l.Helper()
	p := l.pod()
	l.in(p.ns, func() error {
		conf := "/proc/sys/net/ipv6/conf/default/"
		return joined(
			write(conf+"disable_ipv6", "0"), write(conf+"accept_ra", "0"), write(conf+"router_solicitations", "0"),
			write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0"),
		)
	})
	return p
}

// linkLocal waits by events until a rail's link-local address is usable.
func (p *pod) linkLocal(link Link) (addr netip.Addr) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	p.in(p.ns, func() error {
		states, err := nd.States(link.Index)
		for a := range states {
			if a.IsLinkLocalUnicast() {
				addr = a
			}
		}
		if err != nil {
			return err
		}
		pending, err := WaitDAD(ctx, link.Index, []netip.Addr{addr})
		if len(pending) > 0 {
			p.Fatalf("%s on %s is still tentative", addr, link.Name)
		}
		return err
	})
	return addr
}

func TestIPv6Neighbours(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, one, two := l.pod6(), l.pod6(), l.pod6()
	rail := a.rail("fd5a::1/64", "10.61.1.1/16")
	first := one.rail("fd5a::a/64", "fd5a::b/64", "fd5a::c/64")
	second := two.rail("fd5a::c/64", "fd5a::d/64")
	a.tune(rail)
	gateway := one.linkLocal(first.Link)
	a.linkLocal(rail.Link)
	req := a.request(1)
	req.Gateways = []netip.Addr{gateway}
	req.Peers = addrs("fd5a::a", "fd5a::c", "fd5a::d", "fd5a::77")
	report := a.prove(req)
	expect(t, report, "fd5a::1", Skipped, "nodad")
	expect(t, report, gateway.String(), OK, first.Link.MAC.String())
	expect(t, report, "fd5a::a", Proxied) // it is on the gateway's NIC
	expect(t, report, "fd5a::c", Proxied, second.Link.MAC.String())
	expect(t, report, "fd5a::d", OK, second.Link.MAC.String())
	expect(t, report, "fd5a::77", Silent)

	req.Gateways = nil
	report = a.prove(req)
	expect(t, report, "fd5a::c", Flux, "2 MACs")

	req.Peers = addrs("fd5a::a", "fd5a::b")
	report = a.prove(req)
	expect(t, report, "fd5a::a", Shared, "fd5a::b")
	// Asking makes no entry in the kernel's table, not even for multicast groups.
	if got := a.entry(rail.Link, "ff02::1:ff00:77"); got != "" {
		t.Errorf("the proof left a multicast entry: %s", got)
	}
}

func TestDADStateIsTheVerdictOnOwnIPv6(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, thief := l.pod6(), l.pod6()
	rail := a.rail()
	other := thief.rail("fd5a::2/64")
	detect := func(addr string) {
		a.in(a.ns, func() error {
			link, err := netlink.LinkByName("net1")
			if err != nil {
				return err
			}
			x, err := netlink.ParseAddr(addr)
			if err != nil {
				return err
			}
			return netlink.AddrAdd(link, x)
		})
		rail.Addrs = append(rail.Addrs, netip.MustParsePrefix(addr))
		a.rails[0] = rail
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	wait := func(ctx context.Context, list ...string) (pending []netip.Addr, err error) {
		a.in(a.ns, func() error {
			pending, err = WaitDAD(ctx, rail.Link.Index, addrs(list...))
			return nil
		})
		return pending, err
	}

	detect("fd5a::1/64")
	// A context that is over still looks once, and says what it saw.
	if pending, err := wait(over, "fd5a::1"); err != nil || len(pending) != 1 {
		t.Errorf("at once: pending %v, error %v", pending, err)
	}
	expect(t, a.prove(a.request(1)), "fd5a::1", Skipped, "still running")
	if pending, err := wait(context.Background(), "fd5a::1", "10.61.1.1"); err != nil || len(pending) != 0 {
		t.Errorf("in the end: pending %v, error %v", pending, err)
	}
	expect(t, a.prove(a.request(1)), "fd5a::1", OK, "duplicate address detection")

	detect("fd5a::2/64")
	if _, err := wait(context.Background(), "fd5a::1", "fd5a::2"); cnierr.CodeOf(err, 0) != cnierr.Neighbour {
		t.Errorf("an address that %s has: %v", other.Link.MAC, err)
	}
	if got := expect(t, a.prove(a.request(1)), "fd5a::2", Duplicate, "another station"); !got.Severe() {
		t.Error("a failed detection is not severe")
	}
	expect(t, a.prove(a.request(1)), "fd5a::1", OK)
	if _, err := wait(context.Background(), "fd5a::3"); cnierr.CodeOf(err, 0) != cnierr.Link {
		t.Errorf("an address that is not there: %v", err)
	}
	if pending, err := wait(context.Background(), "10.61.1.1"); err != nil || pending != nil {
		t.Errorf("only IPv4: pending %v, error %v", pending, err)
	}
}

func TestSolicitRouter(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, router := l.pod6(), l.pod6()
	rail, other := a.rail(), router.rail()
	source := a.linkLocal(rail.Link)
	got := make(chan []byte, 1)
	ready := make(chan struct{})
	go func() {
		_ = router.ns.Do(func(ns.NetNS) error {
			defer close(got)
			socket, err := packet.Open(other.Link.Index, nd.EtherType, nil)
			close(ready)
			if err != nil {
				return err
			}
			defer func() { _ = socket.Close() }()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			waiter, err := poll.New(ctx)
			if err != nil {
				return err
			}
			defer waiter.Close()
			b := make([]byte, 2048)
			for waiter.Wait(time.Time{}, socket.FD()) == nil {
				for n, err := socket.Receive(b); err == nil; n, err = socket.Receive(b) {
					if n > 40 && b[6] == 58 && b[40] == 133 {
						got <- append([]byte(nil), b[:n]...)
						return nil
					}
				}
			}
			return nil
		})
	}()
	<-ready
	a.in(a.ns, func() error { return SolicitRouter(rail.Link) })
	b, ok := <-got
	if !ok {
		t.Fatal("no router solicitation arrived")
	}
	from, _ := netip.AddrFromSlice(b[8:24])
	if from != source || b[7] != 255 {
		t.Errorf("from %s with hop limit %d, want %s and 255", from, b[7], source)
	}
}

func TestAnnounceHealsPoisonedPeers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, peer := l.pod6(), l.pod6()
	rail := a.rail("10.61.1.1/16", "fd5a::1/64")
	other := peer.rail("10.61.2.1/16", "fd5a::2/64")
	const wrong = "02:00:00:00:66:66"
	peer.poison(other.Link, "10.61.1.1", wrong, netlink.NUD_REACHABLE)
	peer.poison(other.Link, "fd5a::1", wrong, netlink.NUD_REACHABLE)
	heard := make(chan struct{}, 10)
	peer.onARP(other.Link, func(p arp.Packet) bool { return p.SenderIP == p.TargetIP && p.Operation == arp.Reply },
		func() bool { heard <- struct{}{}; return true })
	healed := peer.onEntries(func() bool {
		return peer.entry(other.Link, "10.61.1.1") == rail.Link.MAC.String() &&
			peer.entry(other.Link, "fd5a::1") == rail.Link.MAC.String()
	})
	if peer.entry(other.Link, "10.61.1.1") != wrong || peer.entry(other.Link, "fd5a::1") != wrong {
		t.Fatal("the peer is not poisoned to begin with")
	}
	a.in(a.ns, func() error { return Announce(rail.Link, addrs("10.61.1.1", "fd5a::1")) })
	if err := <-healed; err != nil {
		t.Error(err)
	}
	<-heard // the reply form, beside the request form
}

// onEntries says on a channel when a condition on the pod's neighbour entries
// has come true, looking again at each change.
func (p *pod) onEntries(condition func() bool) <-chan error {
	p.Helper()
	ready, done := make(chan error, 1), make(chan error, 1)
	go func() {
		updates, stop := make(chan netlink.NeighUpdate, 64), make(chan struct{})
		defer close(stop)
		err := p.ns.Do(func(ns.NetNS) error { return netlink.NeighSubscribe(updates, stop) })
		ready <- err
		if err != nil {
			return
		}
		for !condition() {
			select {
			case <-updates:
			case <-time.After(10 * time.Second):
				done <- context.DeadlineExceeded
				return
			}
		}
		done <- nil
	}()
	if err := <-ready; err != nil {
		p.Fatal(err)
	}
	return done
}

// A tentative address must not be claimed, and a link nobody hears is no error.
func TestAnnounceLeavesOut(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	defer func() { _ = f.Close() }()
	l := newLab(t)
	a := l.pod6()
	rail := a.rail()
	a.in(a.ns, func() error {
		link, err := netlink.LinkByName("net1")
		if err != nil {
			return err
		}
		x, err := netlink.ParseAddr("fd5a::1/64")
		if err != nil {
			return err
		}
		return joined(netlink.AddrAdd(link, x), announce(f, rail.Link, addrs("fd5a::1", "fd5a::9")))
	})
	if f.sends != 0 {
		t.Errorf("%d announcements of addresses that are tentative or not there", f.sends)
	}
	for _, change := range []func(*Link){
		func(l *Link) { l.NoARP = true }, func(l *Link) { l.Carrier = false }, func(l *Link) { l.MAC = make([]byte, 20) },
	} {
		link := rail.Link
		change(&link)
		link.Index = 99999 // so that trying would be an error
		if err := Announce(link, addrs("10.61.1.1")); err != nil {
			t.Errorf("%+v: %v", link, err)
		}
	}
	f.refuse = func(netip.Addr, int) bool { return true }
	if err := announce(f, rail.Link, addrs("10.61.1.1")); err == nil || !contains(err.Error(), "ENOBUFS") {
		t.Errorf("a full queue: %v", err)
	}
}

func TestContradictingEntriesAreRemoved(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 3)
	link := a.rails[0].Link
	const wrong = "02:00:00:00:66:66"
	a.poison(link, "10.61.2.1", wrong, netlink.NUD_STALE)
	a.poison(link, "10.61.2.2", wrong, netlink.NUD_PERMANENT)
	a.poison(link, "10.61.2.3", b.rails[2].Link.MAC.String(), netlink.NUD_STALE)
	a.poison(link, "10.61.77.1", wrong, netlink.NUD_STALE)
	a.poison(a.rails[1].Link, "10.61.2.1", wrong, netlink.NUD_STALE)
	req := a.request(1)
	req.Peers = addrs("10.61.2.1", "10.61.2.2", "10.61.2.3", "10.61.77.1")
	report := a.prove(req)
	if len(report.Removed) != 1 || report.Removed[0].Addr.String() != "10.61.2.1" || report.Removed[0].MAC.String() != wrong {
		t.Errorf("removed %v, want 10.61.2.1's", report.Removed)
	}
	for addr, want := range map[string]string{
		"10.61.2.1": "", "10.61.2.2": wrong, "10.61.2.3": b.rails[2].Link.MAC.String(), "10.61.77.1": wrong,
	} {
		if got := a.entry(link, addr); got != want {
			t.Errorf("entry of %s: %q, want %q", addr, got, want)
		}
	}
	if got := a.entry(a.rails[1].Link, "10.61.2.1"); got != wrong {
		t.Errorf("another rail's entry was touched: %q", got)
	}
}
