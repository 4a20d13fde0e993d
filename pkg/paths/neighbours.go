package paths

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// neighbour is an entry of the kernel's neighbour table.
type neighbour struct {
	ifindex int
	addr    netip.Addr
	state   uint16 // NUD_… (include/uapi/linux/neighbour.h)
}

// readNeighbours lists the table of the calling thread's namespace. It is evidence for
// a sentence, no more: an entry may be gone by now.
func readNeighbours() ([]neighbour, error) {
	b, err := syscall.NetlinkRIB(unix.RTM_GETNEIGH, unix.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("list of neighbours: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil, fmt.Errorf("list of neighbours: %w", err)
	}
	var all []neighbour
	for _, m := range messages {
		if m.Header.Type == unix.RTM_NEWNEIGH && len(m.Data) >= unix.SizeofNdMsg {
			if n := parseNeighbour(m.Data); n.addr.IsValid() {
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// parseNeighbour reads a struct ndmsg and its NDA_DST attribute.
func parseNeighbour(b []byte) neighbour {
	n := neighbour{ifindex: int(int32(binary.NativeEndian.Uint32(b[4:]))), state: binary.NativeEndian.Uint16(b[8:])}
	for b = b[unix.SizeofNdMsg:]; len(b) >= unix.SizeofRtAttr; {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.NDA_DST {
			n.addr, _ = netip.AddrFromSlice(b[unix.SizeofRtAttr:size])
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return n
}

// unanswered tells whether the kernel asks for an address on a rail in vain: it gave
// up, or is asking. A neighbour that is there answers within a millisecond, so that the
// states in which it asks last no longer.
func (r *run) unanswered(rail Rail, a netip.Addr) bool {
	for _, n := range r.neighbours {
		if n.ifindex == rail.index && n.addr == a.WithZone("") {
			return n.state&(unix.NUD_FAILED|unix.NUD_INCOMPLETE|unix.NUD_PROBE) != 0
		}
	}
	return false
}
