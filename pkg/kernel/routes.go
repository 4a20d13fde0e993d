package kernel

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
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
	return r.Protocol == policy.Protocol && !r.More && (r.Kind == unix.RTN_UNICAST || r.Kind == unix.RTN_LOCAL)
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
	m := newRoute(unix.RTM_GETROUTE, rtmsg{family: uint8(f), protocol: filter.Protocol}, filter.Table)
	if filter.IfIndex != 0 {
		m.Uint32(unix.RTA_OIF, uint32(filter.IfIndex))
	}
	var out []FoundRoute
	err := nl.Dump(f.String()+" routes", func() error {
		out = out[:0]
		return ignoreNoTable(k.dump(m, unix.RTM_NEWROUTE, func(m []byte) error {
			h, attrs, err := parseRtmsg(m)
			if err != nil || h.family != uint8(f) || h.flags&unix.RTM_F_CLONED != 0 {
				return err
			}
			found, err := parseRoute(h, attrs)
			if err == nil && filter.selects(found) && found.Table != unix.RT_TABLE_LOCAL {
				out = append(out, found)
			}
			return err
		}))
	})
	return out, err
}

// selects does what a kernel without strict dumps leaves undone.
func (f RouteFilter) selects(r FoundRoute) bool {
	return (f.Table == 0 || f.Table == r.Table) && (f.IfIndex == 0 || f.IfIndex == r.IfIndex) &&
		(f.Protocol == 0 || f.Protocol == r.Protocol)
}

// ignoreNoTable: a strict dump of a table that was never used is ENOENT.
func ignoreNoTable(err error) error {
	if err == unix.ENOENT || gone(err) {
		return nil
	}
	return err
}

// parseRoute decodes an RTM_NEWROUTE message (include/uapi/linux/rtnetlink.h).
func parseRoute(h rtmsg, attrs []byte) (FoundRoute, error) {
	f := policy.Family(h.family)
	r := FoundRoute{Kind: int(h.kind), Route: policy.Route{
		Table: uint32(h.table), Local: h.kind == unix.RTN_LOCAL, Protocol: h.protocol, Dst: netip.PrefixFrom(zero(f), 0),
	}}
	if f == policy.IPv4 {
		r.Scope = policy.Scope(h.scope)
	}
	err := nl.EachAttr(attrs, func(kind uint16, v []byte) {
		switch kind {
		case unix.RTA_DST:
			r.Dst = prefixOf(v, int(h.dstLen))
		case unix.RTA_OIF:
			r.IfIndex = int(nl.Uint32(v))
		case unix.RTA_GATEWAY:
			r.GW = addrOf(v)
		case unix.RTA_PREFSRC:
			r.Src = addrOf(v)
		case unix.RTA_PRIORITY:
			r.Metric = nl.Uint32(v)
		case unix.RTA_TABLE:
			r.Table = nl.Uint32(v)
		case unix.RTA_MULTIPATH:
			r.More = true
		case unix.RTA_METRICS:
			r.MTU, r.AdvMSS = parseMetrics(v)
		}
	})
	return r, err
}

func parseMetrics(b []byte) (mtu, advMSS uint32) {
	_ = nl.EachAttr(b, func(kind uint16, v []byte) {
		switch kind {
		case unix.RTAX_MTU:
			mtu = nl.Uint32(v)
		case unix.RTAX_ADVMSS:
			advMSS = nl.Uint32(v)
		}
	})
	return mtu, advMSS
}

func zero(f policy.Family) netip.Addr {
	if f == policy.IPv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func addrOf(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

// AddRoute makes a route; one with the same table, destination and metric is an
// error (EEXIST), whatever its device.
func (k *Netlink) AddRoute(r policy.Route) error {
	return k.socket.Change(routeMessage(unix.RTM_NEWROUTE, r), unix.NLM_F_CREATE|unix.NLM_F_EXCL)
}

// DelRoute removes exactly this route; one that is not there is no error.
func (k *Netlink) DelRoute(r policy.Route) error {
	if err := k.socket.Change(routeMessage(unix.RTM_DELROUTE, r), 0); err != nil && !gone(err) {
		return err
	}
	return nil
}

func routeMessage(kind uint16, r policy.Route) nl.Message {
	h := rtmsg{
		family: uint8(r.Family()), dstLen: uint8(r.Dst.Bits()), protocol: r.Protocol, scope: uint8(r.Scope), kind: unix.RTN_UNICAST,
	}
	if r.Local {
		h.kind = unix.RTN_LOCAL
	}
	m := newRoute(kind, h, r.Table)
	m.Addr(unix.RTA_DST, r.Dst.Addr())
	if r.Src.IsValid() {
		m.Addr(unix.RTA_PREFSRC, r.Src)
	}
	if r.GW.IsValid() {
		m.Addr(unix.RTA_GATEWAY, r.GW)
	}
	if r.Metric != 0 {
		m.Uint32(unix.RTA_PRIORITY, r.Metric)
	}
	if r.MTU != 0 || r.AdvMSS != 0 {
		m.Nest(unix.RTA_METRICS, func() {
			if r.MTU != 0 {
				m.Uint32(unix.RTAX_MTU, r.MTU)
			}
			if r.AdvMSS != 0 {
				m.Uint32(unix.RTAX_ADVMSS, r.AdvMSS)
			}
		})
	}
	m.Uint32(unix.RTA_OIF, uint32(r.IfIndex))
	return m
}

// newRoute returns a message with its table, 0 for none.
func newRoute(kind uint16, h rtmsg, table uint32) nl.Message {
	if table < wideTable {
		h.table = uint8(table)
		return nl.NewMessage(kind, h.bytes())
	}
	m := nl.NewMessage(kind, h.bytes())
	m.Uint32(unix.RTA_TABLE, table)
	return m
}

// Hop is the answer to a route lookup.
type Hop struct {
	IfIndex int
	GW      netip.Addr
	// Kind is the route's type (unix.RTN_UNICAST, RTN_LOCAL, …).
	Kind int
	// Protocol says who made the route; only Match tells.
	Protocol uint8
	// Table is where the route is.
	Table uint32
}

// Lookup asks where a packet would leave. from and ifindex (a socket bound to the
// device) may be zero. No route, and a rule or route of type unreachable, are errors
// (ENETUNREACH, EHOSTUNREACH).
func (k *Netlink) Lookup(to, from netip.Addr, ifindex int) (Hop, error) {
	return k.lookup(to, from, ifindex, 0)
}

// Match returns the route that a packet would take, as it stands in its table. Arguments
// and errors are Lookup's.
func (k *Netlink) Match(to, from netip.Addr, ifindex int) (Hop, error) {
	return k.lookup(to, from, ifindex, unix.RTM_F_FIB_MATCH)
}

// DefaultThrough returns the default route of main and its device: through the
// device given, or wherever it leads for 0. ok is false where there is none.
func (k *Netlink) DefaultThrough(f policy.Family, ifindex int) (hop Hop, ok bool) {
	// Documentation addresses (RFC 5737, RFC 3849): nobody has a longer route for them.
	to := netip.AddrFrom4([4]byte{192, 0, 2, 1})
	if f == policy.IPv6 {
		to = netip.MustParseAddr("2001:db8::1")
	}
	// RTM_F_FIB_MATCH returns the route itself, not what the kernel makes of its absence:
	// for a bound socket it takes everything to be on the link.
	hop, err := k.lookup(to, netip.Addr{}, ifindex, unix.RTM_F_FIB_MATCH)
	return hop, err == nil && hop.Kind == unix.RTN_UNICAST
}

func (k *Netlink) lookup(to, from netip.Addr, ifindex int, flags uint32) (Hop, error) {
	h := rtmsg{family: uint8(policy.FamilyOf(to)), dstLen: uint8(to.BitLen()), flags: flags}
	if to.Is4() {
		h.flags |= unix.RTM_F_LOOKUP_TABLE // IPv6 always tells (net/ipv6/route.c), and refuses the flag
	}
	if from.IsValid() {
		h.srcLen = uint8(from.BitLen())
	}
	m := nl.NewMessage(unix.RTM_GETROUTE, h.bytes())
	m.Addr(unix.RTA_DST, to)
	if ifindex != 0 {
		m.Uint32(unix.RTA_OIF, uint32(ifindex))
	}
	if from.IsValid() {
		m.Addr(unix.RTA_SRC, from)
	}
	hop, answered := Hop{}, false
	err := k.socket.Do(m, 0, func(kind uint16, m []byte) error {
		if kind != unix.RTM_NEWROUTE || answered {
			return nil
		}
		h, attrs, err := parseRtmsg(m)
		if err != nil {
			return err
		}
		r, err := parseRoute(h, attrs)
		hop, answered = Hop{IfIndex: r.IfIndex, GW: r.GW, Kind: r.Kind, Protocol: r.Protocol, Table: r.Table}, true
		return err
	})
	if err == nil && !answered {
		err = unix.ENETUNREACH
	}
	return hop, err
}
