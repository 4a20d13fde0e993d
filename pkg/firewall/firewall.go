// Package firewall lets a rail's traffic in through iptables: one chain per rail that
// accepts what the rail's prefixes and supernets send, jumped to before anything else
// in INPUT.
//
//	iptables -t filter -N RAILTUNE-net1
//	iptables -t filter -A RAILTUNE-net1 -s 10.61.0.0/16 -j ACCEPT
//	iptables -t filter -I INPUT 1 -i net1 -j RAILTUNE-net1
//
// Only INPUT: what is meant to keep rails apart, such as multi-networkpolicy, drops
// what comes in, and a pod's own packets are its own to forbid. In IPv6 the chain also
// accepts the neighbour and router discovery without which no address works (RFC 4861:
// from link-local addresses, and from :: during duplicate address detection).
//
// Nothing is executed where nothing was asked for. Whether a chain is there is found
// out from the kernel itself; see package present.
package firewall

import (
	"net/netip"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/firewall/present"
	"github.com/railtune/railtune/pkg/policy"
)

// IPTables is the iptables of the host, working on the namespace of the calling thread.
type IPTables struct{}

const (
	table = present.Table
	hook  = "INPUT"
)

// rules are the chain's rules without what marks them.
func rules(f policy.Family, from []netip.Prefix) [][]string {
	var out [][]string
	for _, p := range from {
		out = append(out, []string{"-s", p.Masked().String()})
	}
	if f == policy.IPv6 {
		for _, discovery := range []string{"fe80::/10", "::/128"} {
			out = append(out, []string{"-s", discovery, "-p", "ipv6-icmp"})
		}
	}
	return out
}

func jump(ifname string) []string { return []string{"-i", ifname} }

// Lines prints the chain as the commands that make it.
func (IPTables) Lines(ifname string, f policy.Family, from []netip.Prefix) []string {
	out := []string{line(f, "-N", present.Chain(ifname), nil, "")}
	for _, r := range rules(f, from) {
		out = append(out, line(f, "-A", present.Chain(ifname), r, "ACCEPT"))
	}
	return append(out, line(f, "-I", hook+" 1", jump(ifname), present.Chain(ifname)))
}

func line(f policy.Family, how, chain string, match []string, target string) string {
	words := append([]string{present.Command(f), "-t", table, how, chain}, match...)
	if target != "" {
		words = append(words, "-j", target)
	}
	return strings.Join(words, " ")
}

// Usable says why no chain could be made for an interface, without executing anything:
// its name means something else to iptables (code Config), or there is no iptables
// (code Kernel).
func (IPTables) Usable(ifname string, f policy.Family) error {
	// "-i net+" is any interface whose name starts with net; old versions take "! net1"
	// for any but net1 (iptables(8), --in-interface).
	if strings.HasSuffix(ifname, "+") || strings.HasPrefix(ifname, "!") {
		return cnierr.New(cnierr.Config, "firewall.acceptRails cannot be kept to %s: iptables takes that name for a pattern; "+
			"give the interface another name", ifname)
	}
	_, err := lookUp(present.Command(f))
	return err
}
