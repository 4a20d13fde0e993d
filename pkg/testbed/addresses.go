package testbed

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// SettleAddresses waits until a link has its link-local address, and each of addrs, in
// table local. The kernel finishes an IPv6 address some time after it was asked to
// (net/ipv6/addrconf.c, addrconf_dad_work), with or without duplicate address
// detection, and a snapshot before that differs from one after it, whoever did what in
// between. Where IPv6 is off there is nothing to wait for.
func (n *Namespace) SettleAddresses(ifname string, addrs ...netip.Addr) error {
	if off, err := n.Sysctl("ipv6/conf/" + ifname + "/disable_ipv6"); err != nil || off == "1" {
		return nil
	}
	mode, err := n.Sysctl("ipv6/conf/" + ifname + "/addr_gen_mode")
	if err != nil {
		return err
	}
	const none = "1" // IN6_ADDR_GEN_MODE_NONE: no link-local address comes
	if err := n.Do(func() error { return awaitLocal(ifname, mode != none, addrs) }); err != nil {
		return fmt.Errorf("%s of %s: %w", ifname, n.Name, err)
	}
	return nil
}

func awaitLocal(ifname string, linkLocal bool, addrs []netip.Addr) error {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return err
	}
	routes, done := make(chan netlink.RouteUpdate, 64), make(chan struct{})
	defer close(done)
	if err := netlink.RouteSubscribeWithOptions(routes, done, netlink.RouteSubscribeOptions{ListExisting: true}); err != nil {
		return err
	}
	seen := map[netip.Addr]bool{}
	late := time.After(settleTime)
	for {
		select {
		case r, ok := <-routes:
			if !ok {
				return fmt.Errorf("no more news of routes")
			}
			if r.Type != unix.RTM_NEWROUTE || r.Table != unix.RT_TABLE_LOCAL || r.LinkIndex != link.Attrs().Index || r.Dst == nil {
				continue
			}
			addr, _ := netip.AddrFromSlice(r.Dst.IP)
			seen[addr] = true
			linkLocal = linkLocal && !(addr.IsLinkLocalUnicast() && addr.Is6())
		case <-late:
			return fmt.Errorf("its IPv6 addresses %v are not there after %v (found %v)", addrs, settleTime, seen)
		}
		if !linkLocal && hasAll(seen, addrs) {
			return nil
		}
	}
}

func hasAll(seen map[netip.Addr]bool, addrs []netip.Addr) bool {
	for _, a := range addrs {
		if !seen[a] {
			return false
		}
	}
	return true
}
