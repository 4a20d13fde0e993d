// Package nd is what the neighbour proof needs of IPv6 neighbour discovery
// (RFC 4861): asking for a neighbour, hearing who answers, announcing an
// address, soliciting a router, and waiting for duplicate address detection.
//
// Messages are built and parsed by github.com/mdlayher/ndp, which is
// maintained and fuzzed. They are sent through a packet socket, because the
// kernel makes an entry in its neighbour table for every solicited-node group
// an ordinary socket sends to: a proof of 256 peers would add 256 entries. They
// are received by an ICMPv6 socket, which unlike a second packet socket costs
// nothing to close.
package nd

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/ndp"
)

// EtherType is IPv6's protocol number on Ethernet, in host byte order.
const EtherType = 0x86dd

// hopLimit is what RFC 4861 demands of every neighbour discovery message; a
// router would have lowered it, so it proves that the sender is on the link.
const hopLimit = 255

const protocolICMPv6 = 58

var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
)

// Message is an IPv6 packet and the Ethernet address it goes to.
type Message struct {
	To     [6]byte
	Packet []byte
}

// Solicitation asks who has target, from an address of the asker's that is no
// longer tentative. Every answer to it must carry the answerer's link-layer
// address, as it is sent to a multicast address (RFC 4861 section 4.4).
func Solicitation(mac [6]byte, source, target netip.Addr) (Message, error) {
	return pack(source, solicitedNode(target), &ndp.NeighborSolicitation{
		TargetAddress: target,
		Options:       []ndp.Option{linkLayer(ndp.Source, mac)},
	})
}

// Advertisement announces that addr is at mac, overriding what others hold. A
// router must say that it is one, or hosts drop it from their default routers
// (RFC 4861 section 7.2.5).
func Advertisement(mac [6]byte, addr netip.Addr, router bool) (Message, error) {
	return pack(addr, allNodes, &ndp.NeighborAdvertisement{
		Router:        router,
		Override:      true,
		TargetAddress: addr,
		Options:       []ndp.Option{linkLayer(ndp.Target, mac)},
	})
}

// RouterSolicitation asks routers to advertise now. The source may be the
// unspecified address; the message then carries no link-layer address (RFC
// 4861 section 4.1).
func RouterSolicitation(mac [6]byte, source netip.Addr) (Message, error) {
	rs := &ndp.RouterSolicitation{}
	if !source.IsUnspecified() {
		rs.Options = []ndp.Option{linkLayer(ndp.Source, mac)}
	}
	return pack(source, allRouters, rs)
}

// Claim says that a station with this MAC answers for Addr.
type Claim struct {
	Addr netip.Addr
	MAC  [6]byte
}

// ParseClaim reads an ICMPv6 neighbour advertisement. It is a claim only with a
// target link-layer address of Ethernet's length; the Ethernet source is no
// evidence of its own.
func ParseClaim(icmp []byte) (Claim, bool) {
	message, err := ndp.ParseMessage(icmp)
	if err != nil {
		return Claim{}, false
	}
	na, ok := message.(*ndp.NeighborAdvertisement)
	if !ok {
		return Claim{}, false
	}
	for _, option := range na.Options {
		ll, ok := option.(*ndp.LinkLayerAddress)
		if ok && ll.Direction == ndp.Target && len(ll.Addr) == 6 {
			return Claim{Addr: na.TargetAddress, MAC: [6]byte(ll.Addr)}, true
		}
	}
	return Claim{}, false
}

func linkLayer(direction ndp.Direction, mac [6]byte) ndp.Option {
	return &ndp.LinkLayerAddress{Direction: direction, Addr: net.HardwareAddr(mac[:])}
}

// pack puts an IPv6 header (RFC 8200 section 3) before an ICMPv6 message to a
// multicast address.
func pack(source, group netip.Addr, message ndp.Message) (Message, error) {
	if source.IsValid() && source.Is4() {
		return Message{}, fmt.Errorf("%s cannot be the source of an IPv6 neighbour discovery message", source)
	}
	source = source.WithZone("")
	body, err := ndp.MarshalMessageChecksum(message, source, group)
	if err != nil {
		return Message{}, fmt.Errorf("a neighbour discovery message from %s to %s: %w", source, group, err)
	}
	b := make([]byte, 40, 40+len(body))
	b[0] = 6 << 4
	binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
	b[6], b[7] = protocolICMPv6, hopLimit
	src, dst := source.As16(), group.As16()
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
	return Message{To: [6]byte{0x33, 0x33, dst[12], dst[13], dst[14], dst[15]}, Packet: append(b, body...)}, nil
}

// solicitedNode is the multicast group of everyone whose address ends in the
// same three bytes (RFC 4291 section 2.7.1).
func solicitedNode(target netip.Addr) netip.Addr {
	t := target.As16()
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]})
}
