// Package nl speaks netlink: requests, their answers whole and in order, attributes.
//
// It does as much of it as railtune needs. Some of that is not to be had from
// github.com/vishvananda/netlink: strict dumps, which the kernel filters, so that their
// cost does not grow with what is others'; lists that end where the rest cannot matter.
// And that library is made for programs that stay: for every answer it clears 64 KiB of
// stack, it starts the runtime's poller, which was a fifth of an ADD's instructions, and
// its package net is initialised at every start (docs/speed.md).
package nl

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Socket is a blocking netlink socket in one network namespace, used by one request at
// a time.
type Socket struct {
	protocol int
	fd       int
	seq      uint32
	buf      []byte
}

// bufferSize holds any answer: a dump comes in pieces of 32 KiB, or of its largest message
// where that is larger (net/netlink/af_netlink.c, netlink_dump and netlink_recvmsg). What
// is not used of it is never touched, and so is not memory.
const bufferSize = 64 << 10

// Open returns a socket to a part of the kernel (NETLINK_ROUTE, NETLINK_RDMA) in the
// namespace of the calling thread, which must be locked until Open returns. The socket
// stays in that namespace whatever the thread does later.
func Open(protocol int) (*Socket, error) {
	s := &Socket{protocol: protocol}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Socket) open() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, s.protocol)
	if err != nil {
		return fmt.Errorf("netlink socket: %w", err)
	}
	// Each of these does without: before Linux 4.20 there are no strict dumps, which are
	// faster and give the same answers, as every dump is filtered here again; before 4.12
	// errors come without the kernel's own words.
	for _, option := range []int{unix.NETLINK_GET_STRICT_CHK, unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK} {
		_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, option, 1)
	}
	s.fd = fd
	return nil
}

// Reopen replaces the socket by one that no list which ended early (ErrEnough) is in the
// way of. It must be called on a thread in the namespace that the socket is of.
func (s *Socket) Reopen() error {
	old := s.fd
	if err := s.open(); err != nil {
		return err
	}
	_ = unix.Close(old)
	return nil
}

// Subscribe makes the kernel send what happens in a group (RTNLGRP_…) as well.
//
// The socket gets its address here: one without is passed over when an event is sent, as
// its address is the kernel's, which the event is from (net/netlink/af_netlink.c,
// do_one_broadcast).
func (s *Socket) Subscribe(group uint) error {
	err := unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil && err != unix.EINVAL { // which it is for a socket that has an address
		return fmt.Errorf("netlink socket: %w", err)
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(group)); err != nil {
		return fmt.Errorf("subscribing to netlink group %d: %w", group, err)
	}
	return nil
}

// Drain throws away the events that have come. That some were lost, because more came than
// there is room for, is no error: who looks after every event sees what they were about.
func (s *Socket) Drain() error {
	var b [8192]byte
	for {
		switch _, _, err := unix.Recvfrom(s.fd, b[:], unix.MSG_DONTWAIT); err {
		case nil, unix.EINTR, unix.ENOBUFS:
		case unix.EAGAIN:
			return nil
		default:
			return fmt.Errorf("reading netlink events: %w", err)
		}
	}
}

// FD is the socket's file descriptor, to wait for events on.
func (s *Socket) FD() int { return s.fd }

// Close closes the socket.
func (s *Socket) Close() { _ = unix.Close(s.fd) }

// ErrEnough, returned by the function given to Do, ends a dump before its end. What the
// kernel still has of it is in the way of the next request: see Reopen.
var ErrEnough = errors.New("enough")

// Do sends a request and calls f for every message of its answer, until that ends. An
// error of f ends it too, once the answer is read to its end, but for ErrEnough.
func (s *Socket) Do(m Message, flags uint16, f func(kind uint16, body []byte) error) error {
	if err := s.send(m, flags); err != nil {
		return err
	}
	a := answer{f: f, single: flags&(unix.NLM_F_DUMP|unix.NLM_F_ACK) == 0}
	for !a.ended {
		b, err := s.receive()
		if err != nil {
			return err
		}
		if err := a.read(b, s.seq); err != nil {
			return err
		}
	}
	return a.err
}

// Change sends a request that answers with success or an error only.
func (s *Socket) Change(m Message, flags uint16) error {
	return s.Do(m, flags|unix.NLM_F_ACK, func(uint16, []byte) error { return nil })
}

func (s *Socket) send(m Message, flags uint16) error {
	s.seq++
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(m[8:], s.seq)
	return unix.Sendto(s.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// receive returns the next piece of an answer.
func (s *Socket) receive() ([]byte, error) {
	if s.buf == nil {
		s.buf = make([]byte, bufferSize)
	}
	for {
		n, _, flags, from, err := unix.Recvmsg(s.fd, s.buf, nil, 0)
		switch kernel, ok := from.(*unix.SockaddrNetlink); {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case !ok || kernel.Pid != 0: // any process may send to a netlink socket
		case flags&unix.MSG_TRUNC != 0:
			return nil, fmt.Errorf("netlink answer larger than %d bytes: %w", len(s.buf), unix.EMSGSIZE)
		default:
			return s.buf[:n], nil
		}
	}
}

// answer is what is known of an answer while it is read.
type answer struct {
	f func(kind uint16, body []byte) error
	// single says that one message is all of it: nothing more follows, no end either.
	single bool
	ended  bool
	err    error
}

// read takes one piece. Its error is of the answer's form, or ErrEnough; what the
// answer says is in a.err once it has ended.
func (a *answer) read(b []byte, seq uint32) error {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return fmt.Errorf("netlink message of length %d in %d bytes: %w", size, len(b), unix.EBADMSG)
		}
		if Uint32(b[8:]) == seq {
			kind, flags := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:])
			if flags&unix.NLM_F_DUMP_INTR != 0 {
				a.fail(errInterrupted)
			}
			if err := a.message(kind, flags, b[unix.SizeofNlMsghdr:size]); err != nil {
				return err
			}
		}
		b = b[min(align(size), len(b)):]
	}
	return nil
}

// errInterrupted says that what was listed changed while it was: the list may lack
// entries that were there all the time (NLM_F_DUMP_INTR).
var errInterrupted error = interrupted{}

type interrupted struct{}

func (interrupted) Error() string { return "dump interrupted" }

func (interrupted) Unwrap() error { return unix.EINTR }

func (a *answer) message(kind, flags uint16, body []byte) error {
	switch kind {
	case unix.NLMSG_DONE, unix.NLMSG_ERROR: // a dump's errno is in its end, or in an error before it began
		a.ended = true
		a.fail(errnoOf(kind, flags, body))
		return nil
	}
	err := a.f(kind, body)
	if err == ErrEnough {
		return err
	}
	a.fail(err)
	a.ended = a.ended || a.single
	return nil
}

func (a *answer) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// errnoOf reads the errno that ends an answer, 0 being success, and the kernel's own
// words for it where there are any (struct nlmsgerr, NLMSGERR_ATTR_MSG).
func errnoOf(kind, flags uint16, body []byte) error {
	code := -int32(Uint32(body))
	if code <= 0 {
		return nil
	}
	errno := unix.Errno(code)
	header := 4 // NLMSG_DONE: the errno alone
	if kind == unix.NLMSG_ERROR {
		header += unix.SizeofNlMsghdr // and the request's header, NETLINK_CAP_ACK
	}
	if flags&unix.NLM_F_ACK_TLVS == 0 || len(body) < header {
		return errno
	}
	err := error(errno)
	_ = EachAttr(body[header:], func(kind uint16, v []byte) {
		if kind == unix.NLMSGERR_ATTR_MSG {
			err = fmt.Errorf("%w: %s", errno, unix.ByteSliceToString(v))
		}
	})
	return err
}

func align(size int) int { return (size + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }
