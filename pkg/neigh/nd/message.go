// Package nd is what the neighbour proof needs of IPv6 neighbour discovery
// (RFC 4861): asking for a neighbour, hearing who answers, announcing an
// address, soliciting a router, and waiting for duplicate address detection.
//
// Messages are built and parsed here: of the protocol only three messages with one
// option are needed, and github.com/mdlayher/ndp, which the tests compare with, brings
// cryptography and domain names into a process that starts for every rail
// (docs/speed.md). They are sent through a packet socket, because the kernel makes an
// entry in its neighbour table for every solicited-node group an ordinary socket sends
// to: a proof of 256 peers would add 256 entries. They are received by an ICMPv6
// socket, which unlike a second packet socket costs nothing to close.
package nd

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// EtherType is IPv6's protocol number on Ethernet, in host byte order.
const EtherType = 0x86dd

// hopLimit is what RFC 4861 demands of every neighbour discovery message; a
// router would have lowered it, so it proves that the sender is on the link.
const hopLimit = 255

const protocolICMPv6 = 58

// Message is an IPv6 packet and the Ethernet address it goes to.
type Message struct {
	To     [6]byte
	Packet []byte
}

// Solicitation asks who has target, from an address of the asker's that is no
// longer tentative. Every answer to it must carry the answerer's link-layer
// address, as it is sent to a multicast address (RFC 4861 section 4.4).
func Solicitation(mac [6]byte, source, target netip.Addr) (Message, error) {
	body := message(neighbourSolicitation, 0)
	body = append(body, target.AsSlice()...)
	return pack(source, solicitedNode(target), appendLinkLayer(body, sourceLinkLayer, mac))
}

// Advertisement announces that addr is at mac, overriding what others hold. A
// router must say that it is one, or hosts drop it from their default routers
// (RFC 4861 section 7.2.5).
func Advertisement(mac [6]byte, addr netip.Addr, router bool) (Message, error) {
	flags := byte(flagOverride)
	if router {
		flags |= flagRouter
	}
	body := append(message(neighbourAdvertisement, flags), addr.AsSlice()...)
	return pack(addr, netip.IPv6LinkLocalAllNodes(), appendLinkLayer(body, targetLinkLayer, mac))
}

// RouterSolicitation asks routers to advertise now. The source may be the
// unspecified address; the message then carries no link-layer address (RFC
// 4861 section 4.1).
func RouterSolicitation(mac [6]byte, source netip.Addr) (Message, error) {
	body := message(routerSolicitation, 0)
	if !source.IsUnspecified() {
		body = appendLinkLayer(body, sourceLinkLayer, mac)
	}
	return pack(source, netip.IPv6LinkLocalAllRouters(), body)
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
	if len(icmp) < fixedLength+16 || icmp[0] != neighbourAdvertisement {
		return Claim{}, false
	}
	claim := Claim{Addr: netip.AddrFrom16([16]byte(icmp[fixedLength:]))}
	if claim.Addr.Is4In6() || claim.Addr.IsMulticast() {
		return Claim{}, false
	}
	found := false
	// Options (RFC 4861 section 4.6): type, length in units of 8 bytes, value.
	for rest := icmp[fixedLength+16:]; len(rest) > 0; {
		if len(rest) < 8 || rest[1] == 0 || int(rest[1])*8 > len(rest) {
			return Claim{}, false
		}
		size := int(rest[1]) * 8
		if rest[0] == targetLinkLayer && size == 8 && !found {
			claim.MAC, found = [6]byte(rest[2:8]), true
		}
		rest = rest[size:]
	}
	return claim, found
}

// ICMPv6 types, flags and options of RFC 4861 section 4.
const (
	routerSolicitation     = 133
	neighbourSolicitation  = 135
	neighbourAdvertisement = 136

	flagRouter   = 0x80
	flagOverride = 0x20

	sourceLinkLayer = 1
	targetLinkLayer = 2

	// fixedLength is type, code, checksum, and flags or reserved bytes.
	fixedLength = 8
)

func message(kind, flags byte) []byte { return []byte{kind, 0, 0, 0, flags, 0, 0, 0} }

// appendLinkLayer appends a link-layer address option (RFC 4861 section 4.6.1).
func appendLinkLayer(body []byte, kind byte, mac [6]byte) []byte {
	return append(append(body, kind, 1), mac[:]...)
}

// icmpChecksum is that of RFC 4443 section 2.3: over a pseudo-header (RFC 8200 section
// 8.1) and the message.
func icmpChecksum(src, dst [16]byte, body []byte) uint16 {
	sum := uint32(len(body)) + protocolICMPv6
	for _, part := range [][]byte{src[:], dst[:], body} {
		for ; len(part) > 1; part = part[2:] {
			sum += uint32(binary.BigEndian.Uint16(part))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// pack puts an IPv6 header (RFC 8200 section 3) before an ICMPv6 message to a
// multicast address.
func pack(source, group netip.Addr, body []byte) (Message, error) {
	if source.IsValid() && source.Is4() {
		return Message{}, fmt.Errorf("%s cannot be the source of an IPv6 neighbour discovery message", source)
	}
	src, dst := source.WithZone("").As16(), group.As16()
	binary.BigEndian.PutUint16(body[2:], icmpChecksum(src, dst, body))
	b := make([]byte, 40, 40+len(body))
	b[0] = 6 << 4
	binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
	b[6], b[7] = protocolICMPv6, hopLimit
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
