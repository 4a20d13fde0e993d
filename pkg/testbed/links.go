package testbed

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// addBridge makes a bridge in the calling namespace, up.
func addBridge(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	return setUp(name)
}

// addCable makes a veth pair: near in the calling namespace, up, in bridge if that
// is not empty, and far in the namespace end, down.
func addCable(near, bridge, far string, end *Namespace) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = near
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: far, PeerNamespace: netlink.NsFd(int(end.netns.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("veth %s–%s: %w", near, far, err)
	}
	if bridge != "" {
		if err := enslave(near, bridge); err != nil {
			return err
		}
	}
	return setUp(near)
}

// enslave makes a link a port of a bridge.
func enslave(name, bridge string) error {
	master, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("%s: %w", bridge, err)
	}
	return change(name, "into "+bridge, func(l netlink.Link) error { return netlink.LinkSetMaster(l, master) })
}

func setUp(name string) error {
	return change(name, "up", netlink.LinkSetUp)
}

// address gives a link an address.
func address(name string, addr netip.Prefix) error {
	bits := addr.Addr().BitLen()
	ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), bits)}
	return change(name, "address "+addr.String(), func(l netlink.Link) error {
		return netlink.AddrAdd(l, &netlink.Addr{IPNet: ip})
	})
}

func change(name, what string, how func(netlink.Link) error) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = how(link)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, what, err)
	}
	return nil
}
