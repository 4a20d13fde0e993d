package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// eth0Gateway is the address through which Calico-like cluster networks lead
// every pod out; it is on no link, the host end answers for it.
var eth0Gateway = netip.MustParseAddr("169.254.1.1")

// addEth0 gives pod i 172.20.0.(5+i)/32 and a default route, and its node the
// other end.
func (p *Pod) addEth0(i int) error {
	const hostEnd = "cali0"
	err := p.Node.Do(func() error { return addCable(hostEnd, "", "eth0", p.Namespace) })
	if err != nil {
		return err
	}
	if err := p.Node.SetSysctl("ipv4/conf/"+hostEnd+"/proxy_arp", "1"); err != nil {
		return err
	}
	return p.Do(func() error {
		addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 20, 0, byte(5 + i)}), 32)
		if err := errors.Join(address("eth0", addr), setUp("eth0")); err != nil {
			return err
		}
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		gw := net.IP(eth0Gateway.AsSlice())
		for _, route := range []netlink.Route{
			{Dst: &net.IPNet{IP: gw, Mask: net.CIDRMask(32, 32)}, Scope: netlink.SCOPE_LINK},
			{Gw: gw},
		} {
			route.LinkIndex = link.Attrs().Index
			if err := netlink.RouteAdd(&route); err != nil {
				return fmt.Errorf("route %s: %w", route, err)
			}
		}
		return nil
	})
}

// skipDAD lets IPv6 link-local addresses be final at once on links that arrive
// later. Else they, and their routes, change a second or two after the fabric is
// there, in the middle of what a test compares. Tests of DAD switch it on.
func (n *Namespace) skipDAD() error {
	err := n.SetSysctl("ipv6/conf/default/accept_dad", "0")
	if errors.Is(err, os.ErrNotExist) {
		return nil // a kernel without IPv6
	}
	return err
}

// addressRails puts the planned addresses on rails that are in the pod already,
// and sets them up unless they are to stay down.
func (p *Pod) addressRails(down bool) error {
	for _, r := range p.Rails {
		if err := address(r.Name, r.Addr); err != nil {
			return err
		}
		if down {
			continue
		}
		if err := setUp(r.Name); err != nil {
			return err
		}
	}
	return nil
}

// ForgetNeighbours empties the pod's neighbour tables, so that the next
// measurement starts cold.
func (p *Pod) ForgetNeighbours(ctx context.Context) error {
	_, err := p.Run(ctx, "ip", "neigh", "flush", "all")
	return err
}

// Prefixed names one of the pod's rails in a report: A.net3.
func (p *Pod) Prefixed(r Rail) string { return p.Role + "." + r.Name }
