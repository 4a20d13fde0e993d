// Package kernel reads and writes links, addresses, rules and routes of one network
// namespace over netlink, in railtune's own value types.
//
// It speaks netlink itself, as far as railtune needs it. Some of it is not to be had
// from github.com/vishvananda/netlink: strict dumps, which the kernel filters, so that
// their cost does not grow with other people's routes; lists of rules that end where the
// rest cannot matter; the action of a rule; the origin of an address. And that library
// is made for programs that stay: for every answer it clears 64 KiB of stack, and it
// starts the runtime's poller, which was a fifth of an ADD's instructions (docs/speed.md).
package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// Netlink is a netlink socket in one network namespace. It is not safe for
// concurrent use.
type Netlink struct {
	socket *socket
}

// Open returns a socket in the namespace of the calling thread, which must be locked
// until Open returns. It stays in that namespace whatever the thread does later.
func Open() (*Netlink, error) {
	s, err := openSocket()
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	return &Netlink{s}, nil
}

// Close closes the socket.
func (k *Netlink) Close() { k.socket.close() }

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
		if err = f(); !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("list of %s: %w", what, err)
			}
			return nil
		}
	}
	return cnierr.New(cnierr.TryAgain, "list of %s changed while it was read, %d times in a row: "+
		"something changes this namespace all the time: %w", what, dumpAttempts, err)
}

// dump sends a dump request and calls f for each message of the kind asked for.
func (k *Netlink) dump(m message, answer uint16, f func(body []byte) error) error {
	return k.socket.do(m, unix.NLM_F_DUMP, func(kind uint16, body []byte) error {
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
