package rdma

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
)

// From include/uapi/rdma/rdma_netlink.h: the part of RDMA that is asked (enum
// RDMA_NL_NLDEV, RDMA_NL_GET_TYPE), its commands (enum rdma_nldev_command) and
// attributes (enum rdma_nldev_attr).
const (
	nldev       = 5 // RDMA_NL_NLDEV
	clientShift = 10

	cmdGet     = 1 // RDMA_NLDEV_CMD_GET
	cmdPortGet = 5 // RDMA_NLDEV_CMD_PORT_GET
	cmdSysGet  = 6 // RDMA_NLDEV_CMD_SYS_GET

	attrDevIndex    = 1  // RDMA_NLDEV_ATTR_DEV_INDEX
	attrDevName     = 2  // RDMA_NLDEV_ATTR_DEV_NAME
	attrPortIndex   = 3  // RDMA_NLDEV_ATTR_PORT_INDEX
	attrPortState   = 12 // RDMA_NLDEV_ATTR_PORT_STATE
	attrNDevIndex   = 50 // RDMA_NLDEV_ATTR_NDEV_INDEX
	attrNDevName    = 51 // RDMA_NLDEV_ATTR_NDEV_NAME
	attrNetNSMode   = 66 // RDMA_NLDEV_SYS_ATTR_NETNS_MODE: 0 exclusive, 1 shared
	attrDevProtocol = 67 // RDMA_NLDEV_ATTR_DEV_PROTOCOL
)

// socket is a netlink socket to RDMA. It belongs to one namespace.
type socket struct {
	*nl.Socket
}

// device is what a port request needs.
type device struct {
	index    uint32
	name     string
	protocol string
}

func openSocket() (socket, error) {
	s, err := nl.Open(unix.NETLINK_RDMA)
	if err != nil {
		return socket{}, fmt.Errorf("RDMA: %w", err)
	}
	return socket{s}, nil
}

func (s socket) close() {
	if s.Socket != nil { // the zero value has none
		s.Close()
	}
}

// request returns a request to NLDEV, whose messages have no header of their own.
func request(command uint16) nl.Message { return nl.NewMessage(nldev<<clientShift|command, nil) }

// ask sends a request and calls f with the attributes of each answer.
func (s socket) ask(m nl.Message, flags uint16, f func(attrs []byte) error) error {
	return s.Do(m, flags, func(_ uint16, attrs []byte) error {
		if err := f(attrs); err != nil {
			return fmt.Errorf("an answer from RDMA netlink: %w", err)
		}
		return nil
	})
}

func (s socket) devices() (out []device, err error) {
	err = nl.Dump("RDMA devices", func() error {
		out = nil
		return s.ask(request(cmdGet), unix.NLM_F_DUMP, func(attrs []byte) error {
			d, err := parseDevice(attrs)
			out = append(out, d)
			return err
		})
	})
	return out, err
}

func parseDevice(attrs []byte) (d device, err error) {
	err = nl.EachAttr(attrs, func(kind uint16, v []byte) {
		switch kind {
		case attrDevIndex:
			d.index = number(v)
		case attrDevName:
			d.name = unix.ByteSliceToString(v)
		case attrDevProtocol:
			d.protocol = unix.ByteSliceToString(v)
		}
	})
	return d, err
}

// ports lists the ports of a device; the error is EINVAL where that is gone.
func (s socket) ports(d device) (out []Port, err error) {
	m := request(cmdPortGet)
	m.Uint32(attrDevIndex, d.index)
	err = nl.Dump("ports of RDMA device "+d.name, func() error {
		out = nil
		return s.ask(m, unix.NLM_F_DUMP, func(attrs []byte) error {
			p, err := parsePort(attrs)
			p.Device, p.Protocol = d.name, d.protocol
			out = append(out, p)
			return err
		})
	})
	return out, err
}

// parsePort reads what the kernel says of a port (drivers/infiniband/core/nldev.c,
// fill_port_info); the device's name is among it, its protocol is not.
func parsePort(attrs []byte) (p Port, err error) {
	err = nl.EachAttr(attrs, func(kind uint16, v []byte) {
		switch kind {
		case attrPortIndex:
			p.Number = int(number(v))
		case attrPortState:
			p.State = stateName(number(v))
		case attrNDevIndex:
			p.IfIndex = int(number(v))
		case attrNDevName:
			p.NetDev = unix.ByteSliceToString(v)
		}
	})
	return p, err
}

// mode asks for one message, which is the whole answer: the kernel acknowledges no
// request that did not ask for it, but for errors (drivers/infiniband/core/nldev.c,
// nldev_sys_get_doit, and netlink.c, rdma_nl_rcv_skb).
func (s socket) mode() (mode string, err error) {
	err = s.ask(request(cmdSysGet), 0, func(attrs []byte) (err error) {
		mode, err = parseMode(attrs)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("RDMA's network namespace mode: %w", err)
	}
	return mode, nil
}

func parseMode(attrs []byte) (mode string, err error) {
	err = nl.EachAttr(attrs, func(kind uint16, v []byte) {
		switch {
		case kind != attrNetNSMode:
		case number(v) == 0:
			mode = "exclusive"
		default:
			mode = "shared"
		}
	})
	return mode, err
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
		return nl.Uint32(b)
	}
	return 0
}
