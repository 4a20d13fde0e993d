package neigh

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/neigh/internal/poll"
	"github.com/railtune/railtune/pkg/neigh/nd"
)

// ErrBusy is the cause of a skipped result when the kernel refused the question
// again and again because a transmit queue, or its memory, was full.
var ErrBusy = packet.ErrBusy

// port is the packet socket as the proof uses it; tests put a fake there to
// refuse frames, which a real link cannot be made to do on command.
type port interface {
	Send(etherType uint16, to [6]byte, payload []byte) error
	Receive(b []byte) (int, error)
	FD() int
	Close() error
}

// session is one proof under way: its sockets and the questions that are open.
type session struct {
	link   Link
	waiter *poll.Waiter
	ports  []port       // the rail's first
	nd     *nd.Listener // nil without IPv6 questions
	asked  map[netip.Addr]*question

	lastNew  time.Time // when a MAC was last heard for the first time in a round
	lastSent time.Time
	probes   int

	slot     time.Time // start of the current burst
	slotSent int
	buffer   [2048]byte
}

func newSession(ctx context.Context, link Link, ports ...port) (*session, error) {
	waiter, err := poll.New(ctx)
	if err != nil {
		return nil, err
	}
	return &session{link: link, waiter: waiter, ports: ports, asked: map[netip.Addr]*question{}}, nil
}

// close closes everything; errors at closing change nothing about the proof.
func (s *session) close() {
	s.waiter.Close()
	for _, p := range s.ports {
		_ = p.Close()
	}
	if s.nd != nil {
		_ = s.nd.Close()
	}
}

// schedule is how one round of questions runs.
type schedule struct {
	sends  []time.Duration
	repeat time.Duration // of questions beyond sends; 0 for none
	// window is how long to listen at least. With early set, the round may end
	// before as soon as every question is settled.
	window time.Duration
	early  bool
}

// end is when a round that started at start is over as things stand.
func (c schedule) end(s *session, questions []*question, start time.Time) time.Time {
	limit, calm := start.Add(c.window), s.lastNew.Add(quiet)
	if c.early {
		if slices.ContainsFunc(questions, func(q *question) bool { return !q.settled() }) {
			return limit
		}
		return earlier(limit, calm)
	}
	end := later(limit, calm)
	for _, q := range questions {
		if q.round == 0 && q.askable() {
			end = later(end, q.due.Add(answerTime)) // put off, not yet asked
		}
	}
	return later(end, s.lastSent.Add(answerTime))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// after is when the next question is due, once n have been sent.
func (c schedule) after(start time.Time, n int) time.Time {
	switch {
	case n < len(c.sends):
		return start.Add(c.sends[n])
	case c.repeat > 0 && len(c.sends) > 0:
		return start.Add(c.sends[len(c.sends)-1] + time.Duration(n-len(c.sends)+1)*c.repeat)
	default:
		return time.Time{}
	}
}

// run asks the questions on schedule and takes in whatever is heard about any
// open question meanwhile.
func (s *session) run(questions []*question, c schedule) error {
	start := time.Now()
	for _, q := range questions {
		q.begin(start)
	}
	for {
		next, err := s.send(questions, c, start)
		if err != nil {
			return err
		}
		end := c.end(s, questions, start)
		if !time.Now().Before(end) {
			return nil
		}
		if !next.IsZero() {
			end = earlier(end, next)
		}
		if err := s.wait(end); err != nil {
			return err
		}
	}
}

// listen takes in what is heard for a while without asking.
func (s *session) listen(d time.Duration) error { return s.run(nil, schedule{window: d}) }

// send sends what is due and returns when to come back; zero if there is
// nothing more to send.
func (s *session) send(questions []*question, c schedule, start time.Time) (next time.Time, err error) {
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, q := range questions {
		now := time.Now()
		if q.due.IsZero() || !q.askable() || (q.settled() && !q.insist) {
			continue
		}
		if q.due.After(now) {
			sooner(q.due)
			continue
		}
		if free := s.pace(now); free.After(now) {
			sooner(free)
			continue
		}
		if err := s.ask(q, now); err != nil {
			return next, err
		}
		if q.busy == 0 {
			q.due = c.after(start, q.round)
		}
		if !q.due.IsZero() {
			sooner(q.due)
		}
	}
	return next, nil
}

// pace returns when the next question may be sent.
func (s *session) pace(now time.Time) time.Time {
	if now.Sub(s.slot) >= burstGap {
		s.slot, s.slotSent = now, 0
	}
	if s.slotSent >= burst {
		return s.slot.Add(burstGap)
	}
	s.slotSent++
	return now
}

// ask sends one question. A full queue puts it off, and after busyTries makes
// it a skipped one: no answer to a question never sent is no finding.
func (s *session) ask(q *question, now time.Time) error {
	err := q.ask()
	switch {
	case err == nil:
		if q.first.IsZero() {
			q.first = now
		}
		q.sent++
		q.round++
		q.busy = 0
		s.probes++
		s.lastSent = now
		return nil
	case errors.Is(err, packet.ErrBusy):
		if q.busy == busyTries {
			q.skip, q.cause = busyReason(s.link.Name), err
			return nil
		}
		q.due = now.Add(busyPause << q.busy)
		q.busy++
		return nil
	default:
		return s.broken(err)
	}
}

// broken turns a socket's error into one that says what became of the link.
func (s *session) broken(err error) error {
	switch {
	case errors.Is(err, unix.ENETDOWN):
		return cnierr.New(cnierr.Link, "%s went down while its neighbours were asked: %w", s.link.Name, err)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return cnierr.New(cnierr.Link, "%s is gone: it was removed or moved while its neighbours were asked: %w", s.link.Name, err)
	default:
		return cnierr.New(cnierr.Neighbour, "asking the neighbours on %s: %w", s.link.Name, err)
	}
}

// wait waits for frames until then and takes them in.
func (s *session) wait(until time.Time) error {
	fds := make([]int, 0, 3)
	for _, p := range s.ports {
		fds = append(fds, p.FD())
	}
	if s.nd != nil {
		fds = append(fds, s.nd.FD())
	}
	if err := s.waiter.Wait(until, fds...); err != nil {
		return fmt.Errorf("the neighbour proof of %s was cut short: %w", s.link.Name, err)
	}
	for _, p := range s.ports {
		if err := s.drain(p); err != nil {
			return err
		}
	}
	return s.drainND()
}

func (s *session) drain(p port) error {
	for {
		n, err := p.Receive(s.buffer[:])
		if errors.Is(err, packet.ErrNothing) {
			return nil
		}
		if err != nil {
			return s.broken(err)
		}
		// The claim is the ARP sender's hardware address; the Ethernet source is
		// whatever bridge, bond or proxy passed the frame on.
		if a, err := arp.Parse(s.buffer[:n]); err == nil {
			s.claim(a.SenderIP, a.SenderMAC)
		}
	}
}

func (s *session) drainND() error {
	if s.nd == nil {
		return nil
	}
	for {
		c, err := s.nd.Read()
		if errors.Is(err, packet.ErrNothing) {
			return nil
		}
		if err != nil {
			return s.broken(err)
		}
		s.claim(c.Addr, c.MAC)
	}
}

func (s *session) claim(addr netip.Addr, m mac) {
	q := s.asked[addr]
	if q == nil || m == (mac{}) {
		return
	}
	if now := time.Now(); q.hear(m, now) {
		s.lastNew = now
	}
}
