package gather

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
)

// maxTargets bounds the lookups from one address: a namespace can have any number of
// subnets, and sixteen rails' worth say all there is to say.
const maxTargets = 64

// target is a destination that lookups ask about.
type target struct {
	to      netip.Addr
	purpose facts.Purpose
	prefix  netip.Prefix
}

// lookups asks the kernel by where packets from each rail's addresses leave: as a plain
// source, and bound to the rail.
func (l *look) lookups() error {
	k, err := kernel.Open()
	if err != nil {
		return err
	}
	defer k.Close()
	supernets := l.supernets()
	for i := range l.Rails {
		r := &l.Rails[i]
		for _, a := range r.Addresses {
			if a.State != "usable" || a.Address.Addr().IsLinkLocalUnicast() || !r.Up {
				continue
			}
			for _, t := range l.targets(r, a, supernets) {
				for _, bound := range []bool{false, true} {
					r.Lookups = append(r.Lookups, l.lookup(k, r, a.Address.Addr(), t, bound))
				}
			}
		}
	}
	return nil
}

// lookup is one question.
func (l *look) lookup(k *kernel.Netlink, r *facts.Rail, from netip.Addr, t target, bound bool) facts.Lookup {
	out := facts.Lookup{From: from, To: t.to, Purpose: t.purpose, Prefix: t.prefix, Bound: bound}
	ask, ifindex := k.Lookup, 0
	if bound {
		// The route itself: for a bound socket the kernel takes everything to be on the
		// link where it has no route (net/ipv4/route.c, ip_route_output_key_hash_rcu).
		ask, ifindex = k.Match, r.Index
	}
	hop, err := ask(t.to, from, ifindex)
	switch {
	case err != nil:
		out.Error = err.Error()
	case hop.Kind != unix.RTN_UNICAST:
		out.Error = "no unicast route"
	default:
		out.Table, out.Dev, out.GW = hop.Table, l.nameOf(hop.IfIndex), hop.GW
	}
	return out
}

// targets are the destinations that matter to one address.
func (l *look) targets(r *facts.Rail, a facts.Address, supernets []netip.Prefix) []target {
	var out []target
	add := func(purpose facts.Purpose, p netip.Prefix, avoid ...netip.Prefix) {
		if to, ok := l.stranger(p, avoid); ok && len(out) < maxTargets && !slices.ContainsFunc(out, func(t target) bool { return t.to == to }) {
			out = append(out, target{to, purpose, p})
		}
	}
	family := policy.FamilyOf(a.Address.Addr())
	if !a.OnLink.IsSingleIP() {
		add(facts.ToOwnSubnet, a.OnLink)
	}
	for _, g := range r.Gateways {
		if policy.FamilyOf(g.Address) == family && !g.Address.IsLinkLocalUnicast() && len(out) < maxTargets {
			out = append(out, target{g.Address, facts.ToGateway, netip.Prefix{}})
		}
	}
	siblings := l.subnets(family)
	for _, p := range siblings {
		if !p.Overlaps(a.OnLink) {
			add(facts.ToSibling, p)
		}
	}
	for _, p := range supernets {
		if policy.FamilyOf(p.Addr()) == family && p.Contains(a.Address.Addr()) && p.Bits() < a.OnLink.Bits() {
			add(facts.ToSupernet, p, siblings...)
		}
	}
	for _, p := range l.Peers {
		if policy.FamilyOf(p) == family && len(out) < maxTargets && l.peerOf(p, a, siblings) {
			out = append(out, target{p, facts.ToPeer, netip.Prefix{}})
		}
	}
	out = append(out, target{elsewhere(family), facts.ToAnywhere, netip.Prefix{}})
	return out
}

// peerOf says whether a peer is this address's to reach: it is in its subnet, or in no
// rail's.
func (l *look) peerOf(peer netip.Addr, a facts.Address, subnets []netip.Prefix) bool {
	return a.OnLink.Contains(peer) || !slices.ContainsFunc(subnets, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// subnets are the rails' distinct subnets of a family.
func (l *look) subnets(f policy.Family) []netip.Prefix {
	var out []netip.Prefix
	for i := range l.Rails {
		for _, a := range l.Rails[i].Addresses {
			addr := a.Address.Addr()
			if policy.FamilyOf(addr) == f && !addr.IsLinkLocalUnicast() && !a.OnLink.IsSingleIP() && !slices.Contains(out, a.OnLink) {
				out = append(out, a.OnLink)
			}
		}
	}
	return out
}

// supernets are destinations behind a rail's gateway that hold addresses of at least one
// rail: what somebody meant all rails to reach.
func (l *look) supernets() []netip.Prefix {
	var out []netip.Prefix
	for _, r := range l.Routes {
		_, rail := l.index[r.IfIndex]
		if !rail || !r.GW.IsValid() || r.Dst.Bits() == 0 || slices.Contains(out, r.Dst) || !l.holdsRail(r.Dst) {
			continue
		}
		out = append(out, r.Dst)
	}
	return out
}

func (l *look) holdsRail(p netip.Prefix) bool {
	for i := range l.Rails {
		for _, a := range l.Rails[i].Addresses {
			if p.Contains(a.Address.Addr()) && p.Bits() < a.OnLink.Bits() {
				return true
			}
		}
	}
	return false
}

// stranger picks an address of a prefix that no interface here has, outside the prefixes
// to avoid and no broadcast address.
func (l *look) stranger(p netip.Prefix, avoid []netip.Prefix) (netip.Addr, bool) {
	to := p.Masked().Addr()
	if to.BitLen()-p.Bits() > 1 {
		to = to.Next()
	}
	const tries = 1024
	for range tries {
		if !to.IsValid() || !p.Contains(to) {
			return netip.Addr{}, false
		}
		if i := slices.IndexFunc(avoid, func(a netip.Prefix) bool { return a.Contains(to) && a.Bits() > p.Bits() }); i >= 0 {
			to = lastOf(avoid[i]).Next()
			continue
		}
		if l.Owner(to) == "" && !(to.Is4() && p.Bits() < 31 && to == lastOf(p)) {
			return to, true
		}
		to = to.Next()
	}
	return netip.Addr{}, false
}

// lastOf is a prefix's last address.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := range b {
		host := len(b)*8 - p.Bits() - (len(b)-1-i)*8 // host bits in this byte and to its left
		b[i] |= byte(0xff >> (8 - min(max(host, 0), 8)))
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// elsewhere is a documentation address (RFC 5737, RFC 3849): only a default route leads there.
func elsewhere(f policy.Family) netip.Addr {
	if f == policy.IPv6 {
		return netip.MustParseAddr("2001:db8::1")
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, 1})
}
