package neigh

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/cnierr"
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
		states, err := statesOnce(link.Index)
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
	// Detection takes two seconds; a state that is not seen would be waited for without end.
	patient, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	if _, err := wait(patient, "fd5a::1", "fd5a::2"); cnierr.CodeOf(err, 0) != cnierr.Neighbour {
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
