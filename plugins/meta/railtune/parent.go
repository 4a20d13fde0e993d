package main

import (
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
)

// parentFinder returns a function that finds an ipvlan rail's parent in the
// namespace host, where the interface plugin took it from. It must be called on a
// thread in the rail's namespace, and so must the function.
func parentFinder(host ns.NetNS) func(*netstate.Link) *neigh.Parent {
	return func(rail *netstate.Link) *neigh.Parent {
		id, err := netlink.GetNetNsIdByFd(int(host.Fd()))
		if rail.Kind != "ipvlan" || rail.Parent == 0 || err != nil || id != rail.ParentNSID {
			return nil
		}
		var parent *neigh.Parent
		_ = host.Do(func(ns.NetNS) error {
			k, err := kernel.Open()
			if err != nil {
				return err
			}
			defer k.Close()
			links, err := k.Links()
			for i := range links {
				if links[i].Index == rail.Parent {
					parent = &neigh.Parent{Link: attach.NeighLink(&links[i]), Enter: func(open func() error) error {
						return host.Do(func(ns.NetNS) error { return open() })
					}}
				}
			}
			return err
		})
		return parent
	}
}
