// Package explain leads from the errors that people search for to what causes them and
// the findings of doctor that show it.
package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/railtune/railtune/pkg/doctor/check"
)

// Symptom is an error as people see it.
type Symptom struct {
	// Name is the error, as it is printed.
	Name string
	// Words are what a text about it may contain, in lower case; each is a group of
	// words that must all be there, separated by blanks.
	Words []string
	// Says is what the error means, Causes what leads to it.
	Says   string
	Causes []Cause
}

// Cause is one reason for a symptom, with the codes that show it.
type Cause struct {
	Why   string
	Codes []check.Code
}

// Symptoms lists what is known, the more special first.
func Symptoms() []Symptom {
	return []Symptom{
		{
			Name:  "ibv_modify_qp failed with 61 No data available",
			Words: []string{"ibv_modify_qp 61", "no data available", "enodata", "modify_qp failed"},
			Says: "The queue pair cannot be connected: the GID index it was given is empty (ENODATA). RoCE has a GID " +
				"for each address of the rail; no address, no GID.",
			Causes: []Cause{
				{"forwarding was switched on before the router advertisement came: the rail never got an address, or lost its route", []check.Code{check.RAIgnored, check.RADefaultMissing}},
				{"the interface plugin gave no address, or a later one removed it", []check.Code{check.AddressMissing, check.DADFailed}},
				{"the address is there and the RDMA device has no RoCE v2 GID for it, or the application uses another index (NCCL_IB_GID_INDEX): doctor shows the indices", []check.Code{check.GIDMissing}},
			},
		},
		{
			Name:  "ibv_modify_qp failed with 110 Connection timed out",
			Words: []string{"ibv_modify_qp 110", "modify_qp connection timed out", "etimedout"},
			Says:  "The kernel could not resolve the peer's MAC for the queue pair: nobody answered ARP or neighbour solicitation on this rail.",
			Causes: []Cause{
				{"the peer's address, or its gateway, does not answer on this rail", []check.Code{check.PeerSilent, check.GatewaySilent}},
				{"no route leads from this rail to the peer", []check.Code{check.SupernetMissing, check.PeerUnreachable, check.WrongWay}},
				{"ARP answers follow a route by another rail, so that only one rail answers", []check.Code{check.RuleWithoutDevice, check.ARPDependsOnRoutes, check.AllOverrides}},
				{"a firewall drops neighbour discovery", []check.Code{check.FirewallDropsND}},
			},
		},
		{
			Name:  "IBV_WC_RETRY_EXC_ERR (transport retry counter exceeded, status 12)",
			Words: []string{"retry_exc", "retry exc", "transport retry", "status 12", "vendor err 129", "local_ack_timeout"},
			Says: "Packets are sent and never acknowledged. On RoCE that is mostly a wrong MAC: the peer's NIC drops what " +
				"arrives on a rail that does not own the address. The sender counts local_ack_timeout_err, the receiver nothing.",
			Causes: []Cause{
				{"rails answer ARP for each other (flux), here or at the peer: run doctor on both", []check.Code{check.SettingsReset, check.SettingMissing, check.AllOverrides, check.ProxyARP, check.NeighbourFlux}},
				{"a wrong MAC was learned before and is still believed", []check.Code{check.NeighbourStale, check.NeighbourShared}},
				{"two stations have one MAC or one address", []check.Code{check.MACConflict, check.AddressConflict, check.AddressTwice, check.DADFailed}},
				{"packets leave by another rail than the one whose address they have", []check.Code{check.WrongWay, check.ForeignRuleWins, check.RuleMissing, check.RouteMissing, check.NextHopLoops}},
				{"the rail is down", []check.Code{check.RailDown, check.NoCarrier}},
			},
		},
		{
			Name:  "IBV_WC_REM_INV_REQ_ERR (remote invalid request, status 9)",
			Words: []string{"rem_inv_req", "remote invalid request", "status 9", "vendor err 138"},
			Says: "The request reached a queue pair that is not the one meant: packets for one rail arrive at another rail of " +
				"the same host, whose queue pair has that number too.",
			Causes: []Cause{
				{"rails of the peer answer ARP for each other: run doctor at the peer", []check.Code{check.SettingsReset, check.SettingMissing, check.AllOverrides, check.ProxyARP}},
				{"this host believes a wrong MAC for the peer", []check.Code{check.NeighbourStale, check.NeighbourShared, check.NeighbourFlux}},
			},
		},
		{
			Name:  "ib_write_bw hangs, or fails on some rails only",
			Words: []string{"ib_write_bw", "ib_send_bw", "ib_read_bw", "perftest", "hangs on some", "6 of 16", "some rails"},
			Says: "Which rails fail changes from run to run: each ARP answer is a race that the wrong rail can win. A rail that " +
				"always fails is another matter: its route, its link, its address.",
			Causes: []Cause{
				{"flux: the failing set changes", []check.Code{check.SettingsReset, check.SettingMissing, check.AllOverrides, check.NeighbourFlux, check.NeighbourStale}},
				{"one rail answers and the others never do: arp_filter or rp_filter with the wrong rules", []check.Code{check.RuleWithoutDevice, check.ARPDependsOnRoutes}},
				{"the same rail always: link, address, route", []check.Code{check.NoCarrier, check.AddressMissing, check.GIDMissing, check.RouteMissing, check.WrongWay}},
				{"the TCP connection that it starts with is dropped, or leaves by another rail", []check.Code{check.FirewallDrops, check.SourceRuleMissing}},
				{"more rails and peers than the host's neighbour table has room for", []check.Code{check.NeighbourFull}},
			},
		},
		{
			Name:  "No route to host (EHOSTUNREACH), between rails of different subnets",
			Words: []string{"no route to host", "ehostunreach", "cross-rail", "cross rail", "errno 113"},
			Says: "Either no route leads from the rail to the other rail's subnet, or the next hop does not answer. Where each rail " +
				"has a subnet of its own, the rails' supernet has to go through each rail's gateway; IPAM plugins do not add it.",
			Causes: []Cause{
				{"the supernet route is missing on this rail", []check.Code{check.SupernetMissing, check.PeerUnreachable}},
				{"the gateway does not answer: the switch lacks the VLAN, or the port is another", []check.Code{check.GatewaySilent}},
				{"railtune's guard rule stops packets because the private table is empty, after a link flap", []check.Code{check.RouteMissing, check.RuleMissing}},
				{"the next hop leads back here", []check.Code{check.NextHopLoops}},
				{"a rule rejects it", []check.Code{check.FirewallDrops, check.ForeignRuleWins}},
			},
		},
		{
			Name:  "Network is unreachable (ENETUNREACH)",
			Words: []string{"network is unreachable", "enetunreach", "errno 101"},
			Says:  "No table that the rules lead to has a route. On rails with router advertisements: the default route is gone.",
			Causes: []Cause{
				{"the rail ignores router advertisements, or its default route was purged", []check.Code{check.RAIgnored, check.RADefaultMissing}},
				{"the route is missing", []check.Code{check.SupernetMissing, check.PeerUnreachable, check.RouteMissing}},
			},
		},
		{
			Name:  "Everything arrives on the first NIC",
			Words: []string{"first nic", "same mac", "one mac", "only one rail", "traffic on one"},
			Says:  "All rails are in one subnet, and only rules tell their packets apart; ARP settings alone do half of it.",
			Causes: []Cause{
				{"no source rules", []check.Code{check.SourceRuleMissing, check.RuleMissing}},
				{"rules of others come first", []check.Code{check.RuleWithoutDevice, check.ForeignRuleWins}},
				{"rails answer for each other", []check.Code{check.SettingsReset, check.SettingMissing, check.AllOverrides}},
			},
		},
		{
			Name:  "The pod lost its connection to the cluster, or packets loop (TTL exceeded)",
			Words: []string{"ttl", "time to live", "loop", "cluster dns", "lost connection", "default route"},
			Says:  "A second default route, or a next hop that leads back to the pod.",
			Causes: []Cause{
				{"a default route on a rail wins over eth0's", []check.Code{check.DefaultCompetes}},
				{"a next hop is this pod's own address or MAC", []check.Code{check.NextHopLoops}},
			},
		},
		{
			Name:  "neighbour: arp_cache: neighbor table overflow! (kernel log)",
			Words: []string{"table overflow", "neighbor table", "neighbour table", "no buffer space", "enobufs", "gc_thresh"},
			Says:  "All namespaces of a host share one neighbour table; each rail needs an entry for each peer.",
			Causes: []Cause{
				{"gc_thresh3 is too low for so many rails and peers", []check.Code{check.NeighbourFull}},
			},
		},
		{
			Name:  "The next pod on this node fails although nothing changed",
			Words: []string{"stale rules", "leftover", "left over", "orphan", "next pod", "file exists", "eexist"},
			Says:  "Something of an earlier attachment is still there, or the namespace hands bad values on.",
			Causes: []Cause{
				{"rules of an interface that is gone", []check.Code{check.Orphan}},
				{"conf/default breaks what arrives next", []check.Code{check.DefaultInherited}},
			},
		},
	}
}

// Find returns the symptoms that a text is about: one of its groups of words is in it,
// or the text is a code of doctor's, or a part of a symptom's name.
func Find(text string) []Symptom {
	text = strings.ToLower(strings.TrimSpace(text))
	var out []Symptom
	for _, s := range Symptoms() {
		if text != "" && s.matches(text) {
			out = append(out, s)
		}
	}
	return out
}

func (s Symptom) matches(text string) bool {
	if len(text) > 3 && strings.Contains(strings.ToLower(s.Name), text) {
		return true
	}
	for _, c := range s.Causes {
		for _, code := range c.Codes {
			if text == string(code) {
				return true
			}
		}
	}
	for _, group := range s.Words {
		if strings.Contains(text, group) || len(strings.Fields(group)) > 1 && all(text, strings.Fields(group)) {
			return true
		}
	}
	return false
}

func all(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// Write prints what is known about a text, and says whether that is anything. line
// writes one paragraph with a prefix.
func Write(w io.Writer, text string, line func(w io.Writer, prefix, text string)) bool {
	found := Find(text)
	if len(found) == 0 {
		if i, ok := codeInfo(text); ok {
			line(w, "", fmt.Sprintf("%s (%s): %s", i.Code, i.Severity, i.Means))
			return true
		}
		line(w, "", "nothing is known about that text; known are:")
		for _, s := range Symptoms() {
			line(w, "- ", s.Name)
		}
		return false
	}
	for i, s := range found {
		if i > 0 {
			fmt.Fprintln(w)
		}
		line(w, "", s.Name)
		line(w, "  ", s.Says)
		for _, c := range s.Causes {
			line(w, "  - ", c.Why)
			var codes []string
			for _, code := range c.Codes {
				codes = append(codes, string(code))
			}
			line(w, "    finding: ", strings.Join(codes, ", "))
		}
	}
	fmt.Fprintln(w)
	line(w, "", "Run on both ends: railtune doctor --netns PATH --probe --peer ADDRESS-OF-THE-OTHER-END")
	return true
}

func codeInfo(text string) (check.Info, bool) {
	for _, i := range check.Codes() {
		if strings.EqualFold(strings.TrimSpace(text), string(i.Code)) {
			return i, true
		}
	}
	return check.Info{}, false
}
