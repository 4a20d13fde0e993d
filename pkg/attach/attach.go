// Package attach carries a plan out: it observes the namespace, has the plan
// computed, applies it with an undo for each step, proves it, compares it later, and
// removes it. Each verb of the plugin is one method of Rail.
//
// # Order, and why
//
// A process can be killed between any two system calls, and nothing is kept on disk.
// So objects are made in an order in which whatever is there already says whose it
// is: the device rule first, as it names both the interface and the table; then the
// table's routes; then the source rules, which point at the table; the guard, which
// carries neither name nor table, last, so that it never stands without its source
// rule. Removal goes the other way round.
package attach

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Kernel is what attach needs of the kernel's links, rules and routes, in one
// namespace. kernel.Netlink is the real one.
type Kernel interface {
	Links() ([]netstate.Link, error)
	Link(index int) (netstate.Link, error)
	Rules(f policy.Family, keep func(*kernel.FoundRule) bool) ([]kernel.FoundRule, error)
	RulesUpTo(f policy.Family, last uint32, keep func(*kernel.FoundRule) bool) ([]kernel.FoundRule, error)
	AddRule(policy.Rule) error
	DelRule(policy.Rule) error
	Routes(f policy.Family, filter kernel.RouteFilter) ([]kernel.FoundRoute, error)
	AddRoute(policy.Route) error
	DelRoute(policy.Route) error
	Lookup(to, from netip.Addr, ifindex int) (kernel.Hop, error)
	Match(to, from netip.Addr, ifindex int) (kernel.Hop, error)
	DefaultThrough(f policy.Family, ifindex int) (hop kernel.Hop, ok bool)
}

// Log receives what a person should know although the verb succeeds.
type Log interface {
	Warnf(format string, args ...any)
	Debugf(format string, args ...any)
}

// Rail is one interface in one namespace, and the means to work on it.
type Rail struct {
	IfName string
	// NetNS is the namespace's path, for messages.
	NetNS  string
	Kernel Kernel
	Files  sysctl.Files
	Log    Log
	// Neighbours asks on the wire; nil asks nothing.
	Neighbours Neighbours
	// Firewall lets the rail's traffic in where the configuration asks for it; nil
	// where nothing does.
	Firewall Firewall
	// RDMA finds the RDMA ports of the rail; nil looks for none.
	RDMA func(*netstate.Link) (RDMA, error)
	// Parent finds the link an ipvlan rail is stacked on; nil, or a nil result, where
	// that cannot be reached.
	Parent func(*netstate.Link) *neigh.Parent

	// raSwitchedOn says that this ADD made the interface accept router advertisements.
	raSwitchedOn bool
}

var families = []policy.Family{policy.IPv4, policy.IPv6}
