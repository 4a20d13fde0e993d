package nl

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Message is a netlink request under construction: struct nlmsghdr, the header of its
// kind, then attributes (include/uapi/linux/netlink.h). Length, flags and sequence
// number are filled in when it is sent.
type Message []byte

// NewMessage returns a request of a kind (RTM_…) with its header.
func NewMessage(kind uint16, header []byte) Message {
	m := make(Message, unix.SizeofNlMsghdr, 128)
	binary.NativeEndian.PutUint16(m[4:], kind)
	return append(m, header...)
}

// Attr adds an attribute, padded to four bytes.
func (m *Message) Attr(kind uint16, value ...byte) {
	b := binary.NativeEndian.AppendUint16(*m, uint16(unix.SizeofRtAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	for len(b)%unix.NLMSG_ALIGNTO != 0 {
		b = append(b, 0)
	}
	*m = b
}

// Uint32 adds an attribute of four bytes in the host's order.
func (m *Message) Uint32(kind uint16, v uint32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	m.Attr(kind, b[:]...)
}

// Addr adds an attribute that is an address: 4 or 16 bytes.
func (m *Message) Addr(kind uint16, a netip.Addr) { m.Attr(kind, a.AsSlice()...) }

// Nest adds an attribute that holds those which f adds.
func (m *Message) Nest(kind uint16, f func()) {
	start := len(*m)
	m.Attr(kind)
	f()
	binary.NativeEndian.PutUint16((*m)[start:], uint16(len(*m)-start))
}

// ErrShort is a netlink message that ends before its header does.
var ErrShort = errors.New("netlink message too short")
