// Package facts holds what doctor saw in a namespace, as plain data: no verdicts, no
// kernel. Package gather fills it, package check judges it, package render shows it,
// and its JSON form is doctor's stable output.
package facts

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Namespace is everything that was looked at.
type Namespace struct {
	// Path is the namespace as it was asked for.
	Path string `json:"path"`
	// Rails are the interfaces that are judged, by index.
	Rails []Rail `json:"rails"`
	// Others are the names of the interfaces that are not rails.
	Others []string `json:"others"`
	// Links are all interfaces, rails too.
	Links []netstate.Link `json:"-"`
	// Defaults are the conf/default values that an interface which arrives next gets.
	Defaults []Setting `json:"defaults"`
	// Rules are railtune's and those others made that can match a rail's packet, in the
	// kernel's order; the kernel's own three are left out. RuleCount counts all.
	Rules     []Rule `json:"rules"`
	RuleCount int    `json:"ruleCount"`
	// Routes are those of all tables but local that concern a rail, a default route, or
	// a table of railtune's.
	Routes []Route `json:"routes"`
	// NeighbourTables are the host's, shared by all its namespaces.
	NeighbourTables []NeighbourTable `json:"neighbourTables"`
	// Firewall says that iptables was looked at.
	Firewall bool `json:"firewallLookedAt"`
	// Chains are the iptables chains that a rail's packets can meet.
	Chains []Chain `json:"chains"`
	// Peers are the addresses that were given with --peer.
	Peers []netip.Addr `json:"peers,omitempty"`
	// NotLookedAt says what could not be looked at, and why: it is not known to be clean.
	NotLookedAt []string `json:"notLookedAt"`
	// Probed says that the wire was asked.
	Probed bool `json:"probed"`
}

// Rail is one interface that carries RDMA traffic.
type Rail struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	// Because says how it was recognised: "RDMA device mlx5_0", "railtune's rules",
	// "--rail net*".
	Because string `json:"because"`
	// Driver is what ETHTOOL_GDRVINFO names; Kind the rtnetlink kind, "" for hardware.
	Driver string `json:"driver,omitempty"`
	Kind   string `json:"kind,omitempty"`
	// Parent is the link it is stacked on: a name, or "if5 in namespace 0".
	Parent    string     `json:"parent,omitempty"`
	MAC       string     `json:"mac"`
	MTU       int        `json:"mtu"`
	Up        bool       `json:"up"`
	Carrier   bool       `json:"carrier"`
	Addresses []Address  `json:"addresses"`
	RDMA      *RDMA      `json:"rdma,omitempty"`
	Settings  []Setting  `json:"settings"`
	Lookups   []Lookup   `json:"lookups"`
	Gateways  []Gateway  `json:"gateways"`
	Entries   []Entry    `json:"neighbours"`
	Proof     []Question `json:"probe,omitempty"`
	// Link is the same interface as the plan sees it.
	Link netstate.Link `json:"-"`
	// IPv6 says that the kernel keeps IPv6 settings for the rail.
	IPv6 bool `json:"ipv6"`
}

// Address is one of a rail's.
type Address struct {
	Address netip.Prefix `json:"address"`
	// OnLink is the prefix that is on the link because of it.
	OnLink netip.Prefix `json:"onLink"`
	// State is "usable", "tentative" or "dadfailed".
	State string `json:"state"`
	// FromRA: the kernel made it from a router advertisement.
	FromRA bool `json:"fromRouterAdvertisement,omitempty"`
}

// Gateway is a next hop on a rail's link, with the first route that names it.
type Gateway struct {
	Address netip.Addr `json:"address"`
	Route   string     `json:"route"`
}

// RDMA is the device of a rail.
type RDMA struct {
	Device string `json:"device"`
	// State is the port's: ACTIVE, DOWN, …
	State string `json:"state"`
	// GIDs are its RoCE v2 entries.
	GIDs []GID `json:"gids"`
}

// GID is one entry of the GID table.
type GID struct {
	Port  int        `json:"port"`
	Index int        `json:"index"`
	GID   string     `json:"gid"`
	Addr  netip.Addr `json:"address,omitzero"`
}

// Setting is one interface setting as the kernel applies it.
type Setting struct {
	Key sysctl.Key `json:"-"`
	// Name is the key as sysctl takes it.
	Name string `json:"name"`
	File string `json:"file"`
	// All is conf/all's value, "" where that has no say.
	All       string `json:"all,omitempty"`
	Effective string `json:"effective"`
	// Rule says how the two make the effective value.
	Rule string `json:"rule,omitempty"`
	// Verdict is "ok", "wrong", or "" for a value that is only shown.
	Verdict string `json:"verdict,omitempty"`
}

// Rule is a policy rule.
type Rule struct {
	policy.Rule `json:"-"`
	// Text is the rule as "ip" takes it.
	Text string `json:"rule"`
	// More says that it has conditions Text leaves out (a mark, a destination, …).
	More bool `json:"moreConditions,omitempty"`
	Ours bool `json:"railtune"`
}

// Route is a route with its device's name.
type Route struct {
	policy.Route `json:"-"`
	Text         string `json:"route"`
	// Kind is rtm_type, RTN_UNICAST for ordinary ones.
	Kind int  `json:"-"`
	More bool `json:"moreNextHops,omitempty"`
	Ours bool `json:"railtune"`
}

// Purpose is what a lookup's destination stands for.
type Purpose string

// The purposes of lookups.
const (
	ToOwnSubnet Purpose = "own subnet"
	ToSibling   Purpose = "sibling's subnet"
	ToGateway   Purpose = "gateway"
	ToSupernet  Purpose = "supernet"
	ToAnywhere  Purpose = "anywhere else"
	ToPeer      Purpose = "peer"
)

// Lookup is a question to the kernel: by where does a packet leave?
type Lookup struct {
	From    netip.Addr `json:"from"`
	To      netip.Addr `json:"to"`
	Purpose Purpose    `json:"purpose"`
	// Prefix is what To stands for.
	Prefix netip.Prefix `json:"prefix,omitzero"`
	// Bound: on a socket bound to the rail, as RDMA's own lookups are.
	Bound bool       `json:"bound"`
	Table uint32     `json:"table,omitempty"`
	Dev   string     `json:"dev,omitempty"`
	GW    netip.Addr `json:"gw,omitzero"`
	// Error is the kernel's refusal ("network is unreachable"), Dev is empty then.
	Error string `json:"error,omitempty"`
}

// Entry is a neighbour entry of the kernel's.
type Entry struct {
	Address netip.Addr `json:"address"`
	MAC     string     `json:"mac,omitempty"`
	State   string     `json:"state"`
}

// Question is one address the wire was asked about.
type Question struct {
	Address netip.Addr    `json:"address"`
	Role    neigh.Role    `json:"role"`
	Verdict neigh.Verdict `json:"verdict"`
	Message string        `json:"message"`
	MACs    []string      `json:"macs"`
}

// NeighbourTable is a host's neighbour table of one family.
type NeighbourTable struct {
	Family  policy.Family `json:"-"`
	Name    string        `json:"family"`
	Entries uint32        `json:"entries"`
	// Limit is gc_thresh3.
	Limit uint32 `json:"limit"`
}

// Chain is one iptables chain.
type Chain struct {
	Family policy.Family `json:"-"`
	// Tool is the command that lists it: iptables-nft, ip6tables-legacy, …
	Tool  string `json:"tool"`
	Table string `json:"table"`
	Name  string `json:"chain"`
	// Policy is ACCEPT or DROP for a chain the kernel enters, "" for others.
	Policy string   `json:"policy,omitempty"`
	Rules  []string `json:"rules"`
}

// Find returns one of a list's settings by its key.
func Find(list []Setting, k sysctl.Key) (Setting, bool) {
	for _, s := range list {
		if s.Key == k {
			return s, true
		}
	}
	return Setting{}, false
}

// Effective returns the effective value of a rail's setting, "" where it was not read.
func (r *Rail) Effective(k sysctl.Key) string {
	s, _ := Find(r.Settings, k)
	return s.Effective
}

// IPv4 says that the rail has an IPv4 address.
func (r *Rail) IPv4() bool {
	for _, a := range r.Addresses {
		if a.Address.Addr().Is4() {
			return true
		}
	}
	return false
}

// FromRA says that a router advertisement gave the rail an address.
func (r *Rail) FromRA() bool {
	for _, a := range r.Addresses {
		if a.FromRA {
			return true
		}
	}
	return false
}

// Rail returns the rail of that name.
func (n *Namespace) Rail(name string) (*Rail, bool) {
	for i := range n.Rails {
		if n.Rails[i].Name == name {
			return &n.Rails[i], true
		}
	}
	return nil, false
}

// Owner returns the name of the interface that holds an address, "" if none does.
func (n *Namespace) Owner(a netip.Addr) string {
	for i := range n.Links {
		if n.Links[i].Has(a) {
			return n.Links[i].Name
		}
	}
	return ""
}
