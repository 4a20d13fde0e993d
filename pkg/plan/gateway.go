package plan

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/policy"
)

// gatewayFor finds an address's next hop, from what was said about it outright to
// what follows from its prefix. The zero Addr means that nothing says one; that is
// never replaced by a guess such as "the first address of the prefix".
func (b *builder) gatewayFor(a *address) (netip.Addr, error) {
	for _, find := range []func(*address) (netip.Addr, string){
		b.ipamGateway, b.neighbouringIPAMGateway, b.routeGateway, otherEnd, b.onlyExplicitGateway,
	} {
		gw, from := find(a)
		if gw.IsValid() {
			return gw, b.checkGateway(gw, a, from)
		}
	}
	return netip.Addr{}, nil
}

// ipamGateway is the gateway IPAM gave with the address.
func (b *builder) ipamGateway(a *address) (netip.Addr, string) {
	gw := a.ip.Gateway
	if !gw.IsValid() {
		return netip.Addr{}, ""
	}
	if policy.FamilyOf(gw) != a.family() {
		// whereabouts puts the IPv4 gateway on the IPv6 address in dual stack.
		b.plan.warn("prevResult's gateway %s for %s is of the other family: ignored", gw, a.addr())
		return netip.Addr{}, ""
	}
	return gw, "prevResult's gateway"
}

// neighbouringIPAMGateway is a gateway IPAM gave with another address of the same prefix.
func (b *builder) neighbouringIPAMGateway(a *address) (netip.Addr, string) {
	for _, o := range b.addrs {
		if o.ip.Gateway.IsValid() && a.connected.Contains(o.ip.Gateway) {
			return o.ip.Gateway, "prevResult's gateway"
		}
	}
	return netip.Addr{}, ""
}

// routeGateway is the next hop of a prevResult route inside the address's prefix.
// Routes for a supernet with a gateway of its own do not count: after ADD they are
// railtune's, and CHECK has to come to the same plan as ADD.
func (b *builder) routeGateway(a *address) (netip.Addr, string) {
	for _, r := range b.Routes {
		if r.GW.IsValid() && !r.Elsewhere && a.connected.Contains(r.GW) && !b.explicit(r.Dst) {
			return r.GW, "the gateway of prevResult's route to " + r.Dst.String()
		}
	}
	return netip.Addr{}, ""
}

func (b *builder) explicit(dst netip.Prefix) bool {
	for _, s := range b.Config.Supernets {
		if s.Dst == dst && s.GW.IsValid() {
			return true
		}
	}
	return false
}

// otherEnd is the only other address of a point-to-point prefix (RFC 3021, RFC 6164).
func otherEnd(a *address) (netip.Addr, string) {
	addr, bits := a.addr(), a.connected.Bits()
	if bits != addr.BitLen()-1 {
		return netip.Addr{}, ""
	}
	raw := addr.AsSlice()
	raw[len(raw)-1] ^= 1
	other, _ := netip.AddrFromSlice(raw)
	return other, "the other end"
}

// onlyExplicitGateway is the gateway that all supernets of the family name, where
// they agree and the address reaches it.
func (b *builder) onlyExplicitGateway(a *address) (netip.Addr, string) {
	var found netip.Addr
	for _, s := range b.Config.Supernets {
		if !s.GW.IsValid() || policy.FamilyOf(s.GW) != a.family() || !a.reaches(s.GW) {
			continue
		}
		if found.IsValid() && found != s.GW {
			return netip.Addr{}, ""
		}
		found = s.GW
	}
	return found, "supernets[].gw"
}

// reaches reports whether a next hop is on the link as far as this address is
// concerned: inside its prefix, link-local, or anything at all for a host prefix,
// which has no neighbours to be inside of.
func (a *address) reaches(gw netip.Addr) bool {
	return a.connected.Contains(gw) || gw.Is6() && gw.IsLinkLocalUnicast() || a.connected.IsSingleIP()
}

// checkGateway refuses next hops that the kernel refuses with an unreadable error
// (off the link), or takes and then black-holes (an address of our own).
func (b *builder) checkGateway(gw netip.Addr, a *address, from string) error {
	name := b.plan.IfName
	if err := b.notLocal(gw, from); err != nil {
		return err
	}
	if !a.reaches(gw) {
		return cnierr.New(cnierr.Config, "%s %s is not on the link of %s: %s is outside %s; "+
			"give a gateway inside the rail's prefix", from, gw, name, gw, a.connected)
	}
	if gw.Is4() && a.connected.Bits() < 31 && gw == lastOf(a.connected) {
		return cnierr.New(cnierr.Config, "%s %s is the broadcast address of %s on %s", from, gw, a.connected, name)
	}
	return nil
}

func (b *builder) notLocal(gw netip.Addr, from string) error {
	if b.State.Rail.Has(gw) {
		return cnierr.New(cnierr.Config, "%s %s is %s's own address: packets to it would never leave; "+
			"give the address of the switch", from, gw, b.plan.IfName)
	}
	if other, ok := b.State.Owner(gw); ok {
		return cnierr.New(cnierr.Config, "%s %s for %s is the address of %s in the same namespace: "+
			"give the address of the switch", from, gw, b.plan.IfName, other.Name)
	}
	return nil
}

// lastOf is the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}
