package neigh

import (
	"encoding/binary"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The parts of struct ndt_config and ndt_stats that are read, and the
// attributes they come in (include/uapi/linux/neighbour.h).
const (
	attrThreshold3 = 4 // NDTA_THRESH3, u32
	attrConfig     = 5 // NDTA_CONFIG, struct ndt_config
	attrStats      = 7 // NDTA_STATS, struct ndt_stats

	offEntries    = 4  // of ndt_config, u32
	offTableFulls = 80 // of ndt_stats, the eleventh u64
)

// table is the state of a kernel's neighbour table of one family. There is one
// per kernel: all namespaces of a host fill it together.
type table struct {
	entries, limit uint32
	// refused counts the entries that were not made because the table was full.
	refused uint64
}

// readTable reads the neighbour table's state; ok is false where the kernel
// does not tell.
func readTable(family int) (t table, ok bool) {
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGHTBL, unix.NLM_F_DUMP)
	req.AddRawData([]byte{byte(family), 0, 0, 0}) // struct ndtmsg
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGHTBL)
	if err != nil {
		return table{}, false
	}
	for _, m := range messages {
		if len(m) < 4 || int(m[0]) != family {
			continue
		}
		if t, ok := parseTable(m[4:]); ok {
			return t, true
		}
	}
	return table{}, false
}

// parseTable reads the message that describes the table itself; those about
// single links lack what is wanted here.
func parseTable(attributes []byte) (t table, ok bool) {
	list, err := nl.ParseRouteAttr(attributes)
	if err != nil {
		return table{}, false
	}
	found := 0
	for _, a := range list {
		switch {
		case a.Attr.Type == attrThreshold3 && len(a.Value) >= 4:
			t.limit = binary.NativeEndian.Uint32(a.Value)
			found++
		case a.Attr.Type == attrConfig && len(a.Value) >= offEntries+4:
			t.entries = binary.NativeEndian.Uint32(a.Value[offEntries:])
			found++
		case a.Attr.Type == attrStats && len(a.Value) >= offTableFulls+8:
			t.refused = binary.NativeEndian.Uint64(a.Value[offTableFulls:])
			found++
		}
	}
	return t, found == 3
}

// overflow watches the host's neighbour table while neighbours are asked. The
// questions make no entries here, but the answers of peers do at their end, and
// a peer on this very host that has no room for an entry does not answer
// (net/ipv4/arp.c, arp_process); nor could RDMA resolve it.
type overflow struct {
	read   func(family int) (table, bool)
	before map[int]table
}

func (o *overflow) start(families ...int) {
	o.before = map[int]table{}
	for _, f := range families {
		if t, ok := o.read(f); ok {
			o.before[f] = t
		}
	}
}

// happened returns the limit of a family's table if that refused an entry since
// start, else 0.
func (o *overflow) happened(family int) (limit uint32) {
	before, known := o.before[family]
	after, ok := o.read(family)
	if !known || !ok || after.refused <= before.refused {
		return 0
	}
	return after.limit
}
