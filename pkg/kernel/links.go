package kernel

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/netstate"
)

// Links returns all links of the namespace with their addresses, by index.
func (k *Netlink) Links() ([]netstate.Link, error) {
	var links []netlink.Link
	err := Dump("links", func() (err error) {
		links, err = k.handle.LinkList()
		return err
	})
	if err != nil {
		return nil, err
	}
	addrs, err := k.addrs()
	if err != nil {
		return nil, err
	}
	out := make([]netstate.Link, 0, len(links))
	for _, l := range links {
		out = append(out, toLink(l, addrs[l.Attrs().Index]))
	}
	return out, nil
}

// carrier is what a link that can send has. IFF_LOWER_UP alone comes before the queue is
// there (net/core/link_watch.c), and what is sent then vanishes without an error.
const carrier = unix.IFF_LOWER_UP | unix.IFF_RUNNING

func toLink(l netlink.Link, addrs []netstate.Addr) netstate.Link {
	a := l.Attrs()
	kind := l.Type()
	if _, hardware := l.(*netlink.Device); hardware {
		kind = ""
	}
	return netstate.Link{
		Index: a.Index, Name: a.Name, Kind: kind, MAC: a.HardwareAddr, MTU: a.MTU, ARPHRD: arphrd(a.EncapType),
		Up: a.Flags&net.FlagUp != 0, Carrier: a.RawFlags&carrier == carrier,
		NoARP: a.RawFlags&unix.IFF_NOARP != 0, Loopback: a.Flags&net.FlagLoopback != 0,
		Parent: a.ParentIndex, ParentNSID: a.NetNsID, Master: a.MasterIndex, Addrs: addrs,
	}
}

// arphrd turns the library's name for a hardware type back into its number, for the
// types a rail can have; any other is 0xFFFF (ARPHRD_VOID).
func arphrd(name string) uint16 {
	switch name {
	case "ether":
		return unix.ARPHRD_ETHER
	case "infiniband":
		return unix.ARPHRD_INFINIBAND
	case "loopback":
		return unix.ARPHRD_LOOPBACK
	case "none":
		return unix.ARPHRD_NONE
	}
	return unix.ARPHRD_VOID
}

// addrs returns all addresses by link index, in the kernel's order.
func (k *Netlink) addrs() (map[int][]netstate.Addr, error) {
	var out map[int][]netstate.Addr
	err := Dump("addresses", func() error {
		out = map[int][]netstate.Addr{}
		header := &nl.IfAddrmsg{IfAddrmsg: unix.IfAddrmsg{Family: unix.AF_UNSPEC}}
		return k.iterate(unix.RTM_GETADDR, unix.RTM_NEWADDR, header, func(m []byte) error {
			a, index, err := parseAddr(m)
			if err == nil && a.Prefix.IsValid() {
				out[index] = append(out[index], a)
			}
			return err
		})
	})
	return out, err
}

// IFA_PROTO and its value for addresses made from router advertisements, since
// Linux 5.18 (include/uapi/linux/if_addr.h); not in x/sys/unix.
const (
	ifaProto         = 11
	ifaProtoKernelRA = 2
)

// parseAddr decodes an RTM_NEWADDR message (include/uapi/linux/if_addr.h).
func parseAddr(m []byte) (netstate.Addr, int, error) {
	if len(m) < unix.SizeofIfAddrmsg {
		return netstate.Addr{}, 0, errShort
	}
	h := nl.DeserializeIfAddrmsg(m)
	var local, address netip.Addr
	flags, proto := uint32(h.Flags), uint8(0)
	err := eachAttr(m[unix.SizeofIfAddrmsg:], func(kind uint16, v []byte) {
		switch kind {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(v)
		case unix.IFA_ADDRESS:
			address, _ = netip.AddrFromSlice(v)
		case unix.IFA_FLAGS:
			flags = nativeUint32(v)
		case ifaProto:
			if len(v) > 0 {
				proto = v[0]
			}
		}
	})
	bits := int(h.Prefixlen)
	a := netstate.Addr{
		Tentative: flags&unix.IFA_F_TENTATIVE != 0 && flags&unix.IFA_F_OPTIMISTIC == 0,
		DADFailed: flags&unix.IFA_F_DADFAILED != 0,
		FromRA: address.Is6() && (proto == ifaProtoKernelRA ||
			proto == 0 && flags&(unix.IFA_F_MANAGETEMPADDR|unix.IFA_F_TEMPORARY) != 0),
	}
	// With a peer, IFA_ADDRESS is the peer's and the length is the peer prefix's.
	switch {
	case !local.IsValid() || local == address:
		a.Prefix = netip.PrefixFrom(address, bits)
	default:
		a.Prefix = netip.PrefixFrom(local, local.BitLen())
		a.Peer = netip.PrefixFrom(address, bits)
	}
	return a, int(h.Index), err
}
