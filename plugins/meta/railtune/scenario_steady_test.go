package main_test

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

// The kernel finishes an IPv6 address some time after it was asked to (net/ipv6/
// addrconf.c, addrconf_dad_work), with or without duplicate address detection. A
// snapshot before that differs from one after it, whoever did what in between.

// steady waits until a link has its link-local address, and each of addrs, in table
// local. Where IPv6 is off there is nothing to wait for.
func steady(n *testbed.Namespace, ifname string, addrs ...netip.Addr) error {
	if off, err := n.Sysctl("ipv6/conf/" + ifname + "/disable_ipv6"); err != nil || off == "1" {
		return nil
	}
	if err := n.Do(func() error { return awaitLocal(ifname, addrs) }); err != nil {
		return fmt.Errorf("%s of %s: %w", ifname, n.Name, err)
	}
	return nil
}

func awaitLocal(ifname string, addrs []netip.Addr) error {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return err
	}
	routes, done := make(chan netlink.RouteUpdate, 64), make(chan struct{})
	defer close(done)
	if err := netlink.RouteSubscribeWithOptions(routes, done, netlink.RouteSubscribeOptions{ListExisting: true}); err != nil {
		return err
	}
	seen, linkLocal := map[netip.Addr]bool{}, false
	late := time.After(10 * time.Second)
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
			linkLocal = linkLocal || addr.IsLinkLocalUnicast() && addr.Is6()
		case <-late:
			return fmt.Errorf("its IPv6 addresses %v are not there after 10s (found %v)", addrs, seen)
		}
		if linkLocal && hasAll(seen, addrs) {
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

// gateways makes a station for each gateway of a rail: an address of the wire's
// bridge that the rail is on. It is what answers where a switch would.
func (b *bed) gateways(l link) error {
	for gw, bits := range l.gateways {
		args := []string{"addr", "replace", fmt.Sprintf("%s/%d", gw, bits), "dev", l.bridge}
		if gw.Is6() {
			args = append(args, "nodad")
		}
		if err := b.ip(b.wire, args...); err != nil {
			return err
		}
		if gw.Is6() {
			if err := steady(b.wire, l.bridge, gw); err != nil {
				return err
			}
		}
	}
	return nil
}

// gatewayOf notes a gateway and the length of the prefix it is in.
func (l *link) gatewayOf(address, gateway string) {
	prefix, err := netip.ParsePrefix(address)
	gw, err2 := netip.ParseAddr(gateway)
	if err != nil || err2 != nil || l.bridge == "none" || prefix.Addr() == gw {
		return
	}
	bits := gw.BitLen()
	if prefix.Contains(gw) {
		bits = prefix.Bits()
	}
	if l.gateways == nil {
		l.gateways = map[netip.Addr]int{}
	}
	l.gateways[gw] = bits
}

func addrOfText(text string) (netip.Addr, bool) {
	text, _, _ = strings.Cut(text, "/")
	a, err := netip.ParseAddr(text)
	return a, err == nil
}
