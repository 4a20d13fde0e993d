package neigh

import (
	"net/netip"
	"time"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/neigh/arp"
)

// Role is what an asked address is to this rail.
type Role string

// The roles, in the order of a report.
const (
	Own     Role = "own"     // an address of this rail
	Sibling Role = "sibling" // an address of another rail of this namespace
	Gateway Role = "gateway" // the rail's gateway
	Peer    Role = "peer"    // a declared peer: each a different NIC
)

// Verdict is what the answers for one address amount to.
type Verdict string

// The verdicts. The package comment says which of them can fail an ADD.
const (
	// OK: answered as it should be; for own and sibling addresses, by nobody else.
	OK Verdict = "ok"
	// Duplicate: a station outside this namespace answers for an own or sibling address.
	Duplicate Verdict = "duplicate"
	// Flux: several MACs answer for one address, or a sibling answers for an own address.
	Flux Verdict = "flux"
	// WrongRail: only a rail of this namespace that does not own the address answers for it.
	WrongRail Verdict = "wrong-rail"
	// Shared: two declared peers have one MAC, or one has this rail's own.
	Shared Verdict = "shared"
	// Proxied: the gateway answers for a peer (proxy ARP). Healthy, but worth knowing.
	Proxied Verdict = "proxied"
	// Silent: nobody answered within the timeout.
	Silent Verdict = "silent"
	// Skipped: could not be asked; the message says why.
	Skipped Verdict = "skipped"
)

// Link is a snapshot of a network interface.
type Link struct {
	Index int
	Name  string
	MAC   hwaddr.MAC
	// Up is IFF_UP, NoARP is IFF_NOARP. Carrier is IFF_LOWER_UP and IFF_RUNNING:
	// a link that was just set up has the first some milliseconds before the
	// second, and what is sent meanwhile is lost. See WaitCarrier.
	Up, Carrier, NoARP bool
	// ARPType is the ARPHRD_ hardware type; 1 is Ethernet.
	ARPType uint16
	// Kind is the rtnetlink kind ("ipvlan", "vlan", "veth"), empty for hardware.
	Kind string
	// ParentIndex is the link this one is stacked on (IFLA_LINK), 0 for none, and
	// ParentNetns the id of that link's namespace (IFLA_LINK_NETNSID), -1 for the
	// link's own. An ifindex means something only together with its namespace.
	ParentIndex, ParentNetns int
}

// Rail is a link with its addresses.
type Rail struct {
	Link  Link
	Addrs []netip.Prefix
	// ARPIgnore is the effective arp_ignore, for messages; empty if not known.
	ARPIgnore string
}

// Parent is the way to the link an ipvlan rail is stacked on. A probe with
// sender 0.0.0.0 from an ipvlan child is never answered to the child, but to
// the parent, so phase 1 is asked there.
type Parent struct {
	// Link is the parent's, as seen in its own namespace.
	Link Link
	// Enter runs open on a thread in the parent's namespace and returns its error.
	// One socket is opened in it; nothing else happens there.
	Enter func(open func() error) error
}

// Request is what to prove.
type Request struct {
	Rail Rail
	// Siblings are the other rails of the same namespace.
	Siblings        []Rail
	Gateways, Peers []netip.Addr
	// Anycast are MACs that may answer for several addresses (VRRP, VARP).
	Anycast []hwaddr.MAC
	// Timeout is how long a silent gateway or peer is waited for, all of them
	// together, and how long a sibling may take to stop answering for this rail.
	// Zero means DefaultTimeout.
	Timeout time.Duration
	// Parent is set for an ipvlan rail whose parent can be used.
	Parent *Parent
	// EffectiveARPIgnore re-reads the effective arp_ignore of a link of this
	// namespace for a message; optional.
	EffectiveARPIgnore func(ifindex int) string
}

// Answer is one MAC that answered for an address.
type Answer struct {
	MAC hwaddr.MAC
	// Owner is the link of this namespace that has the MAC, empty if none has.
	Owner string
	// After is the time from the first question to this MAC's first answer.
	After time.Duration
	// Stopped is set when the MAC answered at first, but no longer when the
	// address was asked about again.
	Stopped bool
}

// Result is what was found about one address.
type Result struct {
	Addr    netip.Addr
	Role    Role
	Verdict Verdict
	// Message says what was found, what it means for RDMA, and what to do.
	Message string
	// Answers are ordered by MAC.
	Answers []Answer
	// Sent is the number of questions sent.
	Sent int
	// Cause is set when the address was skipped because of an error, and can be
	// tested with errors.Is: ErrBusy.
	Cause error
}

// Severe says whether the result is surely wrong, so that enforcing it is no
// false alarm: see the table in the package comment.
func (r Result) Severe() bool {
	switch r.Verdict {
	case Duplicate, Flux, WrongRail, Shared:
		return r.Role != Sibling
	default:
		return false
	}
}

// Entry is a neighbour entry of the kernel's.
type Entry struct {
	Addr netip.Addr
	MAC  hwaddr.MAC
}

// Report is the outcome of a proof. Results come in the order of the request:
// own, siblings, gateways, peers; an address asked for twice comes once.
type Report struct {
	Results []Result
	// Elapsed is how long the proof took.
	Elapsed time.Duration
	// Probes is the number of questions sent.
	Probes int
	// Removed are kernel neighbour entries that contradicted the proof.
	Removed []Entry
}

// mac is an Ethernet hardware address that can be compared and be a map key.
type mac = arp.MAC

// ethernet gives a link's address for use on the wire; the link has been checked
// with unaskable before.
func (l Link) ethernet() mac {
	if len(l.MAC) != 6 {
		return mac{}
	}
	return mac(l.MAC)
}

func hardware(m mac) hwaddr.MAC { return hwaddr.MAC(m[:]) }
