package rdma

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
)

// What the netlink library does not have of include/uapi/rdma/rdma_netlink.h.
const (
	nldevPortGet      = 5  // RDMA_NLDEV_CMD_PORT_GET
	nldevNDevIndex    = 50 // RDMA_NLDEV_ATTR_NDEV_INDEX
	nldevDevProtocol  = 67 // RDMA_NLDEV_ATTR_DEV_PROTOCOL
	modeExclusiveByte = 0  // RDMA_NLDEV_SYS_ATTR_NETNS_MODE: 0 exclusive, 1 shared
)

// socket is a netlink socket to RDMA. It belongs to one namespace.
type socket struct {
	fd  *nl.NetlinkSocket
	all map[int]*nl.SocketHandle
}

// device is what a port request needs.
type device struct {
	index    uint32
	name     string
	protocol string
}

func openSocket() (socket, error) {
	fd, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_RDMA)
	if err != nil {
		return socket{}, fmt.Errorf("netlink socket for RDMA: %w", err)
	}
	return socket{fd: fd, all: map[int]*nl.SocketHandle{unix.NETLINK_RDMA: {Socket: fd}}}, nil
}

func (s socket) close() {
	if s.fd != nil {
		s.fd.Close()
	}
}

// ask sends a command and calls f with the attributes of each answer.
func (s socket) ask(cmd, flags int, attrs []nl.NetlinkRequestData, f func([]syscall.NetlinkRouteAttr)) error {
	req := nl.NewNetlinkRequest(nl.RDMA_NL_NLDEV<<nl.RDMA_NL_GET_CLIENT_SHIFT|cmd, flags)
	req.Sockets = s.all
	for _, a := range attrs {
		req.AddData(a)
	}
	answers, err := req.Execute(unix.NETLINK_RDMA, 0)
	for _, m := range answers {
		got, parseErr := nl.ParseRouteAttr(m)
		if parseErr != nil {
			return errors.Join(err, fmt.Errorf("an answer from RDMA netlink: %w", parseErr))
		}
		f(got)
	}
	return err
}

func (s socket) devices() (out []device, err error) {
	err = kernel.Dump("RDMA devices", func() error {
		out = nil
		return s.ask(nl.RDMA_NLDEV_CMD_GET, unix.NLM_F_DUMP, nil, func(attrs []syscall.NetlinkRouteAttr) {
			var d device
			for _, a := range attrs {
				switch a.Attr.Type {
				case nl.RDMA_NLDEV_ATTR_DEV_INDEX:
					d.index = number(a.Value)
				case nl.RDMA_NLDEV_ATTR_DEV_NAME:
					d.name = unix.ByteSliceToString(a.Value)
				case nldevDevProtocol:
					d.protocol = unix.ByteSliceToString(a.Value)
				}
			}
			out = append(out, d)
		})
	})
	return out, err
}

func (s socket) ports(d device) (out []Port, err error) {
	which := []nl.NetlinkRequestData{nl.NewRtAttr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, nl.Uint32Attr(d.index))}
	err = kernel.Dump("ports of RDMA device "+d.name, func() error {
		out = nil
		return s.ask(nldevPortGet, unix.NLM_F_DUMP, which, func(attrs []syscall.NetlinkRouteAttr) {
			p := Port{Device: d.name, Protocol: d.protocol}
			for _, a := range attrs {
				switch a.Attr.Type {
				case nl.RDMA_NLDEV_ATTR_PORT_INDEX:
					p.Number = int(number(a.Value))
				case nl.RDMA_NLDEV_ATTR_PORT_STATE:
					p.State = stateName(number(a.Value))
				case nldevNDevIndex:
					p.IfIndex = int(number(a.Value))
				case nl.RDMA_NLDEV_ATTR_NDEV_NAME:
					p.NetDev = unix.ByteSliceToString(a.Value)
				}
			}
			out = append(out, p)
		})
	})
	return out, err
}

func (s socket) mode() (mode string, err error) {
	err = s.ask(nl.RDMA_NLDEV_CMD_SYS_GET, 0, nil, func(attrs []syscall.NetlinkRouteAttr) {
		for _, a := range attrs {
			if a.Attr.Type != nl.RDMA_NLDEV_SYS_ATTR_NETNS_MODE {
				continue
			}
			if mode = "shared"; number(a.Value) == modeExclusiveByte {
				mode = "exclusive"
			}
		}
	})
	if err != nil {
		return "", fmt.Errorf("RDMA's network namespace mode: %w", err)
	}
	return mode, nil
}

// stateName names an enum ib_port_state as sysfs does (include/rdma/ib_verbs.h,
// drivers/infiniband/core/sysfs.c, state_show).
func stateName(state uint32) string {
	switch state {
	case 0:
		return "NOP"
	case 1:
		return "DOWN"
	case 2:
		return "INIT"
	case 3:
		return "ARMED"
	case 4:
		return "ACTIVE"
	case 5:
		return "ACTIVE_DEFER"
	}
	return fmt.Sprintf("state %d", state)
}

// number reads a u8 or u32 attribute; any other length reads as 0.
func number(b []byte) uint32 {
	switch len(b) {
	case 1:
		return uint32(b[0])
	case 4:
		return nl.NativeEndian().Uint32(b)
	}
	return 0
}
