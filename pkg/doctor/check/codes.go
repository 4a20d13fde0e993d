package check

import "slices"

// Code names a kind of finding. Codes are words, as people search for them; once
// released one never changes its meaning.
type Code string

// The codes, by family.
const (
	RailDown       Code = "rail-down"
	NoCarrier      Code = "no-carrier"
	MACConflict    Code = "mac-conflict"
	AddressMissing Code = "address-missing"
	AddressTwice   Code = "address-twice"
	DADFailed      Code = "dad-failed"
	GIDMissing     Code = "gid-missing"

	SettingsReset      Code = "settings-reset"
	SettingMissing     Code = "setting-missing"
	AllOverrides       Code = "all-overrides"
	ProxyARP           Code = "proxy-arp"
	RAIgnored          Code = "ra-ignored"
	RADefaultMissing   Code = "ra-default-missing"
	DefaultInherited   Code = "default-inherited"
	RuleWithoutDevice  Code = "rule-without-device"
	ARPDependsOnRoutes Code = "arp-depends-on-routes"

	Orphan            Code = "orphan"
	RuleMissing       Code = "rule-missing"
	RouteMissing      Code = "route-missing"
	ForeignRuleWins   Code = "foreign-rule-wins"
	SourceRuleMissing Code = "source-rule-missing"
	WrongWay          Code = "wrong-way"
	SupernetMissing   Code = "supernet-missing"
	PeerUnreachable   Code = "peer-unreachable"
	DefaultCompetes   Code = "default-competes"
	NextHopLoops      Code = "next-hop-loops"

	NeighbourStale  Code = "neighbour-stale"
	NeighbourShared Code = "neighbour-shared"
	NeighbourFlux   Code = "neighbour-flux"
	GatewaySilent   Code = "gateway-silent"
	PeerSilent      Code = "peer-silent"
	AddressConflict Code = "address-conflict"
	NeighbourFull   Code = "neighbour-table-full"

	FirewallDrops   Code = "firewall-drops"
	FirewallDropsND Code = "firewall-drops-nd"
)

// Info explains a code.
type Info struct {
	Code     Code
	Severity Severity
	// Means is one line.
	Means string
}

// Codes lists all codes, by family.
func Codes() []Info {
	return []Info{
		{RailDown, Error, "the rail is not set up"},
		{NoCarrier, Error, "the rail is up and has no carrier"},
		{MACConflict, Error, "two rails in one subnet have the same MAC, or one has none"},
		{AddressMissing, Error, "the rail has no address, so RDMA has no GID to send from"},
		{AddressTwice, Error, "one address is on two interfaces"},
		{DADFailed, Error, "another station has the rail's IPv6 address"},
		{GIDMissing, Error, "the RDMA device has no RoCE v2 GID for the rail's address"},

		{SettingsReset, Error, "arp_ignore and arp_announce are as in conf/default: never set here, or reset by a move between namespaces"},
		{SettingMissing, Error, "one of arp_ignore and arp_announce has not the value that keeps ARP on its rail"},
		{AllOverrides, Error, "conf/all overrides the rail's own value"},
		{ProxyARP, Error, "the rail answers ARP for addresses that are not its own"},
		{RAIgnored, Error, "router advertisements are ignored: the rail forwards and accept_ra is not 2, or it is 0"},
		{RADefaultMissing, Error, "the rail's address is from a router advertisement, and its default route is gone"},
		{DefaultInherited, Warning, "conf/default holds a value that breaks the next rail that arrives"},
		{RuleWithoutDevice, Error, "arp_filter or rp_filter makes ARP answers follow a rule that matches every interface"},
		{ARPDependsOnRoutes, Error, "arp_filter or rp_filter makes ARP answers follow a route by another interface"},

		{Orphan, Warning, "rules or routes of railtune's whose interface or address is gone"},
		{RuleMissing, Error, "some of railtune's rules for the rail are gone"},
		{RouteMissing, Error, "the rail's private table has lost its routes"},
		{ForeignRuleWins, Error, "another tool's rule takes the rail's packets before railtune's"},
		{SourceRuleMissing, Warning, "two rails share a subnet and no rule tells their packets apart"},
		{WrongWay, Error, "packets from the rail's address leave by another interface, or not at all"},
		{SupernetMissing, Error, "the rail has no way into the rails' supernet, which another rail has"},
		{PeerUnreachable, Error, "no route leads from the rail to a peer"},
		{DefaultCompetes, Error, "a default route on a rail wins over the one of the cluster's interface"},
		{NextHopLoops, Error, "a next hop leads back into this namespace"},

		{NeighbourStale, Error, "a neighbour entry has a MAC that is not the neighbour's"},
		{NeighbourShared, Warning, "two peers have one MAC"},
		{NeighbourFlux, Error, "several MACs answer for one address"},
		{GatewaySilent, Warning, "the rail's gateway does not answer"},
		{PeerSilent, Warning, "a peer does not answer"},
		{AddressConflict, Error, "another station answers for the rail's address"},
		{NeighbourFull, Warning, "the host's neighbour table has no room for so many peers"},

		{FirewallDrops, Error, "a firewall rule drops what the rail sends or receives"},
		{FirewallDropsND, Error, "a firewall rule drops neighbour discovery or router advertisements"},
	}
}

func (c Code) severity() Severity {
	for _, i := range Codes() {
		if i.Code == c {
			return i.Severity
		}
	}
	return Error
}

// Known says whether there is such a code.
func Known(code string) bool {
	return slices.ContainsFunc(Codes(), func(i Info) bool { return string(i.Code) == code })
}

// Applies says whether "railtune apply" mends the finding.
func (c Code) Applies() bool {
	return slices.Contains([]Code{
		SettingsReset, SettingMissing, RAIgnored, RuleWithoutDevice, ARPDependsOnRoutes, SourceRuleMissing, WrongWay,
	}, c)
}
