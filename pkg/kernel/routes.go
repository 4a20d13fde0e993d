package kernel

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// FoundRoute is a route as the kernel has it.
type FoundRoute struct {
	policy.Route
	// Kind is rtm_type: unix.RTN_UNICAST for ordinary routes.
	Kind int
	// More says that the route has more next hops than policy.Route can say.
	More bool
}

// Ours reports whether railtune made the route.
func (r FoundRoute) Ours() bool {
	return r.Protocol == policy.Protocol && !r.More && r.Kind == unix.RTN_UNICAST
}

// RouteFilter selects routes. Zero fields select all; the kernel does the selecting.
type RouteFilter struct {
	Table    uint32
	IfIndex  int
	Protocol uint8
}

// Routes returns the routes of a family that the filter selects, of all tables where
// it names none. A table that does not exist has no routes.
func (k *Netlink) Routes(f policy.Family, filter RouteFilter) ([]FoundRoute, error) {
	nf := &netlink.Route{Table: int(filter.Table), LinkIndex: filter.IfIndex, Protocol: netlink.RouteProtocol(filter.Protocol)}
	mask := netlink.RT_FILTER_TABLE
	if filter.IfIndex != 0 {
		mask |= netlink.RT_FILTER_OIF
	}
	if filter.Protocol != 0 {
		mask |= netlink.RT_FILTER_PROTOCOL
	}
	// Only for dumps: the library's lookups carry a flag that a strict socket refuses.
	_ = k.handle.SetStrictCheck(true)
	defer func() { _ = k.handle.SetStrictCheck(false) }()
	var out []FoundRoute
	err := Dump(f.String()+" routes", func() error {
		out = out[:0]
		return ignoreNoTable(k.handle.RouteListFilteredIter(int(f), nf, mask, func(r netlink.Route) bool {
			if found := foundRoute(f, r); found.Table != unix.RT_TABLE_LOCAL {
				out = append(out, found)
			}
			return true
		}))
	})
	return out, err
}

// ignoreNoTable: a strict dump of a table that was never used is ENOENT.
func ignoreNoTable(err error) error {
	if err == unix.ENOENT || gone(err) {
		return nil
	}
	return err
}

func foundRoute(f policy.Family, r netlink.Route) FoundRoute {
	out := FoundRoute{Kind: r.Type, More: len(r.MultiPath) > 0, Route: policy.Route{
		Table: uint32(r.Table), IfIndex: r.LinkIndex, Metric: uint32(r.Priority), Protocol: uint8(r.Protocol),
		GW: addrOf(r.Gw), Src: addrOf(r.Src), MTU: uint32(r.MTU), AdvMSS: uint32(r.AdvMSS),
	}}
	out.Dst = netip.PrefixFrom(zero(f), 0)
	if r.Dst != nil {
		ones, _ := r.Dst.Mask.Size()
		out.Dst = netip.PrefixFrom(addrOf(r.Dst.IP), ones)
	}
	if f == policy.IPv4 {
		out.Scope = policy.Scope(r.Scope)
	}
	return out
}

func zero(f policy.Family) netip.Addr {
	if f == policy.IPv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func addrOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// AddRoute makes a route; one with the same table, destination and metric is an
// error (EEXIST), whatever its device.
func (k *Netlink) AddRoute(r policy.Route) error { return k.handle.RouteAdd(toRoute(r)) }

// DelRoute removes exactly this route; one that is not there is no error.
func (k *Netlink) DelRoute(r policy.Route) error {
	if err := k.handle.RouteDel(toRoute(r)); err != nil && !gone(err) {
		return err
	}
	return nil
}

func toRoute(r policy.Route) *netlink.Route {
	out := &netlink.Route{
		Table: int(r.Table), LinkIndex: r.IfIndex, Dst: ipNet(r.Dst), Priority: int(r.Metric),
		Protocol: netlink.RouteProtocol(r.Protocol), Scope: netlink.Scope(r.Scope), MTU: int(r.MTU), AdvMSS: int(r.AdvMSS),
		Type: unix.RTN_UNICAST,
	}
	if r.GW.IsValid() {
		out.Gw = r.GW.AsSlice()
	}
	if r.Src.IsValid() {
		out.Src = r.Src.AsSlice()
	}
	return out
}

// Hop is the answer to a route lookup.
type Hop struct {
	IfIndex int
	GW      netip.Addr
	// Kind is the route's type (unix.RTN_UNICAST, RTN_LOCAL, …).
	Kind int
}

// Lookup asks where a packet would leave. from and ifindex (a socket bound to the
// device) may be zero. No route, and a rule or route of type unreachable, are errors
// (ENETUNREACH, EHOSTUNREACH).
func (k *Netlink) Lookup(to, from netip.Addr, ifindex int) (Hop, error) {
	return k.lookup(to, netlink.RouteGetOptions{OifIndex: ifindex, SrcAddr: from.AsSlice()})
}

// DefaultThrough returns the default route of main and its device: through the
// device given, or wherever it leads for 0. ok is false where there is none.
func (k *Netlink) DefaultThrough(f policy.Family, ifindex int) (hop Hop, ok bool) {
	// Documentation addresses (RFC 5737, RFC 3849): nobody has a longer route for them.
	to := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	if f == policy.IPv6 {
		to = netip.MustParseAddr("2001:db8::1")
	}
	// FIBMatch returns the route itself, not what the kernel makes of its absence:
	// for a bound socket it takes everything to be on the link.
	hop, err := k.lookup(to, netlink.RouteGetOptions{OifIndex: ifindex, FIBMatch: true})
	return hop, err == nil && hop.Kind == unix.RTN_UNICAST
}

func (k *Netlink) lookup(to netip.Addr, opts netlink.RouteGetOptions) (Hop, error) {
	routes, err := k.handle.RouteGetWithOptions(to.AsSlice(), &opts)
	if err != nil {
		return Hop{}, err
	}
	if len(routes) == 0 {
		return Hop{}, unix.ENETUNREACH
	}
	r := routes[0]
	return Hop{IfIndex: r.LinkIndex, GW: addrOf(r.Gw), Kind: r.Type}, nil
}
