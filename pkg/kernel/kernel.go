// Package kernel reads and writes links, addresses, neighbours, rules and routes of one
// network namespace over netlink, in railtune's own value types.
package kernel

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/nl"
)

// Netlink is a netlink socket in one network namespace. It is not safe for
// concurrent use.
type Netlink struct {
	socket *nl.Socket
}

// Open returns a socket in the namespace of the calling thread, which must be locked
// until Open returns. It stays in that namespace whatever the thread does later.
func Open() (*Netlink, error) {
	s, err := nl.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	return &Netlink{s}, nil
}

// Close closes the socket.
func (k *Netlink) Close() { k.socket.Close() }

// dump sends a dump request and calls f for each message of the kind asked for.
func (k *Netlink) dump(m nl.Message, answer uint16, f func(body []byte) error) error {
	return k.socket.Do(m, unix.NLM_F_DUMP, func(kind uint16, body []byte) error {
		if kind != answer {
			return nil
		}
		return f(body)
	})
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
