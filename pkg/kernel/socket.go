package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// socket is a blocking rtnetlink socket, used by one request at a time.
type socket struct {
	fd  int
	seq uint32
	buf []byte
}

// bufferSize holds any answer: a dump comes in pieces of 32 KiB at most
// (net/netlink/af_netlink.c, netlink_dump and netlink_recvmsg). What is not used of it
// is never touched, and so is not memory.
const bufferSize = 64 << 10

func openSocket() (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	// Each of these does without: before Linux 4.20 there are no strict dumps, which are
	// faster and give the same answers, as every dump is filtered here again; before 4.12
	// errors come without the kernel's own words.
	for _, option := range []int{unix.NETLINK_GET_STRICT_CHK, unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK} {
		_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, option, 1)
	}
	return &socket{fd: fd}, nil
}

func (s *socket) close() { _ = unix.Close(s.fd) }

// errEnough ends a dump before its end. What the kernel still has of it would be in the
// way of the next request: the socket has to be replaced.
var errEnough = errors.New("enough")

// do sends a request and calls f for every message of its answer, until that ends. An
// error of f ends it too, once the answer is read to its end, but for errEnough.
func (s *socket) do(m message, flags uint16, f func(kind uint16, body []byte) error) error {
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

// change sends a request that answers with success or an error only.
func (s *socket) change(m message, flags uint16) error {
	return s.do(m, flags|unix.NLM_F_ACK, func(uint16, []byte) error { return nil })
}

func (s *socket) send(m message, flags uint16) error {
	s.seq++
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(m[8:], s.seq)
	return unix.Sendto(s.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// receive returns the next piece of an answer.
func (s *socket) receive() ([]byte, error) {
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

// read takes one piece. Its error is of the answer's form, or errEnough; what the
// answer says is in a.err once it has ended.
func (a *answer) read(b []byte, seq uint32) error {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(nativeUint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return fmt.Errorf("netlink message of length %d in %d bytes: %w", size, len(b), unix.EBADMSG)
		}
		if nativeUint32(b[8:]) == seq {
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
	if err == errEnough {
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
	code := -int32(nativeUint32(body))
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
	_ = eachAttr(body[header:], func(kind uint16, v []byte) {
		if kind == unix.NLMSGERR_ATTR_MSG {
			err = fmt.Errorf("%w: %s", errno, unix.ByteSliceToString(v))
		}
	})
	return err
}

func align(size int) int { return (size + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }
