package config

import (
	"net/netip"
	"strings"
)

// supernets takes the list of prefixes and their gateways.
func (c *Config) supernets(n node, r *report) {
	const example = `[{"dst":"10.0.0.0/16","gw":"10.0.3.1"}]`
	if n.kind() == object {
		r.add("%s is one object; put it in a list: [%s]", n.path, n.show())
		return
	}
	if !n.want(r, list, example) {
		return
	}
	for _, e := range n.elements() {
		if !e.want(r, object, `{"dst":"10.0.0.0/16"}`) {
			continue
		}
		if s, ok := supernet(e, r); ok && !c.hasSupernet(s.Dst, e, r) {
			c.Supernets = append(c.Supernets, s)
		}
	}
}

func (c *Config) hasSupernet(dst netip.Prefix, e node, r *report) bool {
	for _, s := range c.Supernets {
		if s.Dst == dst {
			r.add("%s.dst is %s, which is there already; give each supernet once", e.path, dst)
			return true
		}
	}
	return false
}

// supernet takes one entry. It is used as a whole or not at all: a route
// without its gateway would be another route.
func supernet(e node, r *report) (s Supernet, ok bool) {
	before := len(r.lines)
	var dst, gw node
	for _, m := range e.fields(r, "a supernet", "dst", "gw") {
		if m.name == "dst" {
			dst = m.node
		} else {
			gw = m.node
		}
	}
	if dst.raw == nil {
		r.add("%s has no dst; give the prefix that covers all rails: \"dst\":\"10.0.0.0/16\"", e.path)
	} else {
		s.Dst = supernetDst(dst, r)
	}
	if gw.raw != nil {
		s.GW = gateway(gw, s.Dst, r)
	}
	return s, len(r.lines) == before
}

func supernetDst(n node, r *report) netip.Prefix {
	p, ok := prefix(n, r)
	if !ok {
		return netip.Prefix{}
	}
	// "10.60.0.0/13" for 10.56.0.0/13: people count prefixes wrongly, and which one is
	// meant is plain.
	if p != p.Masked() {
		r.note("%s: %s has bits set beyond its length and is taken as %s", n.path, quote(p.String()), quote(p.Masked().String()))
		p = p.Masked()
	}
	if p.Bits() == 0 {
		r.add("%s is %s, but a supernet is never a default route; give the prefix that covers the rails", n.path, p)
		return netip.Prefix{}
	}
	for _, s := range special() {
		if s.net.Overlaps(p) {
			r.add("%s is %s, which has %s addresses (%s) in it; give the prefix that covers the rails", n.path, p, s.what, s.net)
			return netip.Prefix{}
		}
	}
	return p
}

type reserved struct {
	net  netip.Prefix
	what string
}

// special are ranges no rail has addresses in (RFC 6890, RFC 4291).
func special() []reserved {
	return []reserved{
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{0}), 8), "\"this network\""},
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8), "loopback"},
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254}), 16), "link-local"},
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{224}), 4), "multicast"},
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 32), "broadcast"},
		{netip.PrefixFrom(netip.IPv6LinkLocalAllNodes(), 8).Masked(), "multicast"},
		{netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfe, 0x80}), 10), "link-local"},
		{netip.PrefixFrom(netip.IPv6Loopback(), 128), "loopback"},
		{netip.PrefixFrom(netip.IPv6Unspecified(), 128), "unspecified"},
		{netip.PrefixFrom(netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff}), 96), "IPv4-mapped"},
	}
}

// prefix takes a prefix, which may have bits set beyond its length.
func prefix(n node, r *report) (netip.Prefix, bool) {
	if n.kind() != text {
		r.add("%s is %s, %s; give a prefix in quotes, such as \"10.0.0.0/16\"", n.path, n.kind(), n.show())
		return netip.Prefix{}, false
	}
	s := n.str()
	p, err := netip.ParsePrefix(s)
	if err != nil {
		hint := `give one such as "10.0.0.0/16"`
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			hint = "it has no length; give one such as " + quote(wider(a.Unmap()).String())
		}
		r.add("%s: %s is not a prefix; %s", n.path, quote(s), hint)
		return netip.Prefix{}, false
	}
	if p.Addr().Is4In6() {
		hint := "give IPv4 as such"
		if p.Bits() >= 96 {
			hint = "give " + quote(netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked().String())
		}
		r.add("%s: %s is IPv4 written as IPv6; %s", n.path, quote(s), hint)
		return netip.Prefix{}, false
	}
	return p, true
}

// wider guesses the prefix somebody meant who gave only its address.
func wider(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		if bits = 24; a.As4()[2] == 0 && a.As4()[3] == 0 {
			bits = 16
		}
	}
	return netip.PrefixFrom(a, bits).Masked()
}

// gateway takes an address that a route to dst can go through. dst is zero
// where it was wrong itself.
func gateway(n node, dst netip.Prefix, r *report) netip.Addr {
	a, ok := address(n, r, "leave gw out to have it found")
	if !ok {
		return netip.Addr{}
	}
	if dst.IsValid() && a.Is4() != dst.Addr().Is4() {
		r.add("%s is %s, of another family than dst %s; give an %s address", n.path, a, dst, familyName(dst.Addr()))
		return netip.Addr{}
	}
	return a
}

func familyName(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// address takes the address of one interface. hint is what to do instead of an
// empty string.
func address(n node, r *report, hint string) (netip.Addr, bool) {
	if n.kind() != text {
		r.add("%s is %s, %s; give an address in quotes, such as \"10.0.3.1\"", n.path, n.kind(), n.show())
		return netip.Addr{}, false
	}
	s := n.str()
	a, err := netip.ParseAddr(s)
	switch {
	case s == "":
		r.add("%s: \"\" is not an address; %s", n.path, hint)
	case err != nil:
		r.add("%s: %s is not an address; %s", n.path, quote(s), addressMeant(s))
	case a.Zone() != "":
		r.add("%s: %s has a zone, but the interface is the rail; give %s", n.path, quote(s), quote(a.WithZone("").String()))
	case a.Is4In6():
		r.add("%s: %s is IPv4 written as IPv6; give %s", n.path, quote(s), quote(a.Unmap().String()))
	case notUnicast(a) != "":
		r.add("%s is %s, a %s address; give the address of one interface", n.path, a, notUnicast(a))
	default:
		return a, true
	}
	return netip.Addr{}, false
}

// addressMeant guesses what the text of a failed address was to say.
func addressMeant(s string) string {
	if p, err := netip.ParsePrefix(s); err == nil {
		return "give " + quote(p.Addr().Unmap().String())
	}
	if trimmed := strings.TrimSpace(s); trimmed != s {
		if a, err := netip.ParseAddr(trimmed); err == nil {
			return "give " + quote(a.String())
		}
	}
	return `give one such as "10.0.3.1"`
}

// notUnicast names the kind of an address that no interface of a peer has, or
// is "". Link-local addresses are fine: IPv6 gateways have them.
func notUnicast(a netip.Addr) string {
	for _, s := range special() {
		if s.what != "link-local" && s.net.Contains(a) {
			return strings.Trim(s.what, `"`)
		}
	}
	return ""
}

// peer takes an address or a small prefix, whose addresses it returns. In an
// IPv4 prefix shorter than /31 the first and the last one are no interface's.
func peer(n node, r *report) []netip.Addr {
	if n.kind() != text || !strings.Contains(n.str(), "/") {
		if a, ok := address(n, r, "leave it out"); ok {
			return []netip.Addr{a}
		}
		return nil
	}
	p, ok := prefix(n, r)
	if !ok {
		return nil
	}
	if p != p.Masked() {
		r.add("%s: %s has bits set beyond its length; give %s", n.path, n.show(), quote(p.Masked().String()))
		return nil
	}
	first, size := p.Addr(), p.Addr().BitLen()-p.Bits()
	if size > 8 {
		r.add("%s is %s, with more than %d addresses; give that many in all at most", n.path, p, MaxPeers)
		return nil
	}
	count := 1 << size
	if first.Is4() && size >= 2 {
		first, count = first.Next(), count-2
	}
	all := make([]netip.Addr, 0, count)
	for a := first; len(all) < count; a = a.Next() {
		if what := notUnicast(a); what != "" {
			r.add("%s is %s, with the %s address %s in it; give addresses of interfaces", n.path, p, what, a)
			return nil
		}
		all = append(all, a)
	}
	return all
}
