package gather

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
)

// maxEntries bounds how many neighbour entries of one rail are shown; with --peer those
// of peers always are.
const maxEntries = 256

// neighbours reads the rails' neighbour entries. The kernel filters by link (strict
// checking, net/core/neighbour.c, neigh_valid_dump_req): others' hundred thousand
// entries cost nothing.
func (l *look) neighbours() error {
	for i := range l.Rails {
		r := &l.Rails[i]
		r.Entries = []facts.Entry{}
		for _, f := range l.families() {
			err := kernel.Dump("neighbours", func() error {
				r.Entries = withoutFamily(r.Entries, f)
				return l.entries(r, f)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func withoutFamily(list []facts.Entry, f policy.Family) []facts.Entry {
	kept := list[:0]
	for _, e := range list {
		if policy.FamilyOf(e.Address) != f {
			kept = append(kept, e)
		}
	}
	return kept
}

// entries appends one family's. Multicast entries are the kernel's own bookkeeping.
func (l *look) entries(r *facts.Rail, f policy.Family) error {
	header := &netlink.Ndmsg{Family: uint8(f)}
	index := nl.NewRtAttr(unix.NDA_IFINDEX, nl.Uint32Attr(uint32(r.Index)))
	messages, err := strictDump(unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, header, index)
	for _, m := range messages {
		n, bad := netlink.NeighDeserialize(m)
		if bad != nil || n.LinkIndex != r.Index || n.State&netlink.NUD_NOARP != 0 {
			continue
		}
		addr, _ := netip.AddrFromSlice(n.IP)
		if addr = addr.Unmap(); addr.IsMulticast() || len(r.Entries) >= maxEntries && !l.isPeer(addr) {
			continue
		}
		r.Entries = append(r.Entries, facts.Entry{Address: addr, MAC: n.HardwareAddr.String(), State: stateText(n.State)})
	}
	return err
}

func (l *look) isPeer(a netip.Addr) bool {
	for _, p := range l.Peers {
		if p == a {
			return true
		}
	}
	return false
}

// strictDump asks over a socket of its own, which the kernel filters for.
func strictDump(get, answer int, data ...nl.NetlinkRequestData) ([][]byte, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE) // to no group
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	_ = unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1) // since 4.20
	req := nl.NewNetlinkRequest(get, unix.NLM_F_DUMP)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
	for _, d := range data {
		req.AddData(d)
	}
	return req.Execute(unix.NETLINK_ROUTE, uint16(answer))
}

// stateText names a NUD_ state as ip neigh does.
func stateText(state int) string {
	switch {
	case state&netlink.NUD_PERMANENT != 0:
		return "PERMANENT"
	case state&netlink.NUD_REACHABLE != 0:
		return "REACHABLE"
	case state&netlink.NUD_FAILED != 0:
		return "FAILED"
	case state&netlink.NUD_INCOMPLETE != 0:
		return "INCOMPLETE"
	case state&netlink.NUD_DELAY != 0:
		return "DELAY"
	case state&netlink.NUD_PROBE != 0:
		return "PROBE"
	}
	return "STALE"
}

// neighbourTables reads how full the host's neighbour tables are. They are the same in
// every namespace, though gc_thresh3 itself is a file of the host's only.
func (l *look) neighbourTables() {
	l.NeighbourTables = []facts.NeighbourTable{}
	for _, f := range l.families() {
		messages, err := strictDump(unix.RTM_GETNEIGHTBL, unix.RTM_NEWNEIGHTBL, family(f))
		if err != nil {
			l.note("%s neighbour table: %v", f, err)
			continue
		}
		for _, m := range messages {
			if t, ok := parseTable(f, m); ok {
				l.NeighbourTables = append(l.NeighbourTables, t)
			}
		}
	}
}

// family is a struct ndtmsg (include/uapi/linux/neighbour.h).
type family policy.Family

func (f family) Len() int          { return 4 }
func (f family) Serialize() []byte { return []byte{byte(f), 0, 0, 0} }

// parseTable reads NDTA_THRESH3 and the entries of NDTA_CONFIG; the messages about single
// links have neither.
func parseTable(f policy.Family, m []byte) (facts.NeighbourTable, bool) {
	const thresh3, config = 4, 5
	t := facts.NeighbourTable{Family: f, Name: f.String()}
	if len(m) < 4 || m[0] != byte(f) {
		return t, false
	}
	attrs, err := nl.ParseRouteAttr(m[4:])
	if err != nil {
		return t, false
	}
	both := 0
	for _, a := range attrs {
		switch v := a.Value; a.Attr.Type {
		case thresh3:
			t.Limit = binary.NativeEndian.Uint32(v)
			both++
		case config: // struct ndt_config: two u16, then the entries
			t.Entries = binary.NativeEndian.Uint32(v[4:])
			both++
		}
	}
	return t, both == 2
}
