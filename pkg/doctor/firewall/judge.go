package firewall

import (
	"fmt"
	"net/netip"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/policy"
)

// Packet is what the chains are asked about: the first one of a flow.
type Packet struct {
	Rail     string
	Out      bool // leaves by the rail; else it arrives there
	Src, Dst netip.Addr
	// Proto is as iptables -S names it: tcp, udp, ipv6-icmp.
	Proto string
	// Port is the destination port, Type the ICMPv6 type.
	Port, Type int
	// State is the connection's state for conntrack: NEW, or UNTRACKED for neighbour
	// discovery (net/netfilter/nf_conntrack_proto_icmpv6.c).
	State string

	mark uint32
}

// sourcePort is what a client's port is taken to be.
const sourcePort = 49152

// Drop says what drops a packet.
type Drop struct {
	Tool, Table, Chain string
	// Rule is the line of iptables -S; "-P CHAIN DROP" for a chain's policy.
	Rule string
}

// String is "iptables-nft filter INPUT: -P INPUT DROP".
func (d Drop) String() string {
	return fmt.Sprintf("%s %s %s: %s", d.Tool, d.Table, d.Chain, d.Rule)
}

// Set is chains with their rules read once.
type Set struct{ chains []chain }

type chain struct {
	facts.Chain
	rules []rule
}

// Compile reads the rules of chains.
func Compile(chains []facts.Chain) Set {
	var s Set
	for _, c := range chains {
		compiled := chain{Chain: c}
		for _, line := range c.Rules {
			compiled.rules = append(compiled.rules, parse(line))
		}
		s.chains = append(s.chains, compiled)
	}
	return s
}

// Dropped returns what surely drops the packet. Where a condition is not understood, the
// packet is taken to get through: a wrong alarm would be worse.
func (s Set) Dropped(p Packet) (Drop, bool) {
	family := policy.FamilyOf(p.Src)
	for _, tool := range s.tools(family) {
		for _, at := range []struct{ table, in, out string }{{"raw", "PREROUTING", "OUTPUT"}, {"filter", "INPUT", "OUTPUT"}} {
			name := at.in
			if p.Out {
				name = at.out
			}
			w := walk{chains: s.chains, family: family, tool: tool, table: at.table}
			if end, drop := w.chain(name, &p, 0); end == dropped {
				return drop, true
			}
		}
	}
	return Drop{}, false
}

func (s Set) tools(f policy.Family) []string {
	var out []string
	for _, c := range s.chains {
		if c.Family == f && (len(out) == 0 || out[len(out)-1] != c.Tool) {
			out = append(out, c.Tool)
		}
	}
	return out
}

type end int

const (
	returned end = iota
	accepted
	dropped
)

// walk is one way through a table.
type walk struct {
	chains      []chain
	family      policy.Family
	tool, table string
}

// deepest is how many jumps are followed: the kernel refuses loops, not depth.
const deepest = 64

func (w walk) chain(name string, p *Packet, depth int) (end, Drop) {
	for _, c := range w.chains {
		if c.Family != w.family || c.Tool != w.tool || c.Table != w.table || c.Name != name || depth > deepest {
			continue
		}
		for i, r := range c.rules {
			e, drop := w.rule(r, Drop{w.tool, w.table, name, c.Rules[i]}, p, depth)
			if e != returned {
				return e, drop
			}
			if drop.Chain == leave {
				break // of a chain the kernel enters, the policy is next
			}
		}
		if c.Policy == "DROP" {
			return dropped, Drop{w.tool, w.table, name, "-P " + name + " DROP"}
		}
	}
	return returned, Drop{}
}

// leave, as the chain of an empty Drop, says that a rule ended its chain.
const leave = "\x00return"

// rule applies one rule; here is what to say where that drops the packet.
func (w walk) rule(r rule, here Drop, p *Packet, depth int) (end, Drop) {
	fits := r.fits(*p)
	if fits == no {
		return returned, Drop{}
	}
	switch {
	case r.target == "ACCEPT":
		return accepted, Drop{}
	case r.target == "DROP" || r.target == "REJECT":
		if fits == yes {
			return dropped, here
		}
	case r.target == "RETURN":
		return returned, Drop{Chain: leave}
	case r.setMark != nil:
		p.mark = r.setMark(p.mark)
	case r.jumps():
		e, drop := w.chain(r.target, p, depth+1)
		if e == accepted || e == dropped && fits == yes {
			return e, drop
		}
		if r.gotoOnly && fits == yes {
			return returned, Drop{Chain: leave}
		}
	}
	return returned, Drop{}
}

func (r rule) fits(p Packet) verdict {
	all := yes
	for _, m := range r.matches {
		switch m(p) {
		case no:
			return no
		case doubt:
			all = doubt
		}
	}
	return all
}
