package firewall

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/policy"
)

// chains makes a filter table of iptables -S lines.
func chains(lines string) []facts.Chain {
	var out []facts.Chain
	at := func(name string) *facts.Chain {
		i := slices.IndexFunc(out, func(c facts.Chain) bool { return c.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, facts.Chain{Family: policy.IPv4, Tool: "iptables", Table: "filter", Name: name})
		}
		return &out[i]
	}
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
		case words[0] == "-P":
			at(words[1]).Policy = words[2]
		case words[0] == "-A":
			at(words[1]).Rules = append(at(words[1]).Rules, line)
		}
	}
	return out
}

// TestDropped: what surely drops a new UDP 4791 packet from 10.61.0.9 that arrives on net1,
// and what only may.
func TestDropped(t *testing.T) {
	for _, c := range []struct{ name, rules, want string }{
		{"nothing", "-P INPUT ACCEPT", ""},
		{"policy", "-P INPUT DROP", "-P INPUT DROP"},
		{"policy of another direction", "-P INPUT ACCEPT\n-P OUTPUT DROP", ""},
		{"accepted before the policy", "-P INPUT DROP\n-A INPUT -i net1 -j ACCEPT", ""},
		{"accepted on another rail", "-P INPUT DROP\n-A INPUT -i net2 -j ACCEPT", "-P INPUT DROP"},
		{"pattern of interfaces", "-A INPUT -i net+ -j DROP", "-A INPUT -i net+ -j DROP"},
		{"not this interface", "-A INPUT ! -i net1 -j DROP", ""},
		{"all but another", "-A INPUT ! -i eth0 -j DROP", "-A INPUT ! -i eth0 -j DROP"},
		{"source", "-A INPUT -s 10.61.0.0/16 -j REJECT --reject-with icmp-port-unreachable", "-A INPUT -s 10.61.0.0/16 -j REJECT --reject-with icmp-port-unreachable"},
		{"another source", "-A INPUT -s 10.62.0.0/16 -j DROP", ""},
		{"another destination", "-A INPUT -d 10.61.0.2/32 -j DROP", ""},
		{"another protocol", "-A INPUT -p tcp -j DROP", ""},
		{"port", "-A INPUT -p udp -m udp --dport 4791 -j DROP", "-A INPUT -p udp -m udp --dport 4791 -j DROP"},
		{"port range", "-A INPUT -p udp -m udp --dport 4000:5000 -j DROP", "-A INPUT -p udp -m udp --dport 4000:5000 -j DROP"},
		{"several ports", "-A INPUT -p udp -m multiport --dports 53,4791 -j DROP", "-A INPUT -p udp -m multiport --dports 53,4791 -j DROP"},
		{"another port", "-A INPUT -p udp -m udp ! --dport 4791 -j DROP", ""},
		{"established only", "-P INPUT DROP\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "-P INPUT DROP"},
		{"new too", "-P INPUT DROP\n-A INPUT -m state --state NEW,ESTABLISHED -j ACCEPT", ""},
		{"comment with a target in it", `-A INPUT -m comment --comment "not -j DROP \"really\"" -j ACCEPT` + "\n-A INPUT -j DROP", ""},
		{"set of addresses: not known", "-A INPUT -m set --match-set bad src -j DROP", ""},
		{"set of good addresses: may be in it", "-P INPUT DROP\n-A INPUT -m set --match-set good src -j ACCEPT", ""},
		{"unknown option", "-A INPUT --frobnicate 3 -j DROP", ""},
		{"chain", "-A INPUT -i net1 -j RAILS\n-A RAILS -j DROP", "-A RAILS -j DROP"},
		{"chain returns", "-A INPUT -j A\n-A INPUT -j DROP\n-A A -j RETURN\n-A A -j ACCEPT", "-A INPUT -j DROP"},
		{"chain accepts", "-A INPUT -j A\n-A INPUT -j DROP\n-A A -j ACCEPT", ""},
		{"return in the first chain: the policy", "-P INPUT DROP\n-A INPUT -j RETURN\n-A INPUT -j ACCEPT", "-P INPUT DROP"},
		{"goto ends the chain", "-P INPUT ACCEPT\n-A INPUT -g A\n-A INPUT -j DROP\n-A A -p tcp -j ACCEPT", ""},
		{"jump that may not be taken", "-A INPUT -m set --match-set x src -j A\n-A A -j DROP", ""},
		{"loop", "-A INPUT -j A\n-A A -j A", ""},
		{"mark", "-A INPUT -j MARK --set-xmark 0x10000/0x10000\n-A INPUT -m mark --mark 0x10000/0x30000 -j DROP", "-A INPUT -m mark --mark 0x10000/0x30000 -j DROP"},
		{"mark not complete", "-A INPUT -j MARK --set-xmark 0x10000/0x10000\n-A INPUT -m mark --mark 0x30000/0x30000 -j DROP", ""},
		{"log", "-A INPUT -j LOG --log-prefix \"x -j DROP \"\n", ""},
		{"nonsense", "-A INPUT -j\n-A INPUT !\n-A INPUT -i", ""},
	} {
		p := Packet{Rail: "net1", Src: netip.MustParseAddr("10.61.0.9"), Dst: netip.MustParseAddr("10.61.0.1"), Proto: "udp", Port: 4791, State: "NEW"}
		drop, dropped := Compile(chains(c.rules)).Dropped(p)
		if dropped != (c.want != "") || drop.Rule != c.want {
			t.Errorf("%s: %v %q, want %q", c.name, dropped, drop.Rule, c.want)
		}
	}
}

// TestPolicyOfMultiNetworkPolicy walks the marks and chains of multi-networkpolicy-iptables:
// the address let in gets in, others meet its last rule.
func TestPolicyOfMultiNetworkPolicy(t *testing.T) {
	set := Compile(chains(`
-P INPUT ACCEPT
-A INPUT -i net1 -j MULTI-INGRESS
-A MULTI-INGRESS -i net1 -m comment --comment "policy:rails net-attach-def:default/rail-1" -j MULTI-0-INGRESS
-A MULTI-0-INGRESS -j MARK --set-xmark 0x0/0x30000
-A MULTI-0-INGRESS -j MULTI-0-INGRESS-0-PORTS
-A MULTI-0-INGRESS -j MULTI-0-INGRESS-0-FROM
-A MULTI-0-INGRESS -m mark --mark 0x30000/0x30000 -j RETURN
-A MULTI-0-INGRESS -j DROP
-A MULTI-0-INGRESS-0-PORTS -m comment --comment "no ingress ports, skipped" -j MARK --set-xmark 0x10000/0x10000
-A MULTI-0-INGRESS-0-FROM -s 10.61.0.9/32 -i net1 -j MARK --set-xmark 0x20000/0x20000
`))
	p := Packet{Rail: "net1", Dst: netip.MustParseAddr("10.61.0.1"), Proto: "udp", Port: 4791, State: "NEW"}
	for from, want := range map[string]string{"10.61.0.9": "", "10.61.0.10": "MULTI-0-INGRESS"} {
		p.Src = netip.MustParseAddr(from)
		if drop, _ := set.Dropped(p); drop.Chain != want {
			t.Errorf("from %s: dropped by %q, want %q", from, drop.Chain, want)
		}
	}
}

// FuzzParse: no line of a firewall's crashes the reader.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"-P INPUT DROP", `-A INPUT ! -i "a b" -m comment --comment "x\"y" -j DROP`, "-A INPUT --dport 1:", "-A A --mark 0x/", "-A I --tcp-flags A", "!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := Packet{Rail: "net1", Src: netip.MustParseAddr("10.61.0.9"), Dst: netip.MustParseAddr("10.61.0.1"), Proto: "udp", Port: 4791, State: "NEW"}
		Compile([]facts.Chain{{Family: policy.IPv4, Table: "filter", Name: "INPUT", Rules: []string{line}}}).Dropped(p)
	})
}
