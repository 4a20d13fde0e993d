package neigh

import (
	"fmt"
	"net/netip"

	"github.com/railtune/railtune/pkg/neigh/nd"
	"github.com/railtune/railtune/pkg/policy"
)

// unaskable says why nothing can be asked on a link; empty if it can.
func (l Link) unaskable() string {
	switch {
	case l.NoARP:
		return l.Name + " uses no ARP (NOARP)"
	case l.ARPType != arpEthernet:
		return fmt.Sprintf("%s is no Ethernet link (ARP hardware type %d, %d-byte address)", l.Name, l.ARPType, len(l.MAC))
	case len(l.MAC) != 6:
		return fmt.Sprintf("%s has a hardware address of %d bytes, not Ethernet's 6", l.Name, len(l.MAC))
	case !l.Up:
		return l.Name + " is down"
	default:
		return ""
	}
}

// prepare settles which questions cannot be asked and from which address the
// others are.
func (p *proof) prepare() {
	link := p.req.Rail.Link
	reason := link.unaskable()
	for _, q := range p.all() {
		switch {
		case q.skip != "":
		case q.role == Own && q.addr.Is6():
			p.prepareOwnIPv6(q)
		case reason != "":
			q.skip = reason
		case !link.Carrier && (q.role == Own || q.role == Sibling):
			q.skip = link.Name + " has no carrier, nobody can be asked"
		case !link.Carrier:
			q.silent = link.Name + " has no carrier"
		case q.role == Gateway || q.role == Peer:
			q.sender = p.senderFor(q.addr)
			if !q.sender.IsValid() {
				q.skip = fmt.Sprintf("%s has no usable %s address to ask from", link.Name, policy.FamilyOf(q.addr))
			}
		}
	}
	if link.Kind == "ipvlan" && reason == "" && link.Carrier {
		p.prepareIPVLAN()
	}
}

// prepareIPVLAN moves phase 1 to the parent: the answer to a probe with sender
// 0.0.0.0 is for the address 0.0.0.0, which ipvlan gives to no child.
func (p *proof) prepareIPVLAN() {
	parent := p.req.Parent
	if parent == nil {
		p.skipSelf(p.req.Rail.Link.Name +
			" is an ipvlan link, to which no answer about its own address is delivered, and its parent was not to be used")
		return
	}
	reason := parent.Link.unaskable()
	if reason == "" && !parent.Link.Carrier {
		reason = parent.Link.Name + " has no carrier"
	}
	if reason != "" {
		p.skipSelf(fmt.Sprintf("%s is an ipvlan link and its parent cannot be asked from: %s", p.req.Rail.Link.Name, reason))
		return
	}
	p.throughParent = true
}

// prepareOwnIPv6 reports duplicate address detection's state. Nothing is sent:
// the kernel has asked already. A claim heard while others are asked counts.
func (p *proof) prepareOwnIPv6(q *question) {
	q.ask = nil
	state, present := p.states[q.addr]
	name := p.req.Rail.Link.Name
	switch {
	case !present:
		q.skip = fmt.Sprintf("it is not on %s", name)
	case state == nd.Tentative, state == nd.Optimistic:
		q.skip = fmt.Sprintf("the kernel's duplicate address detection is still running on %s", name)
	case state == nd.Unchecked:
		q.skip = fmt.Sprintf("duplicate address detection is off for it on %s (nodad)", name)
	case state == nd.Failed:
		q.failed = true
	default:
		q.calm = "the kernel's duplicate address detection found no other station"
	}
}

// senderFor is the own address to ask from: one of the target's subnet if there
// is one, since a tuned host with arp_ignore=2 answers nobody else; a
// link-local one for a link-local target.
func (p *proof) senderFor(target netip.Addr) (sender netip.Addr) {
	for _, a := range p.req.Rail.Addrs {
		addr := a.Addr()
		if addr.Is4() != target.Is4() || (addr.Is6() && !p.usable(addr)) {
			continue
		}
		if a.Contains(target) {
			return addr
		}
		if !sender.IsValid() && addr.IsLinkLocalUnicast() == target.IsLinkLocalUnicast() {
			sender = addr
		}
	}
	if sender.IsValid() || target.Is4() {
		return sender
	}
	return p.linkLocal()
}

// linkLocal is a usable link-local address of the rail's: always a permitted
// source for a neighbour solicitation, whatever the target.
func (p *proof) linkLocal() (best netip.Addr) {
	for a := range p.states {
		if a.IsLinkLocalUnicast() && p.usable(a) && (!best.IsValid() || a.Less(best)) {
			best = a
		}
	}
	return best
}

func (p *proof) usable(a netip.Addr) bool {
	state, present := p.states[a]
	return present && (state == nd.Proven || state == nd.Unchecked)
}
