package paths

import (
	"errors"
	"net/netip"
	"slices"
	"time"
)

const (
	// patience is how long a hop is waited for, tries how often it is asked, and dark
	// after how many silent hops in a row a path is not followed further.
	patience = 900 * time.Millisecond
	tries    = 2
	dark     = 2
	// At most so many failing paths of a rail are followed, since routers limit what they
	// say. Linux keeps six tokens for each address, and gets one a second; an error costs
	// one (net/ipv4/icmp.c, icmpv4_xrlim_allow) or, without a route, two (net/ipv4/route.c,
	// ip_error).
	followed = 2
)

// farKey is an address asked from a rail to tell causes apart.
type farKey struct {
	rail int
	addr netip.Addr
}

// steps follow one path, a hop at a time.
type steps struct {
	pair    *pair
	tries   int
	limit   int
	silent  int // hops in a row
	asked   int // how often this one
	current *echo
	ended   bool
}

// asking is an address asked, again after a while.
type asking struct {
	farKey
	*echo
	asked int
}

// answers tells whether the address has answered, on the rail.
func (a *asking) answers() bool { return a != nil && a.echo != nil && a.back }

// follow goes along paths that do not work, and one of each rail that does, and asks
// the gateways of other rails.
func (r *run) follow(until time.Time) error {
	all := r.chosen()
	r.gatewaysToAsk()
	nothing := func() bool {
		return !slices.ContainsFunc(all, func(s *steps) bool { return !s.ended }) &&
			!slices.ContainsFunc(r.far, func(a *asking) bool { return a.waits() })
	}
	for time.Now().Before(until) {
		next := until
		for _, s := range all {
			if err := r.step(s); err != nil {
				return err
			}
			if !s.ended {
				next = earlier(next, s.current.sentAt.Add(patience))
			}
		}
		for _, a := range r.far {
			if err := r.ask(a); err != nil {
				return err
			}
			if a.waits() {
				next = earlier(next, a.sentAt.Add(patience))
			}
		}
		if nothing() {
			return nil
		}
		news := func() bool { return nothing() || slices.ContainsFunc(all, (*steps).news) }
		if err := errors.Join(r.hear(next, news), r.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// waits tells whether an answer may still come, or another request is due.
func (a *asking) waits() bool {
	return a.echo == nil || !a.over() && (a.asked < tries || time.Since(a.sentAt) < patience)
}

func (r *run) ask(a *asking) error {
	if !a.waits() || a.echo != nil && time.Since(a.sentAt) < patience {
		return nil
	}
	a.asked++
	a.echo = &echo{line: line{rail: a.rail, is4: a.addr.Is4(), device: true}, to: a.addr, aside: true}
	return r.send(a.echo)
}

// news tells whether the last request of a path has brought something.
func (s *steps) news() bool { return !s.ended && s.current.over() }

// step looks at what a path's last request brought, and sends the next.
func (r *run) step(s *steps) error {
	if s.ended {
		return nil
	}
	if e := s.current; e != nil {
		switch {
		case e.back || e.other != 0:
			s.pair.hops = append(s.pair.hops, e.from)
			s.pair.reached, s.ended = true, true
			return nil
		case e.class != noError && r.own(e.errFrom): // the kernel's own: the gateway is gone
			s.ended = true
			return nil
		case e.class == timeExceeded:
			s.pair.hops = append(s.pair.hops, e.errFrom)
			s.limit, s.asked, s.silent = s.limit+1, 0, 0
		case e.class != noError:
			s.pair.hops = append(s.pair.hops, e.errFrom)
			s.pair.last, s.ended = e, true
			return nil
		case e.sendErr != nil:
			s.ended = true
			return nil
		case time.Since(e.sentAt) < patience:
			return nil
		case s.asked < s.tries:
		default:
			s.pair.hops = append(s.pair.hops, netip.Addr{})
			s.limit, s.asked, s.silent = s.limit+1, 0, s.silent+1
		}
	}
	if s.limit > r.MaxHops || s.silent >= dark {
		s.ended = true
		return nil
	}
	s.asked++
	s.current = &echo{line: s.pair.ways[device].line, to: s.pair.peer.Addr, hopLimit: s.limit, aside: true}
	return r.send(s.current)
}

// chosen are the paths to follow: through a gateway, of each rail the first that works,
// and some that end in silence. Where the gateway itself has said why, that is the end.
func (r *run) chosen() (all []*steps) {
	good, bad := make([][]*steps, len(r.rails)), make([][]*steps, len(r.rails))
	for _, p := range r.pairs {
		d := &p.ways[device]
		if !d.usable || d.hopErr != nil || !d.hop.GW.IsValid() || r.unanswered(r.rails[p.rail], d.hop.GW) {
			continue
		}
		switch o := r.outcome(d); {
		case o.From == d.hop.GW:
			p.hops = []netip.Addr{o.From}
		case o.good():
			good[p.rail] = append(good[p.rail], &steps{pair: p, tries: 1})
		default:
			bad[p.rail] = append(bad[p.rail], &steps{pair: p, tries: tries})
		}
	}
	for i := range r.rails {
		all = append(all, good[i][:min(1, len(good[i]))]...)
		for n := range min(followed, len(bad[i])) {
			// Other addresses from each rail: what is said of one is true of all paths to it.
			all = append(all, bad[i][(i+n)%len(bad[i])])
		}
	}
	for _, s := range all {
		s.limit = 1
		if hop, ok := r.firstHop(s.pair); ok {
			s.pair.hops, s.limit = []netip.Addr{hop}, 2
		}
	}
	return all
}

// firstHops asks, before anything else has used up what routers say, for the first hop
// of two paths from each rail: one might end in a hole.
func (r *run) firstHops() error {
	var first, last [2]map[int]*pair // by family
	for i := range first {
		first[i], last[i] = map[int]*pair{}, map[int]*pair{}
	}
	for _, p := range r.pairs {
		if d := &p.ways[device]; d.usable && d.hopErr == nil && d.hop.GW.IsValid() {
			family := 0
			if d.is4 {
				family = 1
			}
			if first[family][p.rail] == nil {
				first[family][p.rail] = p
			}
			last[family][p.rail] = p
		}
	}
	for _, p := range r.pairs {
		for i := range first {
			if p != first[i][p.rail] && p != last[i][p.rail] {
				continue
			}
			e := &echo{line: p.ways[device].line, to: p.peer.Addr, hopLimit: 1, aside: true}
			r.first = append(r.first, e)
			if err := r.send(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstHop is the router that a rail's packets to a gateway come to.
func (r *run) firstHop(p *pair) (netip.Addr, bool) {
	for _, e := range r.first {
		if e.class == timeExceeded && e.line == p.ways[device].line && !r.own(e.errFrom) {
			return e.errFrom, true
		}
	}
	return netip.Addr{}, false
}

// gatewaysToAsk are, for paths through a gateway that bring nothing back, that gateway
// and the one of the rail that the path should lead to, as far as this pod knows it.
func (r *run) gatewaysToAsk() {
	for _, p := range r.pairs {
		via := p.ways[device].hop.GW
		if !via.IsValid() || r.outcome(&p.ways[device]).good() {
			continue
		}
		for _, gw := range []netip.Addr{via, r.gatewayOf(p.peer)} {
			if gw.IsValid() && r.asked(p.rail, gw) == nil {
				r.far = append(r.far, &asking{farKey: farKey{p.rail, gw}})
			}
		}
	}
}

// asked is what became of asking an address from a rail, or nil.
func (r *run) asked(rail int, addr netip.Addr) *asking {
	for _, a := range r.far {
		if a.farKey == (farKey{rail, addr}) {
			return a
		}
	}
	return nil
}

// gatewayOf is the gateway of the pod's own rail of a name, for the peer's family.
func (r *run) gatewayOf(peer Peer) netip.Addr {
	for _, p := range r.pairs {
		if gw := p.ways[device].hop.GW; r.rails[p.rail].Name == peer.Rail && gw.IsValid() && gw.Is4() == peer.Addr.Is4() {
			return gw
		}
	}
	return netip.Addr{}
}
