// Package arp is the ARP packet of RFC 826 for IPv4 over Ethernet, and the
// socket filter that lets through only what can be evidence in a neighbour
// proof.
//
// The codec is this project's own because the packet is 28 bytes in one fixed
// shape; github.com/mdlayher/arp does the same but has had no release since
// 2022 and brings a client, goroutines and a second Ethernet codec.
package arp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Size is the length of an ARP packet for IPv4 over Ethernet, in bytes.
// Frames carry up to 18 bytes of padding behind it.
const Size = 28

// EtherType is ARP's protocol number on Ethernet, in host byte order.
const EtherType = 0x0806

// The two operations of RFC 826 ("ar$op").
const (
	Request uint16 = 1
	Reply   uint16 = 2
)

// The fixed first fields of the packet: hardware Ethernet, protocol IPv4,
// address lengths 6 and 4.
const (
	hardwareEthernet = 1
	protocolIPv4     = 0x0800
	lengths          = 0x0604
)

// Where the fields stand; the filter uses the same table as the codec.
const (
	offHardware  = 0
	offProtocol  = 2
	offLengths   = 4
	offOperation = 6
	offSenderMAC = 8
	offSenderIP  = 14
	offTargetMAC = 18
	offTargetIP  = 24
)

// MAC is an Ethernet hardware address.
type MAC = [6]byte

// Broadcast is the Ethernet address every station listens to.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ErrNotARP is what Parse finds when the bytes are no ARP packet for IPv4 over
// Ethernet.
var ErrNotARP = errors.New("not an ARP packet for IPv4 over Ethernet")

// Packet is one ARP packet. The addresses are IPv4 ones; the zero netip.Addr
// stands for 0.0.0.0 when marshalled.
type Packet struct {
	Operation uint16
	SenderMAC MAC
	SenderIP  netip.Addr
	TargetMAC MAC
	TargetIP  netip.Addr
}

// Question asks who has target. A sender of 0.0.0.0 makes it the probe of RFC
// 5227, which leaves no entry at those who hear it.
func Question(from MAC, sender, target netip.Addr) Packet {
	return Packet{Operation: Request, SenderMAC: from, SenderIP: sender, TargetIP: target}
}

// Announcements are the two gratuitous forms of "addr is at mac". Linux takes
// the reply form for gratuitous only when its target hardware address equals
// the sender's (net/ipv4/arp.c, arp_is_garp), so it does here.
func Announcements(mac MAC, addr netip.Addr) [2]Packet {
	return [2]Packet{
		{Operation: Request, SenderMAC: mac, SenderIP: addr, TargetIP: addr},
		{Operation: Reply, SenderMAC: mac, SenderIP: addr, TargetMAC: mac, TargetIP: addr},
	}
}

// Marshal returns the packet's bytes.
func (p Packet) Marshal() []byte {
	b := make([]byte, Size)
	binary.BigEndian.PutUint16(b[offHardware:], hardwareEthernet)
	binary.BigEndian.PutUint16(b[offProtocol:], protocolIPv4)
	binary.BigEndian.PutUint16(b[offLengths:], lengths)
	binary.BigEndian.PutUint16(b[offOperation:], p.Operation)
	copy(b[offSenderMAC:], p.SenderMAC[:])
	copy(b[offSenderIP:], four(p.SenderIP))
	copy(b[offTargetMAC:], p.TargetMAC[:])
	copy(b[offTargetIP:], four(p.TargetIP))
	return b
}

// Parse reads a packet from the start of b; padding behind it is ignored. The
// error wraps ErrNotARP.
func Parse(b []byte) (Packet, error) {
	if len(b) < Size {
		return Packet{}, fmt.Errorf("%d bytes where %d are needed: %w", len(b), Size, ErrNotARP)
	}
	hardware := binary.BigEndian.Uint16(b[offHardware:])
	protocol := binary.BigEndian.Uint16(b[offProtocol:])
	length := binary.BigEndian.Uint16(b[offLengths:])
	if hardware != hardwareEthernet || protocol != protocolIPv4 || length != lengths {
		return Packet{}, fmt.Errorf("hardware type %d, protocol %#04x, address lengths %#04x: %w",
			hardware, protocol, length, ErrNotARP)
	}
	return Packet{
		Operation: binary.BigEndian.Uint16(b[offOperation:]),
		SenderMAC: MAC(b[offSenderMAC:]),
		SenderIP:  netip.AddrFrom4([4]byte(b[offSenderIP:])),
		TargetMAC: MAC(b[offTargetMAC:]),
		TargetIP:  netip.AddrFrom4([4]byte(b[offTargetIP:])),
	}, nil
}

// four gives an IPv4 address's bytes; anything else is 0.0.0.0, so that a
// caller's mistake cannot put half an IPv6 address on the wire.
func four(a netip.Addr) []byte {
	a = a.Unmap()
	if !a.Is4() {
		return make([]byte, 4)
	}
	b := a.As4()
	return b[:]
}
