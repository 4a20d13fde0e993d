package testbed

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// settleTime bounds the wait for links; it is long past what a loaded machine
// needs, and only a fabric that is broken reaches it.
const settleTime = 30 * time.Second

// settle is Settle for the whole fabric, and SettleAddresses for the interfaces of its pods.
func (f *Fabric) settle() error {
	spaces := []*Namespace{f.Switches}
	for _, p := range f.Pods {
		spaces = append(spaces, p.Node, p.Namespace)
	}
	for _, n := range spaces {
		if err := n.Settle(); err != nil {
			return fmt.Errorf("waiting for the links of %s: %w", n.Name, err)
		}
	}
	for _, p := range f.Pods {
		names := []string{"eth0"}
		for _, r := range p.Rails {
			if f.Direct {
				names = append(names, r.Name)
			}
		}
		for _, name := range names {
			if err := p.SettleAddresses(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Settle waits until every link that is set up is operational. The kernel makes
// it so from a work queue, after the carrier is there (net/core/link_watch.c).
// Before that a bridge port does not forward, and the first packets are lost.
func (n *Namespace) Settle() error { return n.settle(settleTime) }

func (n *Namespace) settle(longest time.Duration) error {
	var waiting []netlink.Link
	look := func() (bool, error) {
		links, err := netlink.LinkList()
		waiting = slices.DeleteFunc(links, settled)
		return len(waiting) == 0, err
	}
	inTime := false
	err := n.Do(func() (err error) {
		inTime, err = await(longest, look, unix.RTNLGRP_LINK)
		return err
	})
	if err == nil && !inTime {
		err = fmt.Errorf("still down after %s: %v", longest, namesOf(waiting))
	}
	return err
}

func namesOf(links []netlink.Link) (out []string) {
	for _, l := range links {
		out = append(out, l.Attrs().Name)
	}
	return out
}

// settled tells links that are not on their way up. lo never says that it is
// operational.
func settled(l netlink.Link) bool {
	a := l.Attrs()
	return a.Flags&(net.FlagUp|net.FlagLoopback) != net.FlagUp || a.OperState == netlink.OperUp
}
