package neigh

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/policy"
)

// fakePort is a link whose transmit queue can be full, and which nobody answers
// on. A real link cannot be made to refuse a chosen frame.
type fakePort struct {
	refuse func(target netip.Addr, attempt int) bool
	tries  map[netip.Addr]int
	sends  int
	fd     int
}

func (f *fakePort) Send(_ uint16, _ [6]byte, payload []byte) error {
	f.sends++
	a, err := arp.Parse(payload)
	if err != nil {
		return err
	}
	f.tries[a.TargetIP]++
	if f.refuse != nil && f.refuse(a.TargetIP, f.tries[a.TargetIP]) {
		return packet.ErrBusy
	}
	return nil
}

func (f *fakePort) Receive([]byte) (int, error) { return 0, packet.ErrNothing }
func (f *fakePort) FD() int                     { return f.fd }
func (f *fakePort) Close() error                { return unix.Close(f.fd) }

func newFakePort(t testing.TB) *fakePort {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // never readable
	if err != nil {
		t.Fatal(err)
	}
	return &fakePort{fd: fd, tries: map[netip.Addr]int{}}
}

// proveOn runs a proof on a fake port.
func proveOn(t testing.TB, f *fakePort, req Request) Report {
	t.Helper()
	req.Rail = Rail{
		Link:  Link{Index: 7, Name: "net1", MAC: hwaddr.MAC{2, 0, 0, 0, 0, 1}, Up: true, Carrier: true, ARPType: arpEthernet},
		Addrs: []netip.Prefix{netip.MustParsePrefix("10.61.1.1/16")},
	}
	p, err := plan(req)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	s, err := newSession(context.Background(), req.Rail.Link, f)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	p.connect(s, f, f, req.Rail.Link.ethernet())
	if err := p.run(s); err != nil {
		t.Fatal(err)
	}
	return Report{Results: p.judge(), Probes: s.probes}
}

func TestFullTransmitQueueIsNamedAndIsNoFinding(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	full := netip.MustParseAddr("10.61.2.1")
	f.refuse = func(target netip.Addr, _ int) bool { return target == full }
	report := proveOn(t, f, Request{Timeout: 150 * time.Millisecond, Peers: addrs("10.61.2.1", "10.61.2.2")})
	got := expect(t, report, "10.61.2.1", Skipped, "ENOBUFS", "transmit queue", "neighbour table is full")
	if got.Cause != ErrBusy || got.Sent != 0 || got.Severe() {
		t.Errorf("cause %v, sent %d, severe %v", got.Cause, got.Sent, got.Severe())
	}
	if f.tries[full] != busyTries+1 {
		t.Errorf("tried %d times, want %d", f.tries[full], busyTries+1)
	}
	expect(t, report, "10.61.2.2", Silent)
	expect(t, report, "10.61.1.1", OK)
}

// An own address whose questions the queue refused is not proven by silence.
func TestOwnAddressNeverAskedIsNotOK(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	f.refuse = func(netip.Addr, int) bool { return true }
	expect(t, proveOn(t, f, Request{Timeout: 30 * time.Millisecond}), "10.61.1.1", Skipped, "ENOBUFS")
}

func TestQueueFullForAMomentIsRetried(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	f.refuse = func(_ netip.Addr, attempt int) bool { return attempt <= 3 }
	report := proveOn(t, f, Request{Timeout: 30 * time.Millisecond})
	got := expect(t, report, "10.61.1.1", OK)
	if got.Sent == 0 || got.Cause != nil {
		t.Errorf("sent %d, cause %v", got.Sent, got.Cause)
	}
}

func TestAllOf256PeersAreAsked(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	req := Request{Timeout: 2 * time.Second}
	for i := range 256 {
		req.Peers = append(req.Peers, addrs(fmt.Sprintf("10.61.77.%d", i))...)
	}
	report := proveOn(t, f, req)
	for _, r := range report.Results {
		if r.Role == Peer && (r.Verdict != Silent || r.Sent < 1) {
			t.Errorf("%s (asked %d times)", r, r.Sent)
		}
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	s, now := &session{}, time.Unix(1, 0)
	for slot := range 3 {
		start := now
		for i := range burst {
			if free := s.pace(now); free.After(now) {
				t.Fatalf("burst %d: question %d has to wait", slot, i)
			}
			now = now.Add(time.Microsecond)
		}
		free := s.pace(now)
		if want := start.Add(burstGap); !free.Equal(want) {
			t.Fatalf("burst %d: one more may go after %s, want %s", slot, free.Sub(start), burstGap)
		}
		now = free
	}
}

func TestTimeoutBeforeAPeersTurn(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	req := Request{Timeout: burstGap}
	for i := range 256 {
		req.Peers = append(req.Peers, addrs(fmt.Sprintf("10.61.77.%d", i))...)
	}
	report := proveOn(t, f, req)
	expect(t, report, "10.61.77.0", Silent)
	expect(t, report, "10.61.77.255", Skipped, "before its turn")
}

func TestFullNeighbourTableIsNamed(t *testing.T) {
	t.Parallel()
	f := newFakePort(t)
	link := Link{Index: 7, Name: "net1", MAC: hwaddr.MAC{2, 0, 0, 0, 0, 1}, Up: true, Carrier: true, ARPType: arpEthernet}
	for _, refused := range []uint64{0, 3} {
		p, err := plan(Request{
			Rail:    Rail{Link: link, Addrs: []netip.Prefix{netip.MustParsePrefix("10.61.1.1/16")}},
			Timeout: 20 * time.Millisecond, Peers: addrs("10.61.2.1"),
		})
		if err != nil {
			t.Fatal(err)
		}
		readings := uint64(0)
		p.table.read = func(policy.Family) (kernel.NeighbourTable, bool) { // fakeTable: the limit is the whole host's, so no test may lower it
			readings++
			return kernel.NeighbourTable{Entries: 1024, Limit: 1024, Refused: 7 + (readings-1)*refused}, true
		}
		s, err := newSession(context.Background(), link, f)
		if err != nil {
			t.Fatal(err)
		}
		p.connect(s, f, f, link.ethernet())
		if err := p.run(s); err != nil {
			t.Fatal(err)
		}
		s.waiter.Close()
		got := expect(t, Report{Results: p.judge()}, "10.61.2.1", Silent)
		if named := contains(got.Message, "neighbour table full (limit 1024"); named != (refused > 0) {
			t.Errorf("%d entries refused: %s", refused, got.Message)
		}
	}
	_ = f.Close()
}

// The kernel's own numbers are read, not only the fake's.
func TestReadTable(t *testing.T) {
	t.Parallel()
	var k lists
	defer k.close()
	for _, family := range []policy.Family{policy.IPv4, policy.IPv6} {
		if got, ok := k.table(family); !ok || got.Limit == 0 {
			t.Errorf("%s: %+v, read %v", family, got, ok)
		}
	}
}

func TestBrokenSaysWhatBecameOfTheLink(t *testing.T) {
	t.Parallel()
	s := &session{link: Link{Name: "net1"}}
	for err, text := range map[error]string{unix.ENETDOWN: "went down", unix.ENXIO: "is gone", unix.ENODEV: "is gone"} {
		if got := s.broken(err); cnierr.CodeOf(got, 0) != cnierr.Link || !contains(got.Error(), text) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := s.broken(unix.EPERM); cnierr.CodeOf(got, 0) != cnierr.Neighbour {
		t.Errorf("EPERM: %v", got)
	}
}
