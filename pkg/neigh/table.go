package neigh

import (
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
)

// overflow watches the host's neighbour table while neighbours are asked. The
// questions make no entries here, but the answers of peers do at their end, and
// a peer on this very host that has no room for an entry does not answer
// (net/ipv4/arp.c, arp_process); nor could RDMA resolve it.
type overflow struct {
	read   func(policy.Family) (kernel.NeighbourTable, bool)
	before map[policy.Family]kernel.NeighbourTable
}

func (o *overflow) start(families ...policy.Family) {
	o.before = map[policy.Family]kernel.NeighbourTable{}
	for _, f := range families {
		if t, ok := o.read(f); ok {
			o.before[f] = t
		}
	}
}

// happened returns the limit of a family's table if that refused an entry since
// start, else 0.
func (o *overflow) happened(f policy.Family) (limit uint32) {
	before, known := o.before[f]
	after, ok := o.read(f)
	if !known || !ok || after.Refused <= before.Refused {
		return 0
	}
	return after.Limit
}
