// Package firewall reads the iptables chains that a rail's packets meet, and works out
// what the chains do with a packet. Reading goes through the iptables command
// (go-iptables), and only for tables that are there already: see Read.
package firewall

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/policy"
)

// entries are the chains the kernel enters with a packet from or to a local socket, by
// table. Forwarded packets are no business of a rail's.
func entries(table string) []string {
	if table == "raw" {
		return []string{"PREROUTING", "OUTPUT"}
	}
	return []string{"INPUT", "OUTPUT"}
}

// kind is one of the four places where iptables rules of a family can be.
type kind struct {
	family policy.Family
	proto  iptables.Protocol
	tool   string // "iptables-nft", …
	tables []string
}

// Read returns the chains of the tables filter and raw that are there in the calling
// thread's namespace, both families, reachable from the chains the kernel enters. notes
// say what was not looked at.
//
// Looking must not change the namespace. iptables-legacy makes a table, and registers
// its hooks, when it is asked to list it (net/ipv4/netfilter/iptable_filter.c), so it is
// only asked for tables that /proc/net/ip_tables_names has. iptables-nft left no trace
// with 1.8.9; it is asked only where the kernel has an nftables table of that name.
func Read() (chains []facts.Chain, notes []string) {
	present, foreign, err := nftTables()
	if err != nil {
		notes = append(notes, fmt.Sprintf("firewall: nftables cannot be listed (%v), so neither can iptables-nft rules", err))
	}
	if len(foreign) > 0 {
		notes = append(notes, "firewall: nftables tables that iptables does not show are not judged: "+strings.Join(foreign, ", ")+
			" (see nft list ruleset)")
	}
	for _, k := range []kind{
		{policy.IPv4, iptables.ProtocolIPv4, "iptables-nft", present[policy.IPv4]},
		{policy.IPv6, iptables.ProtocolIPv6, "ip6tables-nft", present[policy.IPv6]},
		{policy.IPv4, iptables.ProtocolIPv4, "iptables-legacy", legacyTables("/proc/thread-self/net/ip_tables_names")},
		{policy.IPv6, iptables.ProtocolIPv6, "ip6tables-legacy", legacyTables("/proc/thread-self/net/ip6_tables_names")},
	} {
		if len(k.tables) == 0 {
			continue
		}
		found, err := k.read()
		if err != nil {
			notes = append(notes, fmt.Sprintf("firewall: %s has rules here (%s), which cannot be listed: %v",
				k.tool, strings.Join(k.tables, ", "), err))
			continue
		}
		chains = append(chains, found...)
	}
	return chains, notes
}

// legacyTables reads the names of the tables that are in use already.
func legacyTables(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // no legacy iptables in this kernel
	}
	return slices.DeleteFunc(strings.Fields(string(b)), func(t string) bool { return t != "filter" && t != "raw" })
}

func (k kind) read() ([]facts.Chain, error) {
	path, err := k.command()
	if err != nil {
		return nil, err
	}
	ipt, err := iptables.New(iptables.IPFamily(k.proto), iptables.Path(path), iptables.Timeout(2))
	if err != nil {
		return nil, err
	}
	var out []facts.Chain
	for _, table := range k.tables {
		pending := entries(table)
		for len(pending) > 0 {
			name := pending[0]
			pending = pending[1:]
			if slices.ContainsFunc(out, func(c facts.Chain) bool { return c.Table == table && c.Name == name }) {
				continue
			}
			lines, err := ipt.List(table, name)
			if err != nil {
				return nil, err
			}
			c := facts.Chain{Family: k.family, Tool: k.tool, Table: table, Name: name, Rules: []string{}}
			for _, line := range lines {
				r := parse(line)
				switch {
				case r.policy != "":
					c.Policy = r.policy
				case r.chain != "":
					c.Rules = append(c.Rules, line)
					if r.jumps() {
						pending = append(pending, r.target)
					}
				}
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// command finds the tool, or the plain one where that is of the same make.
func (k kind) command() (string, error) {
	if path, err := exec.LookPath(k.tool); err == nil {
		return path, nil
	}
	plain, mode, _ := strings.Cut(k.tool, "-")
	path, err := exec.LookPath(plain)
	if err != nil {
		return "", fmt.Errorf("neither %s nor %s is installed here", k.tool, plain)
	}
	// The plain name leads to the program of one make: xtables-nft-multi, or xtables-legacy-multi
	// and, before 1.8, xtables-multi.
	program, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if strings.Contains(filepath.Base(program), "nft") != (mode == "nft") {
		return "", fmt.Errorf("%s, which is %s, is not of the kind that made the rules (%s)", path, program, mode)
	}
	return path, nil
}
