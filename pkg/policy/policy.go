// Package policy holds the objects of policy routing as plain values: rules and
// routes as railtune wants them, or as the kernel has them.
//
// Values are comparable with ==, so a difference between what is wanted and what
// is there is a comparison of values, and they print as the line a person would
// type after "ip" to make them.
package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Protocol marks every rule and route that railtune makes (rtm_protocol and
// FRA_PROTOCOL). It is the whole of railtune's ownership record: what does not
// carry it is never changed, what carries it can be found without any state on
// disk. The number is free in /etc/iproute2/rt_protos and in the kernel's
// include/uapi/linux/rtnetlink.h.
const Protocol = 72

// MainTable is RT_TABLE_MAIN.
const MainTable = 254

// Family is an address family in the kernel's numbering.
type Family uint8

// The two families, AF_INET and AF_INET6.
const (
	IPv4 Family = 2
	IPv6 Family = 10
)

// FamilyOf returns the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() || a.Is4In6() {
		return IPv4
	}
	return IPv6
}

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv4 {
		return "IPv4"
	}
	return "IPv6"
}

// Action is what a rule does with a packet it matches.
type Action uint8

// Rule actions, as FR_ACT_* in include/uapi/linux/fib_rules.h.
const (
	// Lookup continues in Rule.Table; where that has no route, with the next rule.
	Lookup Action = 1
	// Unreachable ends the search: the sender gets EHOSTUNREACH.
	Unreachable Action = 7
)

// Rule is one policy rule. The zero From and the empty OIF match everything.
type Rule struct {
	Family   Family
	Priority uint32
	// From is a host-length prefix for railtune's own rules.
	From netip.Prefix
	// OIF is the name of the device a socket is bound to. The kernel keeps the
	// name after the device is gone and shows the rule as [detached].
	OIF    string
	Action Action
	// Table is meaningful for Lookup only.
	Table    uint32
	Protocol uint8
}

// String prints the rule as arguments for "ip" ("rule add …").
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(ipFlag(r.Family) + "rule add priority " + strconv.Itoa(int(r.Priority)))
	if r.From.IsValid() {
		b.WriteString(" from " + prefixText(r.From))
	}
	if r.OIF != "" {
		b.WriteString(" oif " + r.OIF)
	}
	switch r.Action {
	case Lookup:
		fmt.Fprintf(&b, " lookup %d", r.Table)
	case Unreachable:
		b.WriteString(" unreachable")
	default:
		fmt.Fprintf(&b, " action %d", r.Action)
	}
	fmt.Fprintf(&b, " protocol %d", r.Protocol)
	return b.String()
}

// Scope is how far a route's destination is, as rtm_scope.
type Scope uint8

// IPv4 scopes, RT_SCOPE_* in include/uapi/linux/rtnetlink.h. IPv6 has none: its
// routes always read as Universe.
const (
	Universe Scope = 0
	OnLink   Scope = 253
	OnHost   Scope = 254
)

// Route is one route through one device.
type Route struct {
	Table uint32
	// Local says that the destination is this namespace itself (RTN_LOCAL).
	Local bool
	Dst   netip.Prefix
	// GW is the next hop; the zero Addr where the destination is on the link.
	GW netip.Addr
	// Dev is for printing; IfIndex is what the kernel gets.
	Dev     string
	IfIndex int
	// Src is the preferred source (IPv4 only: a tentative IPv6 address is
	// refused here, and IPv6 prefers the outgoing device's addresses anyway).
	Src    netip.Addr
	Scope  Scope
	Metric uint32
	// MTU and AdvMSS are route metrics in bytes; 0 leaves them to the device.
	MTU, AdvMSS uint32
	Protocol    uint8
}

// Family returns the route's family, which is its destination's.
func (r Route) Family() Family { return FamilyOf(r.Dst.Addr()) }

// String prints the route as arguments for "ip" ("route add …").
func (r Route) String() string {
	var b strings.Builder
	b.WriteString(ipFlag(r.Family()) + "route add ")
	if r.Local {
		b.WriteString("local ")
	}
	b.WriteString(r.DstText())
	if r.GW.IsValid() {
		b.WriteString(" via " + r.GW.String())
	}
	dev := r.Dev
	if dev == "" {
		dev = "if" + strconv.Itoa(r.IfIndex)
	}
	b.WriteString(" dev " + dev)
	if r.Table != MainTable {
		fmt.Fprintf(&b, " table %d", r.Table)
	}
	if r.Scope == OnLink {
		b.WriteString(" scope link")
	}
	if r.Src.IsValid() {
		b.WriteString(" src " + r.Src.String())
	}
	if r.Metric != 0 {
		fmt.Fprintf(&b, " metric %d", r.Metric)
	}
	if r.MTU != 0 {
		fmt.Fprintf(&b, " mtu %d", r.MTU)
	}
	if r.AdvMSS != 0 {
		fmt.Fprintf(&b, " advmss %d", r.AdvMSS)
	}
	fmt.Fprintf(&b, " protocol %d", r.Protocol)
	return b.String()
}

// DstText is the destination as "ip route" shows it: "default" for the zero prefix.
func (r Route) DstText() string {
	if r.Dst.Bits() == 0 {
		return "default"
	}
	return prefixText(r.Dst)
}

// SameSlot reports whether two routes compete for one place in the kernel: there
// the second add gets EEXIST whatever its device or next hop
// (net/ipv4/fib_trie.c, fib_table_insert; net/ipv6/ip6_fib.c, fib6_add_rt2node).
func (r Route) SameSlot(o Route) bool {
	return r.Table == o.Table && r.Dst == o.Dst && r.Metric == o.Metric
}

func ipFlag(f Family) string {
	if f == IPv6 {
		return "-6 "
	}
	return ""
}

// prefixText leaves out the length of a host prefix, as ip does.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
