package testbed

import (
	"fmt"
	"net/netip"

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
	local := &netlink.Route{Table: unix.RT_TABLE_LOCAL, LinkIndex: link.Attrs().Index}
	var seen map[netip.Addr]bool
	inTime, err := await(settleTime, func() (bool, error) {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, local, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
		seen = map[netip.Addr]bool{}
		missing := linkLocal
		for _, r := range routes {
			if r.Dst == nil {
				continue
			}
			addr, _ := netip.AddrFromSlice(r.Dst.IP)
			seen[addr] = true
			missing = missing && !(addr.IsLinkLocalUnicast() && addr.Is6())
		}
		return !missing && hasAll(seen, addrs), err
	}, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err == nil && !inTime {
		err = fmt.Errorf("its IPv6 addresses %v are not there after %v (found %v)", addrs, settleTime, seen)
	}
	return err
}

func hasAll(seen map[netip.Addr]bool, addrs []netip.Addr) bool {
	for _, a := range addrs {
		if !seen[a] {
			return false
		}
	}
	return true
}
