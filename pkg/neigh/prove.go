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
	"github.com/railtune/railtune/pkg/neigh/nd"
	"github.com/railtune/railtune/pkg/policy"
)

// Prove asks about the request's addresses and reports what was found. It must
// be called on a thread in the rail's namespace.
//
// What is wrong with a neighbour is in the report, not the error. An error
// means that the proof could not be made: the link went down or away (code
// Link), sockets are not to be had (code Kernel), the list of addresses changed
// all the time (code TryAgain), or the context was over (wrapped). A clean proof
// takes about selfWindow without gateway and peers, and quiet more with them; a
// silent target costs the timeout, once.
func Prove(ctx context.Context, req Request) (Report, error) {
	start := time.Now()
	if req.Timeout <= 0 {
		req.Timeout = DefaultTimeout
	}
	p, err := plan(req)
	if err != nil {
		return Report{}, err
	}
	defer p.close()
	report := Report{}
	if p.needsSockets() {
		s, err := p.open(ctx)
		if err != nil {
			return Report{}, err
		}
		defer s.close()
		if err := p.run(s); err != nil {
			return Report{}, err
		}
		report.Probes = s.probes
	}
	report.Results = p.judge()
	report.Removed = p.removeContradicted(report.Results)
	report.Elapsed = time.Since(start)
	return report, nil
}

// needsSockets says whether there is anything to ask at all.
func (p *proof) needsSockets() bool {
	for _, q := range p.all() {
		if q.askable() {
			return true
		}
	}
	return false
}

// open opens the sockets the questions need and gives each question its way of
// asking.
func (p *proof) open(ctx context.Context) (_ *session, err error) {
	filter, err := arp.Filter(p.ownIPv4())
	if err != nil {
		return nil, err
	}
	rail, err := packet.Open(p.req.Rail.Link.Index, arp.EtherType, filter)
	if err != nil {
		return nil, unopened(p.req.Rail.Link, err)
	}
	s, err := newSession(ctx, p.req.Rail.Link, rail)
	if err != nil {
		return nil, errors.Join(err, rail.Close())
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	self, from := port(rail), p.req.Rail.Link.ethernet()
	if p.throughParent {
		var parent *packet.Socket
		err := p.req.Parent.Enter(func() (err error) {
			parent, err = packet.Open(p.req.Parent.Link.Index, arp.EtherType, filter)
			return err
		})
		if err == nil {
			self, from = parent, p.req.Parent.Link.ethernet()
			s.ports = append(s.ports, parent)
		} else {
			p.skipSelf(fmt.Sprintf("%s is an ipvlan link and its parent %s cannot be used: %v",
				p.req.Rail.Link.Name, p.req.Parent.Link.Name, err))
		}
	}
	if p.asksIPv6() {
		if s.nd, err = nd.Listen(p.req.Rail.Link.Index); err != nil {
			return nil, unopened(p.req.Rail.Link, err)
		}
	}
	p.connect(s, rail, self, from)
	return s, nil
}

// unopened tells a link that is gone from a kernel that has no such sockets.
func unopened(link Link, err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return cnierr.New(cnierr.Link, "%s is gone: it was removed or moved before its neighbours were asked: %w", link.Name, err)
	}
	return cnierr.New(cnierr.Kernel, "the neighbours on %s cannot be asked: %w", link.Name, err)
}

// connect fills in how each question is sent and opens all of them for answers.
func (p *proof) connect(s *session, rail, self port, from mac) {
	own := p.req.Rail.Link.ethernet()
	for _, q := range p.all() {
		if p.seen[q.addr] == q { // not an own address that is among the peers too
			s.asked[q.addr] = q
		}
		switch {
		case !q.askable():
		case q.role == Own || q.role == Sibling:
			q.ask = askARP(self, from, netip.IPv4Unspecified(), q.addr)
		case q.addr.Is4():
			q.ask = askARP(rail, own, q.sender, q.addr)
		default:
			q.ask = askND(rail, own, q.sender, q.addr)
		}
	}
}

// run is the proof proper: phase 1, phase 2 if that was clean, and phase 1 once
// more if somebody claimed an own address while phase 2 ran.
func (p *proof) run(s *session) error {
	if err := p.askSelf(s); err != nil {
		return err
	}
	if contested := p.contested(p.own); len(contested) > 0 {
		p.skipNeighbours(contested[0].addr)
		return nil
	}
	if err := p.askNeighbours(s); err != nil || len(p.contested(p.own)) == 0 {
		return err
	}
	return p.askSelf(s)
}

// askSelf repeats phase 1 until nobody contests an own or sibling address, or
// waiting longer is of no use: a station outside the namespace still does at
// the second look, or a sibling still does at the timeout.
//
// The timeout is counted in time that was meant to be spent, not in time that
// passed: on a node that starts a hundred pods the sibling's own ADD gets the
// processor as late as this one does.
func (p *proof) askSelf(s *session) error {
	questions := p.selves()
	patience := p.req.Timeout
	confirmed := false
	for {
		if err := s.run(questions, schedule{sends: selfSends, window: p.selfWindow(questions)}); err != nil {
			return err
		}
		patience -= selfWindow
		contested := p.contested(questions)
		outside, ownOutside := p.outside(contested), p.outside(p.contested(p.own))
		var err error
		switch {
		case outside && !confirmed:
			confirmed = true
			err = s.listen(confirmAfter - selfWindow)
		case p.inside(contested) && !ownOutside && patience > 0:
			patience, err = p.awaitTuning(s, contested, patience)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// awaitTuning waits until the siblings that contest an address have been tuned, or
// patience is at its end, and returns what is left of that. Looking at their settings
// costs nobody anything, while asking again makes every untuned rail of the namespace
// answer: sixteen proofs that keep asking would hold up the very ADDs they wait for.
func (p *proof) awaitTuning(s *session, contested []*question, patience time.Duration) (time.Duration, error) {
	for {
		if err := s.listen(siblingPause); err != nil {
			return 0, err
		}
		if patience -= siblingPause; patience <= 0 || p.tuned(contested) {
			return patience, nil
		}
	}
}

// tuned says whether every sibling that contests an address now has an arp_ignore that
// should keep it from doing so. One whose setting cannot be read anew counts as tuned:
// only asking can tell.
func (p *proof) tuned(contested []*question) bool {
	if p.owners.arpIgnore == nil {
		return true
	}
	for _, q := range contested {
		for _, m := range p.intruders(q) {
			if p.owners.inside(m) && p.owners.ignore(m) == "0" {
				return false
			}
		}
	}
	return true
}

// selfWindow is zero where there is nobody to ask in phase 1.
func (p *proof) selfWindow(questions []*question) time.Duration {
	for _, q := range questions {
		if q.askable() {
			return selfWindow
		}
	}
	return 0
}

// askNeighbours is phase 2, with a second look at what seems wrong.
func (p *proof) askNeighbours(s *session) error {
	start := time.Now()
	questions := p.neighbours()
	p.table.start(families(questions)...)
	if err := s.run(questions, schedule{neighbourSends, repeat, p.req.Timeout, true}); err != nil {
		return err
	}
	p.noteOverflow(questions)
	doubtful := p.doubtful(questions)
	if len(doubtful) == 0 {
		return nil
	}
	if err := s.listen(max(0, confirmAfter-time.Since(start))); err != nil {
		return err
	}
	err := s.run(doubtful, schedule{neighbourSends, repeat, confirmLimit, true})
	for _, q := range doubtful {
		q.believePast()
	}
	return err
}

// noteOverflow looks whether the neighbour table was full where somebody was
// silent.
func (p *proof) noteOverflow(questions []*question) {
	p.full = map[policy.Family]uint32{}
	for _, q := range questions {
		family := policy.FamilyOf(q.addr)
		if _, known := p.full[family]; known || q.settled() {
			continue
		}
		p.full[family] = p.table.happened(family)
	}
}

// families are the address families that will be asked about.
func families(questions []*question) (list []policy.Family) {
	for _, q := range questions {
		if f := policy.FamilyOf(q.addr); q.askable() && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}
