package plan

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/prevresult"
)

// ipv6Metric is what the kernel stores for an IPv6 route without a metric
// (IP6_RT_PRIO_USER, include/uapi/linux/ipv6_route.h). It is always given, so that
// what is read back equals what was written.
const ipv6Metric = 1024

// privateTable adds one group's table: first what is on the link, then what is
// behind next hops. The address's own prefix is the source of truth; main is never
// copied, as it mixes stale, expiring and other tools' routes.
func (b *builder) privateTable(g *group) {
	first := g.addrs[0]
	b.localInVRF(g)
	for _, a := range g.addrs {
		if !a.connected.IsSingleIP() || a.connected.Addr() != a.addr() {
			b.addPrivate(g, b.direct(g, a.connected, a))
		}
	}
	b.addGatewayRoute(g, g.gw, first)
	for _, h := range b.perGroup[g] {
		b.addGatewayRoute(g, h.gw, first)
		b.addPrivate(g, b.via(g, h.dst, h.gw, first))
	}
	for _, r := range b.Routes {
		b.addIPAMRoute(g, r)
	}
	if g.gw.IsValid() {
		b.addPrivate(g, b.via(g, defaultOf(g.family), g.gw, first))
	}
}

// localInVRF keeps packets to the rail's own addresses in the namespace. The kernel has a
// VRF's local routes in the VRF's table, which comes with the rule at 1000, after
// railtune's. They also allow the addresses as preferred sources: the kernel looks for
// these in the route's own table and in local (net/ipv4/fib_semantics.c,
// fib_valid_prefsrc).
func (b *builder) localInVRF(g *group) {
	if b.State.Rail.VRFTable == 0 {
		return
	}
	for _, a := range g.addrs {
		r := b.direct(g, netip.PrefixFrom(a.addr(), a.addr().BitLen()), a)
		r.Local, r.Src = true, netip.Addr{}
		if g.family == policy.IPv4 {
			r.Scope = policy.OnHost
		}
		b.addPrivate(g, r)
	}
}

// addGatewayRoute makes a next hop reachable that none of the group's prefixes
// covers: the gateway of a host prefix, or one in another group's prefix.
func (b *builder) addGatewayRoute(g *group, gw netip.Addr, src *address) {
	if !gw.IsValid() || gw.Is6() && gw.IsLinkLocalUnicast() {
		return
	}
	for _, a := range g.addrs {
		if a.connected.Contains(gw) {
			return
		}
	}
	b.addPrivate(g, b.direct(g, netip.PrefixFrom(gw, gw.BitLen()), src))
}

// addIPAMRoute repeats a route of prevResult, as the interface plugin's IPAM put it
// into main (plugins/pkg/ipam.ConfigureIface: a route without a gateway uses the
// address's, or is on the link where there is none either).
func (b *builder) addIPAMRoute(g *group, r prevresult.Route) {
	if policy.FamilyOf(r.Dst.Addr()) != g.family || r.Elsewhere {
		return
	}
	gw := r.GW
	if !gw.IsValid() {
		gw = g.gw
	}
	route := b.direct(g, r.Dst, g.addrs[0])
	if gw.IsValid() {
		if !b.groupReaches(g, gw) || b.State.Local(gw) {
			return // for another interface's or another group's gateway
		}
		route = b.via(g, r.Dst, gw, g.addrs[0])
	}
	route.MTU, route.AdvMSS = r.MTU, r.AdvMSS
	if r.Priority != 0 {
		route.Metric = r.Priority
	}
	b.addPrivate(g, route)
}

func (b *builder) groupReaches(g *group, gw netip.Addr) bool {
	if gw == g.gw {
		return true
	}
	for _, a := range g.addrs {
		if a.connected.Contains(gw) || gw.Is6() && gw.IsLinkLocalUnicast() {
			return true
		}
	}
	return false
}

// addPrivate adds a route unless an earlier one has its place in the table.
func (b *builder) addPrivate(g *group, r policy.Route) {
	for _, have := range b.plan.Routes {
		if have.SameSlot(r) && have.Family() == r.Family() {
			return
		}
	}
	b.plan.Routes = append(b.plan.Routes, r)
	if r.GW.IsValid() {
		b.noteGateway(r.GW)
	}
}

func (b *builder) noteGateway(gw netip.Addr) {
	for _, have := range b.plan.Gateways {
		if have == gw {
			return
		}
	}
	b.plan.Gateways = append(b.plan.Gateways, gw)
}

func (b *builder) direct(g *group, dst netip.Prefix, src *address) policy.Route {
	r := b.via(g, dst, netip.Addr{}, src)
	if g.family == policy.IPv4 {
		r.Scope = policy.OnLink
	}
	return r
}

func (b *builder) via(g *group, dst netip.Prefix, gw netip.Addr, src *address) policy.Route {
	r := policy.Route{
		Table: g.table, Dst: dst, GW: gw, Src: preferredSource(src),
		Dev: b.plan.IfName, IfIndex: b.plan.IfIndex, Protocol: policy.Protocol,
	}
	if g.family == policy.IPv6 {
		r.Metric = ipv6Metric
	}
	return r
}

// preferredSource is the address for IPv4. For IPv6 it is none: the kernel refuses a
// tentative address there, and RFC 6724 rule 5 prefers the outgoing interface's.
func preferredSource(a *address) netip.Addr {
	if a.family() == policy.IPv6 {
		return netip.Addr{}
	}
	return a.addr()
}

func defaultOf(f policy.Family) netip.Prefix {
	if f == policy.IPv4 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// rules adds one group's rules. Priorities p, p+1 and p+2 keep the three kinds in
// order: an address's own table, then device-bound sockets without an address, then
// the guard, which is what remains when a link flap or a deleted link has emptied
// the table; without it the packet would fall through to main and leave by another
// rail. Every table has a device rule: it says whose the table is.
func (b *builder) rules(g *group) {
	p := uint32(b.Config.RulePriority)
	b.plan.Rules = append(b.plan.Rules, policy.Rule{
		Family: g.family, Priority: p + 1, OIF: b.plan.IfName,
		Action: policy.Lookup, Table: g.table, Protocol: policy.Protocol,
	})
	var guards []policy.Rule
	for _, a := range g.addrs {
		from := policy.Rule{
			Family: g.family, Priority: p, From: netip.PrefixFrom(a.addr(), a.addr().BitLen()),
			Action: policy.Lookup, Table: g.table, Protocol: policy.Protocol,
		}
		b.plan.Rules = append(b.plan.Rules, from)
		if b.unguarded(g) {
			b.plan.warn("%s on %s has no gateway of its own and a router advertisement's default route: "+
				"no guard rule, its way off the link is the kernel's route in main, which may be another rail's; "+
				"sockets bound to the device are exact", a.addr(), b.plan.IfName)
			continue
		}
		guard := from
		guard.Priority, guard.Action, guard.Table = p+2, policy.Unreachable, 0
		guards = append(guards, guard)
	}
	b.plan.Rules = append(b.plan.Rules, guards...)
}

func (b *builder) unguarded(g *group) bool {
	return g.family == policy.IPv6 && !g.gw.IsValid() && b.State.RADefault
}
