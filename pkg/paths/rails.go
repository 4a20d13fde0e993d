package paths

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
)

// Rail is one interface of the pod that looks.
type Rail struct {
	Name  string         `json:"name"`
	Addrs []netip.Prefix `json:"addrs"` // without link-local ones

	index int
	up    bool
}

func railOf(l netstate.Link) Rail {
	r := Rail{Name: l.Name, index: l.Index, up: l.Up && l.Carrier}
	for _, a := range l.Addrs {
		if !a.Prefix.Addr().IsLinkLocalUnicast() && !a.DADFailed {
			r.Addrs = append(r.Addrs, a.Prefix)
		}
	}
	return r
}

// source is the address with which the rail would speak to a peer: of its family, and
// of its prefix where there is one.
func (r Rail) source(peer netip.Addr) (netip.Addr, bool) {
	var found netip.Addr
	for _, p := range r.Addrs {
		if p.Addr().Is4() != peer.Is4() {
			continue
		}
		if p.Contains(peer) {
			return p.Addr(), true
		}
		if !found.IsValid() {
			found = p.Addr()
		}
	}
	return found, found.IsValid()
}

// onLink tells whether an address is in a prefix of the rail's.
func (r Rail) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(r.Addrs, func(p netip.Prefix) bool { return p.Contains(a) })
}

// namedRails finds the rails that the peers are given for, in the order of the peers.
func namedRails(links []netstate.Link, peers []Peer) ([]Rail, error) {
	var rails []Rail
	for _, p := range peers {
		if slices.ContainsFunc(rails, func(r Rail) bool { return r.Name == p.Rail }) {
			continue
		}
		at := slices.IndexFunc(links, func(l netstate.Link) bool { return l.Name == p.Rail })
		if at < 0 {
			return nil, fmt.Errorf("there is no %s here; this namespace has %s", p.Rail, names(links))
		}
		rails = append(rails, railOf(links[at]))
	}
	return rails, nil
}

func names(links []netstate.Link) string {
	var all []string
	for _, l := range links {
		if !l.Loopback {
			all = append(all, l.Name)
		}
	}
	if len(all) == 0 {
		return "no interface"
	}
	return strings.Join(all, ", ")
}

// open returns a netlink socket in the calling thread's namespace, and its links.
func open() (*kernel.Netlink, []netstate.Link, error) {
	k, err := kernel.Open()
	if err != nil {
		return nil, nil, err
	}
	links, err := k.Links()
	if err != nil {
		k.Close()
		return nil, nil, err
	}
	return k, links, nil
}

// Mine returns the rails of the calling thread's namespace as peers of others: the
// interfaces with a device rule of railtune's or, where there is none, all with an
// address but those that a default route leads through (eth0).
func Mine() ([]Peer, error) {
	k, links, err := open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	tuned := map[string]bool{}
	front := map[int]bool{}
	for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
		rules, err := k.Rules(f, func(r *kernel.FoundRule) bool { return r.Ours() && r.OIF != "" })
		if err != nil { // a kernel without policy routing, or without the family, has none
			continue
		}
		for _, r := range rules {
			tuned[r.OIF] = true
		}
		if hop, ok := k.DefaultThrough(f, 0); ok {
			front[hop.IfIndex] = true
		}
	}
	var peers []Peer
	for _, l := range links {
		if l.Loopback || !l.Up || len(tuned) > 0 && !tuned[l.Name] || len(tuned) == 0 && front[l.Index] {
			continue
		}
		for _, p := range railOf(l).Addrs {
			peers = append(peers, Peer{Rail: l.Name, Addr: p.Addr()})
		}
	}
	slices.SortStableFunc(peers, func(a, b Peer) int { return byNumber(a.Rail, b.Rail) })
	return peers, nil
}

// byNumber puts net2 before net10.
func byNumber(a, b string) int {
	stem := func(s string) string { return strings.TrimRight(s, "0123456789") }
	if stem(a) == stem(b) && len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
