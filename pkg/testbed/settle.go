package testbed

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
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
	updates := make(chan netlink.LinkUpdate)
	done := make(chan struct{})
	defer func() {
		close(done)
		for range updates { // until the subscription has ended
		}
	}()
	broken := make(chan error, 1)
	// Subscribing comes first: what is up before the list is read is in the
	// list, and what comes up later is an update.
	err := n.Do(func() error {
		return netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{
			ErrorCallback: func(err error) {
				select {
				case broken <- err:
				default:
				}
			},
		})
	})
	if err != nil {
		close(updates)
		return err
	}
	waiting := map[int]string{}
	if err := n.Do(func() error {
		links, err := netlink.LinkList()
		for _, l := range slices.DeleteFunc(links, settled) {
			waiting[l.Attrs().Index] = l.Attrs().Name
		}
		return err
	}); err != nil {
		return err
	}
	limit := time.After(longest)
	for len(waiting) > 0 {
		select {
		case u := <-updates:
			if settled(u.Link) {
				delete(waiting, u.Attrs().Index)
			}
		case err := <-broken:
			return err
		case <-limit:
			return fmt.Errorf("still down after %s: %v", longest, waiting)
		}
	}
	return nil
}

// settled tells links that are not on their way up. lo never says that it is
// operational.
func settled(l netlink.Link) bool {
	a := l.Attrs()
	return a.Flags&(net.FlagUp|net.FlagLoopback) != net.FlagUp || a.OperState == netlink.OperUp
}
