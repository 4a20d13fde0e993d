package neigh

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/neigh/internal/poll"
	"github.com/railtune/railtune/pkg/policy"
)

// prove runs the proof in the pod.
func (p *pod) prove(req Request) Report {
	p.Helper()
	report, err := p.tryProve(context.Background(), req)
	if err != nil {
		p.Fatal(err)
	}
	return report
}

func (p *pod) tryProve(ctx context.Context, req Request) (report Report, err error) {
	err = p.ns.Do(func(ns.NetNS) (err error) {
		report, err = Prove(ctx, req)
		return err
	})
	return report, err
}

// proveWith runs the proof in the pod, and something else right before the n-th
// question about an address.
func (p *pod) proveWith(req Request, addr string, n int, before func()) Report {
	p.Helper()
	ran := false
	report := p.proveEach(req, addr, func(question int) {
		if question == n {
			ran = true
			before()
		}
	})
	if !ran {
		p.Errorf("%s was not asked about %d times", addr, n)
	}
	return report
}

// proveEach runs the proof in the pod, and something else right before each
// question about an address, which are counted from 1.
func (p *pod) proveEach(req Request, addr string, before func(question int)) (report Report) {
	p.Helper()
	p.in(p.ns, func() error {
		proof, err := plan(req)
		if err != nil {
			return err
		}
		defer proof.close()
		s, err := proof.open(context.Background())
		if err != nil {
			return err
		}
		defer s.close()
		q := proof.seen[netip.MustParseAddr(addr)]
		ask := q.ask
		q.ask = func() error {
			before(q.sent + 1)
			return ask()
		}
		err = proof.run(s)
		report.Results = proof.judge()
		return err
	})
	return report
}

// onARP runs do in the pod each time a frame that matches arrives on a link,
// until it returns false or the test ends. It waits for frames, not for time.
func (p *pod) onARP(link Link, match func(arp.Packet) bool, do func() bool) {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		_ = p.ns.Do(func(ns.NetNS) error {
			socket, err := packet.Open(link.Index, arp.EtherType, nil)
			if err != nil {
				ready <- err
				return nil
			}
			defer func() { _ = socket.Close() }()
			waiter, err := poll.New(ctx)
			ready <- err
			if err != nil {
				return nil
			}
			defer waiter.Close()
			b := make([]byte, 2048)
			for waiter.Wait(time.Time{}, socket.FD()) == nil {
				for n, err := socket.Receive(b); err == nil; n, err = socket.Receive(b) {
					a, err := arp.Parse(b[:n])
					if err == nil && match(a) && !do() {
						return nil
					}
				}
			}
			return nil
		})
	}()
	if err := <-ready; err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { cancel(); <-done })
}

// onProbe calls do with the asker's MAC each time somebody asks for an address
// where the pod's first rail hears it.
func (p *pod) onProbe(addr string, do func(from string)) {
	p.Helper()
	var from string
	is := probeFor(addr)
	p.onARP(p.rails[0].Link, func(a arp.Packet) bool {
		from = hwaddr.MAC(a.SenderMAC[:]).String()
		return is(a)
	}, func() bool { do(from); return true })
}

// entry is the MAC the pod's kernel holds for an address on a link, "" if none.
func (p *pod) entry(link Link, addr string) (mac string) {
	p.Helper()
	want := netip.MustParseAddr(addr)
	p.in(p.ns, func() error {
		list, err := netlink.NeighList(link.Index, int(policy.FamilyOf(want)))
		for _, e := range list {
			if a, _ := netip.AddrFromSlice(e.IP); a.Unmap() == want {
				mac = e.HardwareAddr.String()
			}
		}
		return err
	})
	return mac
}

// poison puts an entry into the pod's kernel.
func (p *pod) poison(link Link, addr, mac string, state int) {
	p.Helper()
	hw, err := hwaddr.ParseMAC(mac)
	if err != nil {
		p.Fatal(err)
	}
	p.in(p.ns, func() error {
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: link.Index, IP: net.ParseIP(addr), HardwareAddr: net.HardwareAddr(hw), State: state,
			Family: int(policy.FamilyOf(netip.MustParseAddr(addr))),
		})
	})
}

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// find returns the result about an address.
func find(t testing.TB, r Report, addr string) Result {
	t.Helper()
	for _, x := range r.Results {
		if x.Addr.String() == addr {
			return x
		}
	}
	t.Fatalf("no result about %s in %v", addr, r.Results)
	return Result{}
}

// expect compares a verdict and looks for texts in its message.
func expect(t testing.TB, r Report, addr string, want Verdict, texts ...string) Result {
	t.Helper()
	got := find(t, r, addr)
	if got.Verdict != want {
		t.Errorf("%s: got %s, want %s: %s (answers %v)", addr, got.Verdict, want, got.Message, got.Answers)
	}
	for _, text := range texts {
		if !contains(got.Message, text) {
			t.Errorf("%s: the message lacks %q: %s", addr, text, got.Message)
		}
	}
	return got
}
