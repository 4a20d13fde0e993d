// Package plan computes what one rail needs, as a value: settings, rules, routes
// and the lookups that prove them. It is a pure function of configuration,
// prevResult and a snapshot of the namespace; ADD applies the plan, CHECK compares
// it, and both therefore mean the same thing.
package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
)

// TableBase is the start of the derived tables: an interface's table is TableBase
// plus its index. The range is far above the tables that people, other CNI plugins
// and route daemons take (1–1000), so a plugin that takes "the first free table
// from 100" later in the chain finds those untouched.
const TableBase = 7200000

// GroupStep separates the tables of one interface: addresses with another gateway
// than the first go to TableBase + index + k·GroupStep.
const GroupStep = 100000000

// MetricBase plus the interface's index is the metric of a supernet in main, so
// that sixteen rails can have the same supernet there without replacing or joining
// each other's route.
const MetricBase = 1000

// Plan is the desired state of one rail.
type Plan struct {
	IfName  string
	IfIndex int
	// Addresses are the rail's addresses that get rules, in prevResult's order.
	Addresses []netip.Prefix
	// Gateways are the distinct next hops of the plan, in order of first use.
	Gateways []netip.Addr
	// Supernets are those that are installed somewhere.
	Supernets []netip.Prefix
	// Settings are the interface settings to write.
	Settings []Setting
	// Tables are the private tables; every rule and private route is about one of them.
	Tables []uint32
	// Rules are in the order they have to be made: a table's device rule claims the
	// table and comes first, its guard comes last. See pkg/attach for why.
	Rules []policy.Rule
	// Routes are the private tables' routes; a route precedes those that need it.
	Routes []policy.Route
	// Main are the routes for table main, or the VRF's where the rail belongs to one.
	Main []policy.Route
	// Lookups are the questions whose answers prove rules and routes.
	Lookups []Lookup
	// Warnings say what was left alone or left out, and why.
	Warnings []string
}

// Setting is one sysctl value of the interface.
type Setting struct {
	Key   sysctl.Key
	Value string
	// Default says that the user did not ask for it.
	Default bool
}

// Lookup is a question to the kernel: where would a packet From go to To leave?
// It must leave through the rail, by GW (the zero Addr: directly).
type Lookup struct {
	From, To netip.Addr
	// Bound asks for a socket that is bound to the device.
	Bound bool
	GW    netip.Addr
	// Why names what the lookup stands for, such as "supernet 10.61.0.0/16".
	Why string
}

// String prints the plan as the commands a person would type, one a line.
func (p *Plan) String() string {
	var b strings.Builder
	for _, s := range p.Settings {
		fmt.Fprintf(&b, "sysctl -w %s=%s\n", s.Key.For(p.IfName), s.Value)
	}
	for _, r := range p.Rules {
		fmt.Fprintln(&b, "ip", r)
	}
	for _, r := range p.Routes {
		fmt.Fprintln(&b, "ip", r)
	}
	for _, r := range p.Main {
		fmt.Fprintln(&b, "ip", r)
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(&b, "# warning:", w)
	}
	return b.String()
}

// Families returns the families the plan has rules in, IPv4 first.
func (p *Plan) Families() []policy.Family {
	var out []policy.Family
	for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
		for _, a := range p.Addresses {
			if policy.FamilyOf(a.Addr()) == f {
				out = append(out, f)
				break
			}
		}
	}
	return out
}

// Own returns the addresses without their prefix lengths.
func (p *Plan) Own() []netip.Addr {
	out := make([]netip.Addr, len(p.Addresses))
	for i, a := range p.Addresses {
		out[i] = a.Addr()
	}
	return out
}

func (p *Plan) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}
