package kernel

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// message is a netlink request under construction: struct nlmsghdr, the header of its
// kind, then attributes (include/uapi/linux/netlink.h). Length, flags and sequence
// number are filled in when it is sent.
type message []byte

// newMessage returns a request of a kind (RTM_…) with its header.
func newMessage(kind uint16, header []byte) message {
	m := make(message, unix.SizeofNlMsghdr, 128)
	binary.NativeEndian.PutUint16(m[4:], kind)
	return append(m, header...)
}

// attr adds an attribute, padded to four bytes.
func (m *message) attr(kind uint16, value ...byte) {
	b := binary.NativeEndian.AppendUint16(*m, uint16(unix.SizeofRtAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	for len(b)%unix.NLMSG_ALIGNTO != 0 {
		b = append(b, 0)
	}
	*m = b
}

func (m *message) uint32(kind uint16, v uint32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	m.attr(kind, b[:]...)
}

func (m *message) addr(kind uint16, a netip.Addr) { m.attr(kind, a.AsSlice()...) }

// nest adds an attribute that holds those which f adds.
func (m *message) nest(kind uint16, f func()) {
	start := len(*m)
	m.attr(kind)
	f()
	binary.NativeEndian.PutUint16((*m)[start:], uint16(len(*m)-start))
}

// rtmsg is struct rtmsg (include/uapi/linux/rtnetlink.h) and, with kind as the action
// and without protocol and scope, struct fib_rule_hdr (include/uapi/linux/fib_rules.h).
type rtmsg struct {
	family, dstLen, srcLen, tos  uint8
	table, protocol, scope, kind uint8
	flags                        uint32
}

func (h rtmsg) bytes() []byte {
	b := []byte{h.family, h.dstLen, h.srcLen, h.tos, h.table, h.protocol, h.scope, h.kind}
	return binary.NativeEndian.AppendUint32(b, h.flags)
}

// parseRtmsg splits an answer into its header and its attributes.
func parseRtmsg(m []byte) (h rtmsg, attrs []byte, err error) {
	if len(m) < unix.SizeofRtMsg {
		return rtmsg{}, nil, errShort
	}
	return rtmsg{
		family: m[0], dstLen: m[1], srcLen: m[2], tos: m[3],
		table: m[4], protocol: m[5], scope: m[6], kind: m[7],
		flags: nativeUint32(m[8:]),
	}, m[unix.SizeofRtMsg:], nil
}

// errShort is a netlink message that ends before its header does.
var errShort = errors.New("netlink message too short")

// wideTable is the first table number that the header's byte cannot say.
const wideTable = 256
