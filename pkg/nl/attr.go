package nl

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// EachAttr calls f for every netlink attribute in b (include/uapi/linux/netlink.h,
// struct nlattr: u16 length with header, u16 type, payload padded to 4 bytes).
func EachAttr(b []byte, f func(kind uint16, value []byte)) error {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return fmt.Errorf("netlink attribute of length %d in %d bytes", size, len(b))
		}
		f(binary.NativeEndian.Uint16(b[2:]), b[unix.SizeofRtAttr:size])
		b = b[min(align(size), len(b)):]
	}
	return nil
}

// Uint32 reads a u32 attribute; one that is too short reads as 0.
func Uint32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}
