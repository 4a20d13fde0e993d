// Package kernel reads and writes links, addresses, rules and routes of one network
// namespace over netlink, in railtune's own value types.
//
// It adds to github.com/vishvananda/netlink what railtune cannot do without: strict
// dumps, which the kernel filters, so that their cost does not grow with other
// people's routes; dumps that are repeated when the kernel reports them interrupted;
// the action of a rule and the origin of an address, which the library leaves out.
package kernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// Netlink is a pair of netlink sockets in one network namespace. It is not safe for
// concurrent use.
type Netlink struct {
	handle *netlink.Handle
	socket *nl.NetlinkSocket
	raw    map[int]*nl.SocketHandle
}

// explain makes the library put the kernel's own words (NLMSGERR_ATTR_MSG) into errors.
var explain = sync.OnceFunc(func() { nl.EnableErrorMessageReporting = true })

// Open returns sockets in the namespace of the calling thread, which must be locked
// until Open returns. They stay in that namespace whatever the thread does later.
func Open() (*Netlink, error) {
	explain()
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	socket, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	k := &Netlink{handle: handle, socket: socket, raw: map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}}
	// Before Linux 4.20 there are no strict dumps: slower, and the same answers, as
	// every dump is filtered here again.
	_ = unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	return k, nil
}

// Close closes the sockets.
func (k *Netlink) Close() {
	k.handle.Close()
	k.socket.Close()
}

// dumpAttempts bounds how often an interrupted dump is repeated. Each repetition
// sees a newer state; a namespace that changes during all of them is changing
// faster than it can be read.
const dumpAttempts = 10

// Dump calls f until it is not interrupted. f must start over at every call. It is
// the one gate for dumps: an interrupted one may have missed entries, and must never
// pass for the whole. The error after the last attempt carries the code TryAgain.
func Dump(what string, f func() error) error {
	var err error
	for range dumpAttempts {
		if err = f(); !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("list of %s: %w", what, err)
			}
			return nil
		}
	}
	return cnierr.New(cnierr.TryAgain, "list of %s changed while it was read, %d times in a row: "+
		"something changes this namespace all the time: %w", what, dumpAttempts, err)
}

// iterate sends a dump request with the given header and calls f for each message.
func (k *Netlink) iterate(get, answer uint16, header nl.NetlinkRequestData, f func(m []byte) error) error {
	req := nl.NewNetlinkRequest(int(get), unix.NLM_F_DUMP)
	req.Sockets = k.raw
	req.AddData(header)
	var parseErr error
	err := req.ExecuteIter(unix.NETLINK_ROUTE, answer, func(m []byte) bool {
		if parseErr == nil {
			parseErr = f(m)
		}
		return true // read to the end: the socket is used again
	})
	return errors.Join(err, parseErr)
}

// gone reports whether a delete failed because the object is not there any more.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.EADDRNOTAVAIL)
}

// NoPolicyRouting turns the errors of a kernel that was built without policy routing
// into one that says so; other errors it returns unchanged.
func NoPolicyRouting(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return cnierr.New(cnierr.Kernel, "this kernel has no policy routing (CONFIG_IP_MULTIPLE_TABLES, "+
			"CONFIG_IPV6_MULTIPLE_TABLES): source rules are what keeps a rail's packets on the rail; "+
			"use a kernel that has it: %w", err)
	}
	return err
}
