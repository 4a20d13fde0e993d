package neigh

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/hwaddr"
)

// Links that cannot be asked on are healthy: nothing is sent, nothing fails.
func TestLinksThatCannotBeAskedAreSkipped(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 2)
	for name, c := range map[string]struct {
		change func(*Link)
		reason string
	}{
		"NOARP":      {func(l *Link) { l.NoARP = true }, "NOARP"},
		"loopback":   {func(l *Link) { l.ARPType = 772 }, "type 772"},
		"InfiniBand": {func(l *Link) { l.ARPType, l.MAC = 32, make(hwaddr.MAC, 20) }, "20-byte"},
		"no MAC":     {func(l *Link) { l.ARPType, l.MAC = 0xfffe, nil }, "0-byte"},
		"long MAC":   {func(l *Link) { l.MAC = make(hwaddr.MAC, 8) }, "8 bytes"},
		"down":       {func(l *Link) { l.Up, l.Carrier = false, false }, "is down"},
	} {
		t.Run(name, func(t *testing.T) {
			req := a.request(1)
			req.Gateways, req.Peers = addrs("10.61.2.1"), addrs("10.61.2.2")
			c.change(&req.Rail.Link)
			report := a.prove(req)
			for _, addr := range []string{"10.61.1.1", "10.61.1.2", "10.61.2.1", "10.61.2.2"} {
				expect(t, report, addr, Skipped, c.reason)
			}
			if report.Probes != 0 {
				t.Errorf("%d questions sent on a link that cannot be asked on", report.Probes)
			}
		})
	}
}

func TestNOARPLinkOfTheKernel(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	a.in(a.ns, func() (err error) {
		l, err := netlink.LinkByName("net1")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetARPOff(l); err != nil {
			return err
		}
		a.rails[0], err = railOf("net1")
		return err
	})
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	report := a.prove(req)
	expect(t, report, "10.61.1.1", Skipped, "NOARP")
	expect(t, report, "10.61.2.1", Skipped, "NOARP")
}

// Without carrier nobody can answer, so nobody is waited for either.
func TestNoCarrierIsSilentWithoutAsking(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	a.unplug(1)
	req := a.request(1)
	req.Timeout = time.Hour // which a proof that waits would wait
	req.Gateways, req.Peers = addrs("10.61.0.1"), addrs("10.61.2.1")
	report := a.prove(req)
	expect(t, report, "10.61.1.1", Skipped, "no carrier")
	expect(t, report, "10.61.0.1", Silent, "no carrier")
	if got := expect(t, report, "10.61.2.1", Silent, "no carrier"); got.Severe() {
		t.Error("silence is severe")
	}
	if report.Probes != 0 {
		t.Errorf("%d questions sent without carrier", report.Probes)
	}
}

// unplug takes the carrier from a rail and reads the rail anew.
func (p *pod) unplug(number int) {
	p.Helper()
	p.plug(number, netlink.LinkSetDown)
	p.in(p.ns, func() (err error) {
		name := p.rails[number-1].Link.Name
		if _, err := awaitCarrier(name, false); err != nil {
			return err
		}
		p.rails[number-1], err = railOf(name)
		return err
	})
}

// plug changes the fabric's end of a rail.
func (p *pod) plug(number int, change func(netlink.Link) error) {
	p.Helper()
	var port int
	p.in(p.ns, func() error {
		l, err := netlink.LinkByName(p.rails[number-1].Link.Name)
		if err == nil {
			port = l.Attrs().ParentIndex
		}
		return err
	})
	p.in(p.fabric, func() error {
		l, err := netlink.LinkByIndex(port)
		if err != nil {
			return err
		}
		return change(l)
	})
}

// awaitCarrier waits by events until a link has, or has not, carrier.
func awaitCarrier(name string, want bool) (Rail, error) {
	updates, done := make(chan netlink.LinkUpdate, 64), make(chan struct{})
	defer close(done)
	if err := netlink.LinkSubscribe(updates, done); err != nil {
		return Rail{}, err
	}
	for {
		r, err := railOf(name)
		if err != nil || r.Link.Carrier == want {
			return r, err
		}
		select {
		case <-updates:
		case <-time.After(10 * time.Second):
			return r, fmt.Errorf("%s: carrier did not become %v", name, want)
		}
	}
}

func TestWaitCarrier(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	a.unplug(1)
	index := a.rails[0].Link.Index
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.in(a.ns, func() error {
		if carrier, err := WaitCarrier(ctx, index); carrier || err != nil {
			t.Errorf("unplugged, context over: carrier %v, error %v", carrier, err)
		}
		if _, err := WaitCarrier(context.Background(), 99999); cnierr.CodeOf(err, 0) != cnierr.Link {
			t.Errorf("a link that is not there: %v", err)
		}
		return nil
	})
	type result struct {
		carrier bool
		err     error
	}
	got := make(chan result)
	go func() {
		var r result
		_ = a.ns.Do(func(ns.NetNS) error {
			r.carrier, r.err = WaitCarrier(context.Background(), index)
			return nil
		})
		got <- r
	}()
	a.plug(1, netlink.LinkSetUp)
	if r := <-got; !r.carrier || r.err != nil {
		t.Errorf("plugged in: carrier %v, error %v", r.carrier, r.err)
	}
}

// An ipvlan child hears nothing about its own address; its parent does. This
// kernel has no ipvlan, so a veth rail declared as one stands in for the child
// and a veth of the host's on the same fabric for the parent: what is shown is
// that phase 1 goes through the parent's namespace and is judged by it.
func TestIPVLANIsProbedFromItsParent(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 1)
	host, thief := a.lab.pod(), a.lab.pod()
	parent := host.rail()
	req := a.request(1)
	req.Rail.Link.Kind = "ipvlan"
	req.Peers = addrs("10.61.2.1")

	report := a.prove(req)
	if got := expect(t, report, "10.61.1.1", Skipped, "ipvlan", "parent"); got.Sent != 0 {
		t.Error("phase 1 was asked from the child")
	}
	expect(t, report, "10.61.2.1", OK)

	entered := 0
	req.Parent = &Parent{Link: parent.Link, Enter: func(open func() error) error {
		entered++
		return host.ns.Do(func(ns.NetNS) error { return open() })
	}}
	probed := make(chan string, 100)
	b.onProbe("10.61.1.1", func(from string) { probed <- from })
	expect(t, a.prove(req), "10.61.1.1", OK, parent.Link.Name)
	if entered != 1 {
		t.Errorf("the parent's namespace was entered %d times, want once", entered)
	}
	if from := <-probed; from != parent.Link.MAC.String() {
		t.Errorf("phase 1 came from %s, want the parent's %s", from, parent.Link.MAC)
	}

	rail := thief.rail("10.61.1.1/16")
	report = a.prove(req)
	expect(t, report, "10.61.1.1", Duplicate, rail.Link.MAC.String())
	expect(t, report, "10.61.2.1", Skipped)

	req.Parent.Enter = func(func() error) error { return errors.New("no way in") }
	expect(t, a.prove(req), "10.61.1.1", Skipped, "no way in")
	req.Parent.Link.Carrier = false
	expect(t, a.prove(req), "10.61.1.1", Skipped, "no carrier")
}

func TestRailWithoutIPv4AddressSkipsIPv4Peers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.pod()
	a.tune(a.rail())
	req := a.request(1)
	req.Peers = addrs("10.61.2.1")
	expect(t, a.prove(req), "10.61.2.1", Skipped, "no usable IPv4 address")
}

func TestLinkGoingDownEndsTheProof(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 1)
	b.onProbe("10.61.1.1", func(string) {
		_ = a.ns.Do(func(ns.NetNS) error {
			l, err := netlink.LinkByName("net1")
			if err != nil {
				return err
			}
			return netlink.LinkSetDown(l)
		})
	})
	req := a.request(1)
	req.Timeout = time.Hour
	req.Peers = addrs("10.61.77.1")
	_, err := a.tryProve(context.Background(), req)
	if cnierr.CodeOf(err, 0) != cnierr.Link || !contains(err.Error(), "net1 went down") {
		t.Errorf("got %v, want a link error", err)
	}
}

func TestCancelledProofEnds(t *testing.T) {
	t.Parallel()
	a, b := twoPods(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.onProbe("10.61.77.1", func(string) { cancel() })
	req := a.request(1)
	req.Timeout = time.Hour
	req.Peers = addrs("10.61.77.1")
	if _, err := a.tryProve(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestLinkThatIsGoneIsALinkError(t *testing.T) {
	t.Parallel()
	a, _ := twoPods(t, 1)
	req := a.request(1)
	req.Rail.Link.Index = 99999
	if _, err := a.tryProve(context.Background(), req); cnierr.CodeOf(err, 0) != cnierr.Link {
		t.Errorf("got %v (code %d), want code %d", err, cnierr.CodeOf(err, 0), cnierr.Link)
	}
}
