package kernel

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/nl"
	"github.com/railtune/railtune/pkg/policy"
)

// Neighbour is a neighbour entry: what the kernel takes a neighbour's MAC to be.
type Neighbour struct {
	IfIndex int
	Addr    netip.Addr
	// MAC is nil where the kernel has none that it would use.
	MAC hwaddr.MAC
	// State is one of unix.NUD_…, or none of them.
	State uint16
}

// Neighbours returns the entries of one link and family, those for proxies left out.
func (k *Netlink) Neighbours(f policy.Family, ifindex int) ([]Neighbour, error) {
	return k.neighbours(neighboursOf(f, ifindex), f, ifindex)
}

// neighbours selects what a kernel too old for the request's own filter lists as well.
func (k *Netlink) neighbours(m nl.Message, f policy.Family, ifindex int) ([]Neighbour, error) {
	var out []Neighbour
	err := nl.Dump(f.String()+" neighbours", func() error {
		out = out[:0]
		return k.dump(m, unix.RTM_NEWNEIGH, func(body []byte) error {
			n, err := parseNeighbour(body)
			if err == nil && n.IfIndex == ifindex {
				out = append(out, n)
			}
			return err
		})
	})
	return out, err
}

// neighboursOf asks for the entries of a link. The kernel filters by a link that is an
// attribute, not by one in the header, which strict checking wants to be zero but for the
// family (net/core/neighbour.c, neigh_valid_dump_req): on a node with 100 000 entries that
// is 1 ms instead of 38.
func neighboursOf(f policy.Family, ifindex int) nl.Message {
	header := make([]byte, unix.SizeofNdMsg)
	header[0] = uint8(f)
	m := nl.NewMessage(unix.RTM_GETNEIGH, header)
	m.Uint32(unix.NDA_IFINDEX, uint32(ifindex))
	return m
}

// DelNeighbour removes the entry for an address, whatever its MAC is by now. The error is
// ENOENT where there is none.
func (k *Netlink) DelNeighbour(n Neighbour) error {
	header := make([]byte, unix.SizeofNdMsg)
	header[0] = uint8(policy.FamilyOf(n.Addr))
	binary.NativeEndian.PutUint32(header[4:], uint32(n.IfIndex))
	m := nl.NewMessage(unix.RTM_DELNEIGH, header)
	m.Addr(unix.NDA_DST, n.Addr)
	return k.socket.Change(m, 0)
}

// parseNeighbour decodes an RTM_NEWNEIGH message (include/uapi/linux/neighbour.h).
func parseNeighbour(m []byte) (n Neighbour, err error) {
	if len(m) < unix.SizeofNdMsg {
		return Neighbour{}, nl.ErrShort
	}
	// struct ndmsg: family and padding, index (u32), state (u16), flags, type (u8 each).
	n = Neighbour{IfIndex: int(nl.Uint32(m[4:])), State: binary.NativeEndian.Uint16(m[8:])}
	err = nl.EachAttr(m[unix.SizeofNdMsg:], func(kind uint16, v []byte) {
		switch kind {
		case unix.NDA_DST:
			n.Addr = addrOf(v)
		case unix.NDA_LLADDR:
			n.MAC = slices.Clone(v)
		}
	})
	return n, err
}

// NeighbourTable is the state of the kernel's neighbour table of one family. There is one
// per kernel: all namespaces of a host fill it together.
type NeighbourTable struct {
	// Entries is how many there are, Limit (gc_thresh3) how many there can be.
	Entries, Limit uint32
	// Refused counts the entries that were not made because the table was full.
	Refused uint64
}

// NeighbourTable reads the table of a family. ok is false where the kernel does not tell.
func (k *Netlink) NeighbourTable(f policy.Family) (t NeighbourTable, ok bool, err error) {
	m := nl.NewMessage(unix.RTM_GETNEIGHTBL, []byte{uint8(f), 0, 0, 0}) // struct ndtmsg
	err = nl.Dump(f.String()+" neighbour tables", func() error {
		ok = false
		return k.dump(m, unix.RTM_NEWNEIGHTBL, func(body []byte) error {
			if ok {
				return nil
			}
			var err error
			t, ok, err = parseNeighbourTable(body)
			return err
		})
	})
	return t, ok && err == nil, err
}

// The parts of struct ndt_config and ndt_stats that are read, and the attributes they
// come in (include/uapi/linux/neighbour.h); not in x/sys/unix.
const (
	ndtaThresh3 = 4 // u32
	ndtaConfig  = 5 // struct ndt_config
	ndtaStats   = 7 // struct ndt_stats

	configEntries   = 4  // after two u16
	statsTableFulls = 80 // the eleventh u64
)

// parseNeighbourTable decodes an RTM_NEWNEIGHTBL message. ok says that it is about the
// table itself: those about single links lack what is wanted here.
func parseNeighbourTable(m []byte) (t NeighbourTable, ok bool, err error) {
	const header = 4 // struct ndtmsg: family and padding
	if len(m) < header {
		return NeighbourTable{}, false, nl.ErrShort
	}
	found := 0
	err = nl.EachAttr(m[header:], func(kind uint16, v []byte) {
		switch {
		case kind == ndtaThresh3 && len(v) >= 4:
			t.Limit = nl.Uint32(v)
			found++
		case kind == ndtaConfig && len(v) >= configEntries+4:
			t.Entries = nl.Uint32(v[configEntries:])
			found++
		case kind == ndtaStats && len(v) >= statsTableFulls+8:
			t.Refused = binary.NativeEndian.Uint64(v[statsTableFulls:])
			found++
		}
	})
	return t, found == 3, err
}
