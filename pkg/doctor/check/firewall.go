package check

import (
	"net/netip"
	"strings"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/doctor/firewall"
)

// The destination ports that stand for a rail's traffic. RoCE that a NIC does itself is
// seen by no firewall; what Soft-RoCE sends is, and so are the TCP connections by which
// ib_write_bw (its default port) and NCCL find each other.
const (
	portRoCE = 4791
	portTCP  = 18515
)

// sample is a packet with the words for it.
type sample struct {
	firewall.Packet
	what string
	nd   bool
}

// firewall asks the chains what they do with a rail's packets.
func (j *judge) firewall() {
	if len(j.Chains) == 0 {
		return
	}
	set := firewall.Compile(j.Chains)
	for i := range j.Rails {
		r := &j.Rails[i]
		type drop struct {
			firewall.Drop
			nd bool
		}
		found := map[drop]*Finding{}
		for _, s := range j.samples(r) {
			d, dropped := set.Dropped(s.Packet)
			if !dropped {
				continue
			}
			if nd := found[drop{d, true}]; !s.nd && nd != nil {
				// Without neighbour discovery nothing else matters: one finding, mended as a whole.
				nd.saw("%s", s.what)
				nd.Remedy = nil
				j.accept(nd, r, s, d, "")
				continue
			}
			key := drop{d, s.nd}
			if found[key] == nil {
				found[key] = j.dropped(r, s, d)
			}
			found[key].saw("%s", s.what)
		}
	}
}

func (j *judge) dropped(r *facts.Rail, s sample, d firewall.Drop) *Finding {
	code, what := FirewallDrops, "packets"
	if s.nd {
		code, what = FirewallDropsND, "neighbour discovery or router advertisements"
	}
	way := "arriving on"
	if s.Out {
		way = "leaving by"
	}
	f := j.find(code, r.Name, "%s chain %s drops %s %s %s", d.Table, d.Chain, what, way, r.Name).saw("%s", d)
	protocol := ""
	if s.nd {
		protocol = " -p ipv6-icmp"
	}
	j.accept(f, r, s, d, protocol)
	return f
}

// accept lets the rail's packets in, or out, before whatever drops them.
func (j *judge) accept(f *Finding, r *facts.Rail, s sample, d firewall.Drop, protocol string) {
	if strings.HasPrefix(d.Chain, "MULTI-") {
		f.advise("multi-networkpolicy wrote this and will again: change the MultiNetworkPolicy; until then")
	}
	chain, option := "INPUT", "-i"
	switch {
	case s.Out:
		chain, option = "OUTPUT", "-o"
	case d.Table == "raw":
		chain = "PREROUTING"
	}
	j.run(f, "%s -t %s -I %s %s %s%s -j ACCEPT", d.Tool, d.Table, chain, option, Quoted(r.Name), protocol)
}

// samples are the packets that a rail has to be able to send and receive.
func (j *judge) samples(r *facts.Rail) []sample {
	var out []sample
	add := func(own, other netip.Addr, p firewall.Packet, what string, nd bool) {
		p.Rail = r.Name
		p.Src, p.Dst = other, own
		if p.Out {
			p.Src, p.Dst = own, other
		}
		out = append(out, sample{p, what, nd})
	}
	for _, a := range r.Addresses {
		own := a.Address.Addr()
		if own.Is6() && !own.IsLinkLocalUnicast() {
			for _, out := range []bool{false, true} {
				other := j.stranger(r, a)
				add(own, other, firewall.Packet{Out: out, Proto: "ipv6-icmp", Type: 135, State: "UNTRACKED"}, wayOf(out)+" neighbour solicitation", true)
				add(own, other, firewall.Packet{Out: out, Proto: "ipv6-icmp", Type: 136, State: "UNTRACKED"}, wayOf(out)+" neighbour advertisement", true)
			}
		}
		if own.Is6() && own.IsLinkLocalUnicast() && j.expectsRA(r) {
			router, all := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::1")
			add(all, router, firewall.Packet{Proto: "ipv6-icmp", Type: 134, State: "UNTRACKED"}, "arriving router advertisement", true)
			add(own, netip.MustParseAddr("ff02::2"), firewall.Packet{Out: true, Proto: "ipv6-icmp", Type: 133, State: "UNTRACKED"}, "leaving router solicitation", true)
		}
	}
	for _, a := range r.Addresses {
		own := a.Address.Addr()
		if own.IsLinkLocalUnicast() {
			continue
		}
		for _, other := range j.partners(r, a) {
			for _, out := range []bool{false, true} {
				for _, p := range []firewall.Packet{
					{Out: out, Proto: "udp", Port: portRoCE, State: "NEW"},
					{Out: out, Proto: "tcp", Port: portTCP, State: "NEW"},
				} {
					text := map[string]string{"udp": "UDP port 4791 (RoCE v2 in software)", "tcp": "TCP connection (port 18515, ib_write_bw's)"}[p.Proto]
					add(own, other, p, wayOf(out)+" "+text+", the other end being "+other.String(), false)
				}
			}
		}
	}
	return out
}

func wayOf(out bool) string {
	if out {
		return "leaving"
	}
	return "arriving"
}

// partners are the declared peers in the address's subnet, or a stranger in it.
func (j *judge) partners(r *facts.Rail, a facts.Address) []netip.Addr {
	var out []netip.Addr
	for _, p := range j.Peers {
		if a.OnLink.Contains(p) && len(out) < 16 {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		out = append(out, j.stranger(r, a))
	}
	return out
}

// stranger is an address of the subnet that a lookup went to, or the address's successor.
func (j *judge) stranger(r *facts.Rail, a facts.Address) netip.Addr {
	for _, l := range r.Lookups {
		if l.From == a.Address.Addr() && l.Purpose == facts.ToOwnSubnet {
			return l.To
		}
	}
	return a.Address.Addr().Next()
}
