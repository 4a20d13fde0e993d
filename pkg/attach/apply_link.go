package attach

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/prevresult"
)

// given is what a rail's link says where there is no result of a chain: what somebody
// gave it on purpose. What the kernel made by itself, from router advertisements or as
// link-local addresses, comes and goes with the kernel and is left to it.
type given struct {
	ips    []prevresult.IP
	routes []prevresult.Route
	notes  []string

	// main is the table the kernel keeps the link's routes in: main, or its VRF's.
	main uint32
	// defaults are the next hops of main's default routes, the preferred first;
	// elsewhere those of default routes in other tables, whose rules may be gone
	// (DRANET copies a host's tables and rules).
	defaults, elsewhere []netip.Addr
}

// given collects addresses, and the next hops and routes that main, and for next hops
// other tables, have through the link.
func (r *Rail) given(o *observation) (*given, error) {
	g := &given{main: cmp.Or(o.state.Rail.VRFTable, policy.MainTable)}
	for _, f := range families {
		if f == policy.IPv6 && !o.state.IPv6Kernel {
			continue
		}
		found, err := r.Kernel.Routes(f, kernel.RouteFilter{IfIndex: o.state.Rail.Index})
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(found, func(a, b kernel.FoundRoute) int { return cmp.Compare(a.Metric, b.Metric) })
		for _, route := range found {
			if deliberate(route) {
				g.addRoute(route)
			}
		}
	}
	for _, a := range o.state.Rail.Addrs {
		if !a.FromRA && !a.Prefix.Addr().IsLinkLocalUnicast() {
			g.ips = append(g.ips, prevresult.IP{Address: a.Prefix, Gateway: g.gatewayFor(a, r.IfName)})
		}
	}
	g.withoutGateway()
	return g, nil
}

// deliberate tells a route that somebody made from the kernel's own, railtune's, and
// those a router advertisement gave.
func deliberate(r kernel.FoundRoute) bool {
	switch r.Protocol {
	case policy.Protocol, unix.RTPROT_KERNEL, unix.RTPROT_RA, unix.RTPROT_REDIRECT:
		return false
	}
	return r.Kind == unix.RTN_UNICAST && !r.More
}

func (g *given) addRoute(r kernel.FoundRoute) {
	switch {
	case r.Dst.Bits() == 0 && !r.GW.IsValid():
	case r.Dst.Bits() == 0 && r.Table == g.main:
		g.defaults = append(g.defaults, r.GW)
	case r.Dst.Bits() == 0:
		g.elsewhere = append(g.elsewhere, r.GW)
	case r.Table == g.main:
		g.routes = append(g.routes, prevresult.Route{Dst: r.Dst, GW: r.GW, MTU: r.MTU, AdvMSS: r.AdvMSS, Priority: r.Metric})
	}
}

// gatewayFor is the next hop of an address, as IPAM would have given it: that of main's
// default route. Where main names one in another route, the plan finds that itself.
// Other tables are asked last, and only where they agree.
func (g *given) gatewayFor(a netstate.Addr, ifname string) netip.Addr {
	reaches := func(gw netip.Addr) bool {
		return gw.Is4() == a.Prefix.Addr().Is4() &&
			(a.Connected().Contains(gw) || gw.Is6() && gw.IsLinkLocalUnicast() || a.Connected().IsSingleIP())
	}
	if i := slices.IndexFunc(g.defaults, reaches); i >= 0 {
		return g.defaults[i]
	}
	if slices.ContainsFunc(g.routes, func(r prevresult.Route) bool { return r.GW.IsValid() && a.Connected().Contains(r.GW) }) {
		return netip.Addr{}
	}
	var found []netip.Addr
	for _, gw := range g.elsewhere {
		if reaches(gw) && !slices.Contains(found, gw) {
			found = append(found, gw)
		}
	}
	if len(found) > 1 {
		g.notes = append(g.notes, fmt.Sprintf("the tables that have a default route through %s do not agree on the gateway of %s: %v; none is used",
			ifname, a.Prefix.Addr(), found))
	}
	if len(found) != 1 {
		return netip.Addr{}
	}
	return found[0]
}

// withoutGateway drops routes to what is on the link in a family that has a gateway: in
// a chain's result a route without one goes through the address's, which would take
// neighbours the long way; the private default does that already.
func (g *given) withoutGateway() {
	g.routes = slices.DeleteFunc(g.routes, func(r prevresult.Route) bool {
		return !r.GW.IsValid() && slices.ContainsFunc(g.ips, func(ip prevresult.IP) bool {
			return ip.Gateway.IsValid() && ip.Gateway.Is4() == r.Dst.Addr().Is4()
		})
	})
}
