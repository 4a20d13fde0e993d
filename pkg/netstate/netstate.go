// Package netstate describes what is in a network namespace before railtune
// touches it, as far as the plan depends on it: the rail's link with its
// addresses, and the other links. It is filled by pkg/kernel from one snapshot.
package netstate

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/hwaddr"
)

// Addr is an address on a link.
type Addr struct {
	// Prefix is the local address with the length of its connected prefix.
	Prefix netip.Prefix
	// Peer is the remote prefix of a point-to-point address (ip addr add … peer …),
	// which is then the connected prefix instead.
	Peer netip.Prefix
	// Tentative: duplicate address detection has not ended (IFA_F_TENTATIVE without
	// IFA_F_OPTIMISTIC).
	Tentative bool
	// DADFailed: duplicate address detection found another owner (IFA_F_DADFAILED).
	DADFailed bool
	// FromRA: the kernel made it from a router advertisement (IFAPROT_KERNEL_RA, or
	// IFA_F_MANAGETEMPADDR or IFA_F_TEMPORARY before Linux 5.18).
	FromRA bool
}

// Connected is the prefix the kernel holds to be on the link because of this address.
func (a Addr) Connected() netip.Prefix {
	if a.Peer.IsValid() {
		return a.Peer.Masked()
	}
	return a.Prefix.Masked()
}

// Link is a network device of the namespace.
type Link struct {
	Index int
	Name  string
	// Kind is IFLA_INFO_KIND ("veth", "ipvlan", …); empty for hardware.
	Kind string
	MAC  hwaddr.MAC
	MTU  int
	// ARPHRD is the hardware type (ARPHRD_ETHER is 1), include/uapi/linux/if_arp.h.
	ARPHRD uint16
	// Up is the administrative state; Carrier that the device reports a link and can send
	// (IFF_LOWER_UP and IFF_RUNNING).
	Up, Carrier     bool
	NoARP, Loopback bool
	// Parent is IFLA_LINK and ParentNSID the namespace id it is in (IFLA_LINK_NETNSID,
	// -1 for this namespace); 0 where there is none.
	Parent, ParentNSID int
	// Master is the index of the bridge, bond or VRF the link belongs to; 0 for none.
	Master int
	// VRFTable is the routing table of the VRF the link belongs to, where the kernel then
	// keeps what it has in local and main otherwise; 0 for none.
	VRFTable uint32
	Addrs    []Addr
	// Tuned says that railtune's device rule names this link: it is a rail.
	Tuned bool
	// DefaultVia holds the next hops of default routes in main through this link.
	DefaultVia []netip.Addr
	// HasDefault says that main has a default route through this link, next hop or not.
	HasDefault bool
}

// Has reports whether the link holds the address.
func (l *Link) Has(a netip.Addr) bool {
	_, ok := l.Find(a)
	return ok
}

// Find returns the link's entry for an address.
func (l *Link) Find(a netip.Addr) (Addr, bool) {
	for _, have := range l.Addrs {
		if have.Prefix.Addr() == a {
			return have, true
		}
	}
	return Addr{}, false
}

// State is one snapshot of a namespace, seen from one rail.
type State struct {
	Rail   Link
	Others []Link
	// NetNS is the namespace's path, for messages.
	NetNS string
	// IPv6 says that the kernel keeps IPv6 settings for the rail: IPv6 is built in and
	// the MTU is at least 1280. IPv6Kernel says that the kernel has IPv6 at all.
	IPv6, IPv6Kernel bool
	// IPv6Disabled is the rail's disable_ipv6; Forwarding6 its IPv6 forwarding; AcceptsRA
	// says that its accept_ra is not 0.
	IPv6Disabled, Forwarding6, AcceptsRA bool
	// RADefault says that a router advertisement gave the rail a default route.
	RADefault bool
}

// Owner returns the other link that holds an address.
func (s *State) Owner(a netip.Addr) (*Link, bool) {
	for i := range s.Others {
		if s.Others[i].Has(a) {
			return &s.Others[i], true
		}
	}
	return nil, false
}

// Local reports whether any link of the namespace holds the address.
func (s *State) Local(a netip.Addr) bool {
	_, other := s.Owner(a)
	return other || s.Rail.Has(a)
}
