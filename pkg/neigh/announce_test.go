package neigh

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/neigh/internal/poll"
	"github.com/railtune/railtune/pkg/neigh/nd"
)

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
	select {
	case <-heard:
	case <-time.After(10 * time.Second):
		t.Error("the reply form of the announcement did not arrive beside the request form")
	}
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
