package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/nl"
)

// Links returns all links of the namespace with their addresses, by index.
func (k *Netlink) Links() ([]netstate.Link, error) {
	var links []netstate.Link
	err := nl.Dump("links", func() error {
		links = links[:0]
		m := nl.NewMessage(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg))
		m.Uint32(unix.IFLA_EXT_MASK, skipStats)
		return k.dump(m, unix.RTM_NEWLINK, func(m []byte) error {
			l, err := parseLink(m)
			links = append(links, l)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	addrs, err := k.addrs()
	if err != nil {
		return nil, err
	}
	for i := range links {
		links[i].Addrs = addrs[links[i].Index]
	}
	return links, nil
}

// Link returns one link of the namespace, without its addresses. The error is ENODEV where
// there is none with this index.
func (k *Netlink) Link(index int) (l netstate.Link, err error) {
	header := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(header[4:], uint32(index))
	m := nl.NewMessage(unix.RTM_GETLINK, header)
	m.Uint32(unix.IFLA_EXT_MASK, skipStats)
	err = k.socket.Do(m, 0, func(kind uint16, body []byte) (err error) {
		if kind == unix.RTM_NEWLINK {
			l, err = parseLink(body)
		}
		return err
	})
	if err != nil {
		return netstate.Link{}, fmt.Errorf("reading the link with ifindex %d: %w", index, err)
	}
	return l, nil
}

// skipStats is RTEXT_FILTER_SKIP_STATS (include/uapi/linux/rtnetlink.h, since Linux
// 4.4): without it most of an answer is counters.
const skipStats = 1 << 3

// carrier is what a link that can send has. IFF_LOWER_UP alone comes before the queue is
// there (net/core/link_watch.c), and what is sent then vanishes without an error.
const carrier = unix.IFF_LOWER_UP | unix.IFF_RUNNING

// parseLink decodes an RTM_NEWLINK message (include/uapi/linux/if_link.h).
func parseLink(m []byte) (netstate.Link, error) {
	if len(m) < unix.SizeofIfInfomsg {
		return netstate.Link{}, nl.ErrShort
	}
	// struct ifinfomsg: family, padding, hardware type (u16), index, flags, change (u32 each).
	flags := nl.Uint32(m[8:])
	l := netstate.Link{
		Index: int(nl.Uint32(m[4:])), ARPHRD: arphrd(binary.NativeEndian.Uint16(m[2:])),
		Up: flags&unix.IFF_UP != 0, Carrier: flags&carrier == carrier,
		NoARP: flags&unix.IFF_NOARP != 0, Loopback: flags&unix.IFF_LOOPBACK != 0,
		ParentNSID: -1,
	}
	err := nl.EachAttr(m[unix.SizeofIfInfomsg:], func(kind uint16, v []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.Name = unix.ByteSliceToString(v)
		case unix.IFLA_ADDRESS:
			if !allZero(v) {
				l.MAC = slices.Clone(v)
			}
		case unix.IFLA_MTU:
			l.MTU = int(nl.Uint32(v))
		case unix.IFLA_LINK:
			l.Parent = int(nl.Uint32(v))
		case unix.IFLA_LINK_NETNSID:
			l.ParentNSID = int(int32(nl.Uint32(v)))
		case unix.IFLA_MASTER:
			l.Master = int(nl.Uint32(v))
		case unix.IFLA_LINKINFO:
			l.Kind, l.VRFTable = parseLinkInfo(v)
		}
	})
	return l, err
}

// parseLinkInfo returns a link's kind, and the table of the VRF it belongs to: what a
// master says of its members stands with each of them (drivers/net/vrf.c,
// vrf_fill_slave_info).
func parseLinkInfo(b []byte) (kind string, vrfTable uint32) {
	master, said := "", []byte(nil)
	_ = nl.EachAttr(b, func(attr uint16, v []byte) {
		switch attr {
		case unix.IFLA_INFO_KIND:
			kind = unix.ByteSliceToString(v)
		case unix.IFLA_INFO_SLAVE_KIND:
			master = unix.ByteSliceToString(v)
		case unix.IFLA_INFO_SLAVE_DATA:
			said = v
		}
	})
	if master == "vrf" {
		_ = nl.EachAttr(said, func(attr uint16, v []byte) {
			if attr == unix.IFLA_VRF_PORT_TABLE {
				vrfTable = nl.Uint32(v)
			}
		})
	}
	return kind, vrfTable
}

func allZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// arphrd keeps the hardware types a rail can have; any other is ARPHRD_VOID.
func arphrd(kind uint16) uint16 {
	switch kind {
	case unix.ARPHRD_ETHER, unix.ARPHRD_INFINIBAND, unix.ARPHRD_LOOPBACK, unix.ARPHRD_NONE:
		return kind
	}
	return unix.ARPHRD_VOID
}

// addrs returns all addresses by link index, in the kernel's order.
func (k *Netlink) addrs() (map[int][]netstate.Addr, error) {
	var out map[int][]netstate.Addr
	err := nl.Dump("addresses", func() error {
		out = map[int][]netstate.Addr{}
		return k.eachAddr(unix.AF_UNSPEC, 0, func(a foundAddr) { out[a.ifindex] = append(out[a.ifindex], a.Addr) })
	})
	return out, err
}

// IPv6Flags returns the flags (unix.IFA_F_…) of each IPv6 address of a link; none where
// there is no such link.
func (k *Netlink) IPv6Flags(ifindex int) (map[netip.Addr]uint32, error) {
	var out map[netip.Addr]uint32
	err := nl.Dump("IPv6 addresses", func() error {
		out = map[netip.Addr]uint32{}
		err := k.eachAddr(unix.AF_INET6, ifindex, func(a foundAddr) {
			// A kernel without IPv6 lists IPv4, one before Linux 4.20 that of every link.
			if addr := a.Prefix.Addr(); addr.Is6() && a.ifindex == ifindex {
				out[addr] = a.flags
			}
		})
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		return err
	})
	return out, err
}

// eachAddr calls f for the addresses of a link, or of all for 0, as far as the kernel filters.
func (k *Netlink) eachAddr(family uint8, ifindex int, f func(foundAddr)) error {
	header := make([]byte, unix.SizeofIfAddrmsg)
	header[0] = family
	binary.NativeEndian.PutUint32(header[4:], uint32(ifindex))
	return k.dump(nl.NewMessage(unix.RTM_GETADDR, header), unix.RTM_NEWADDR, func(m []byte) error {
		a, err := parseAddr(m)
		if err == nil && a.Prefix.IsValid() {
			f(a)
		}
		return err
	})
}

// foundAddr is an address as the kernel has it.
type foundAddr struct {
	netstate.Addr
	ifindex int
	flags   uint32
}

// IFA_PROTO and its value for addresses made from router advertisements, since
// Linux 5.18 (include/uapi/linux/if_addr.h); not in x/sys/unix.
const (
	ifaProto         = 11
	ifaProtoKernelRA = 2
)

// parseAddr decodes an RTM_NEWADDR message (include/uapi/linux/if_addr.h).
func parseAddr(m []byte) (foundAddr, error) {
	if len(m) < unix.SizeofIfAddrmsg {
		return foundAddr{}, nl.ErrShort
	}
	// struct ifaddrmsg: family, prefix length, flags, scope (u8 each), index (u32).
	var local, address netip.Addr
	flags, proto := uint32(m[2]), uint8(0)
	err := nl.EachAttr(m[unix.SizeofIfAddrmsg:], func(kind uint16, v []byte) {
		switch kind {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(v)
		case unix.IFA_ADDRESS:
			address, _ = netip.AddrFromSlice(v)
		case unix.IFA_FLAGS:
			flags = nl.Uint32(v)
		case ifaProto:
			if len(v) > 0 {
				proto = v[0]
			}
		}
	})
	bits := int(m[1])
	a := foundAddr{ifindex: int(nl.Uint32(m[4:])), flags: flags, Addr: netstate.Addr{
		Tentative: flags&unix.IFA_F_TENTATIVE != 0 && flags&unix.IFA_F_OPTIMISTIC == 0,
		DADFailed: flags&unix.IFA_F_DADFAILED != 0,
		FromRA: address.Is6() && (proto == ifaProtoKernelRA ||
			proto == 0 && flags&(unix.IFA_F_MANAGETEMPADDR|unix.IFA_F_TEMPORARY) != 0),
	}}
	// With a peer, IFA_ADDRESS is the peer's and the length is the peer prefix's.
	switch {
	case !local.IsValid() || local == address:
		a.Prefix = netip.PrefixFrom(address, bits)
	default:
		a.Prefix = netip.PrefixFrom(local, local.BitLen())
		a.Peer = netip.PrefixFrom(address, bits)
	}
	return a, err
}
