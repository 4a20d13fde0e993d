package plugin

import (
	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/rdma"
)

// ParentFinder returns a function that finds an ipvlan rail's parent in the
// namespace host, where the interface plugin took it from. It must be called on a
// thread in the rail's namespace, and so must the function.
func ParentFinder(host ns.NetNS) func(*netstate.Link) *neigh.Parent {
	return func(rail *netstate.Link) *neigh.Parent {
		if rail.Kind != "ipvlan" || !parentIn(host, rail) {
			return nil
		}
		var parent *neigh.Parent
		_ = enter(host)(func() error {
			k, err := kernel.Open()
			if err != nil {
				return err
			}
			defer k.Close()
			links, err := k.Links()
			for i := range links {
				if links[i].Index == rail.Parent {
					parent = &neigh.Parent{Link: attach.NeighLink(&links[i]), Enter: enter(host)}
				}
			}
			return err
		})
		return parent
	}
}

// RDMAFinder returns a function that finds a rail's RDMA ports, through its parent in
// the namespace host where it has one there. The same holds for threads.
func RDMAFinder(host ns.NetNS) func(*netstate.Link) (attach.RDMA, error) {
	return func(rail *netstate.Link) (attach.RDMA, error) {
		var inLower rdma.Enter
		if rdma.Stacked(rail) && parentIn(host, rail) {
			inLower = enter(host)
		}
		return rdma.ForLink(rail, inLower)
	}
}

// parentIn reports whether a link's parent is in the namespace host, and not in the
// calling thread's.
func parentIn(host ns.NetNS, l *netstate.Link) bool {
	if l.Parent == 0 {
		return false
	}
	k, err := kernel.Open()
	if err != nil {
		return false
	}
	defer k.Close()
	id, err := k.NSID(int(host.Fd()))
	return err == nil && id == l.ParentNSID
}

// enter returns a function that runs another on a thread in a namespace.
func enter(where ns.NetNS) func(func() error) error {
	return func(f func() error) error {
		return where.Do(func(ns.NetNS) error { return f() })
	}
}
