package plan

import (
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/policy"
)

// lookups adds the questions that prove a group: from each of its addresses, as a
// plain source and bound to the device, to a neighbour, to the next hop, and into
// each supernet.
func (b *builder) lookups(g *group) {
	for _, a := range g.addrs {
		if g.gw.IsValid() && !g.gw.IsLinkLocalUnicast() {
			b.ask(a, g.gw, netip.Addr{}, "its gateway")
		}
		if r, ok := b.defaultRoute(g); ok {
			b.ask(a, elsewhere(g.family), r.GW, "anywhere else")
		}
		if to, ok := b.representative(g, a.connected); ok {
			b.ask(a, to, netip.Addr{}, "its own prefix "+a.connected.String())
		}
		for _, h := range b.perGroup[g] {
			if to, ok := b.representative(g, h.dst); ok {
				b.ask(a, to, h.gw, "supernet "+h.dst.String())
			}
		}
	}
}

// defaultRoute returns the group's default route.
func (b *builder) defaultRoute(g *group) (policy.Route, bool) {
	for _, r := range b.plan.Routes {
		if r.Table == g.table && r.Dst == defaultOf(g.family) {
			return r, true
		}
	}
	return policy.Route{}, false
}

// elsewhere is a documentation address (RFC 5737, RFC 3849): no route but a default one
// leads there.
func elsewhere(f policy.Family) netip.Addr {
	if f == policy.IPv6 {
		return netip.MustParseAddr("2001:db8::1")
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, 1})
}

func (b *builder) ask(a *address, to, gw netip.Addr, why string) {
	for _, bound := range []bool{false, true} {
		l := Lookup{From: a.addr(), To: to, GW: gw, Bound: bound, Why: why}
		if !slices.ContainsFunc(b.plan.Lookups, l.asks) {
			b.plan.Lookups = append(b.plan.Lookups, l)
		}
	}
}

// representative picks an address that stands for a prefix: routed by that prefix's
// route and no longer one, and neither local to the namespace nor a broadcast
// address, for which the local table answers first.
func (b *builder) representative(g *group, p netip.Prefix) (netip.Addr, bool) {
	const tries = 4096 // bounds the search where other prefixes cover all of p
	to := p.Masked().Addr()
	if !p.IsSingleIP() && to.BitLen()-p.Bits() > 1 {
		to = to.Next()
	}
	for range tries {
		if !to.IsValid() || !p.Contains(to) {
			break
		}
		if longer, ok := b.longer(g, p, to); ok {
			to = lastOf(longer).Next()
			continue
		}
		if !b.State.Local(to) && !b.broadcast(to) {
			return to, true
		}
		to = to.Next()
	}
	return netip.Addr{}, false
}

// longer returns a route of the group's table inside p that takes to away from it.
func (b *builder) longer(g *group, p netip.Prefix, to netip.Addr) (netip.Prefix, bool) {
	for _, r := range b.plan.Routes {
		if r.Table == g.table && r.Dst.Bits() > p.Bits() && r.Dst.Contains(to) {
			return r.Dst, true
		}
	}
	return netip.Prefix{}, false
}

func (b *builder) broadcast(to netip.Addr) bool {
	if !to.Is4() {
		return false
	}
	links := append(b.State.Others[:len(b.State.Others):len(b.State.Others)], b.State.Rail)
	for _, l := range links {
		for _, a := range l.Addrs {
			p := a.Prefix.Masked()
			if p.Contains(to) && p.Bits() < 31 && (to == lastOf(p) || to == p.Addr()) {
				return true
			}
		}
	}
	return false
}

// asks reports whether another lookup is the same question.
func (l Lookup) asks(o Lookup) bool {
	l.Why = o.Why
	return l == o
}
