package paths

import (
	"encoding/binary"
	"net/netip"
)

// ICMP types and codes (RFC 792, RFC 1812; RFC 4443).
const (
	echoReply4, unreachable4, echo4, exceeded4  = 0, 3, 8, 11
	unreachable6, exceeded6, echo6, echoReply6  = 1, 3, 128, 129
	echoHeader, ipv4Header, ipv6Header          = 8, 20, 40
	protocolICMP, protocolICMPv6                = 1, 58
	hostUnreachable4, addressUnreachable6       = 1, 3
	filteredNet4, filteredHost4, filteredCode4  = 9, 10, 13
	filteredCode6, filteredSource6, rejectRoute = 1, 5, 6
)

// nonce fills the data of an echo request, so that another program's with the same
// identifier is not taken for it.
type nonce [8]byte

// request is an echo request. The checksum of IPv6 is the kernel's to make (RFC 3542,
// section 3.1).
func request(is4 bool, id, seq uint16, n nonce) []byte {
	b := make([]byte, echoHeader, echoHeader+len(n))
	b[0] = echo6
	if is4 {
		b[0] = echo4
	}
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], seq)
	b = append(b, n[:]...)
	if is4 {
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

// checksum is the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// said is what a packet says about one request.
type said struct {
	seq   uint16
	reply bool
	// An error has a class; from is who says it, to whom the request went.
	class class
	to    netip.Addr
}

// class is the kind of an ICMP error, as far as it tells causes apart.
type class int

const (
	noError class = iota
	noRoute       // a router has no route
	noHost        // the last router gets no answer from the address
	filtered
	timeExceeded // the hop limit ran out
)

// read4 reads an ICMP message of IPv4 with its IP header, as a raw socket has it
// (raw(7)). ok is false for what says nothing about a request with this identifier.
func read4(b []byte, id uint16, n nonce) (s said, ok bool) {
	b, ok = payload4(b)
	if !ok || len(b) < echoHeader {
		return s, false
	}
	if b[0] == echoReply4 {
		return readReply(b, id, n)
	}
	inner := b[echoHeader:]
	if len(inner) < ipv4Header {
		return s, false
	}
	s.to, _ = netip.AddrFromSlice(inner[16:20])
	protocol := inner[9]
	if inner, ok = payload4(inner); !ok || protocol != protocolICMP {
		return s, false
	}
	switch code := b[1]; {
	case b[0] == exceeded4:
		s.class = timeExceeded
	case b[0] != unreachable4:
		return s, false
	case code == filteredNet4 || code == filteredHost4 || code == filteredCode4:
		s.class = filtered
	case code == hostUnreachable4:
		s.class = noHost
	default:
		s.class = noRoute
	}
	return s.inside(inner, echo4, id)
}

// payload4 is what follows an IPv4 header. Its length field is not looked at: a quoted
// packet is cut.
func payload4(b []byte) ([]byte, bool) {
	if len(b) < ipv4Header || b[0]>>4 != 4 {
		return nil, false
	}
	size := int(b[0]&0xf) * 4
	if size < ipv4Header || len(b) < size {
		return nil, false
	}
	return b[size:], true
}

// read6 reads an ICMP message of IPv6, which comes without its IP header.
func read6(b []byte, id uint16, n nonce) (s said, ok bool) {
	if len(b) < echoHeader {
		return s, false
	}
	if b[0] == echoReply6 {
		return readReply(b, id, n)
	}
	inner := b[echoHeader:]
	if len(inner) < ipv6Header || inner[0]>>4 != 6 || inner[6] != protocolICMPv6 {
		return s, false
	}
	s.to, _ = netip.AddrFromSlice(inner[24:40])
	switch code := b[1]; {
	case b[0] == exceeded6:
		s.class = timeExceeded
	case b[0] != unreachable6:
		return s, false
	case code == filteredCode6 || code == filteredSource6 || code == rejectRoute:
		s.class = filtered
	case code == addressUnreachable6:
		s.class = noHost
	default:
		s.class = noRoute
	}
	return s.inside(inner[ipv6Header:], echo6, id)
}

// inside reads the quoted request: at least its first eight bytes (RFC 792).
func (s said) inside(quoted []byte, kind byte, id uint16) (said, bool) {
	if len(quoted) < echoHeader || quoted[0] != kind || binary.BigEndian.Uint16(quoted[4:]) != id {
		return s, false
	}
	s.seq = binary.BigEndian.Uint16(quoted[6:])
	return s, true
}

func readReply(b []byte, id uint16, n nonce) (said, bool) {
	if binary.BigEndian.Uint16(b[4:]) != id || len(b) < echoHeader+len(n) || nonce(b[echoHeader:echoHeader+len(n)]) != n {
		return said{}, false
	}
	return said{seq: binary.BigEndian.Uint16(b[6:]), reply: true}, true
}
