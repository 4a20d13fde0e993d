package paths

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// line is how requests leave: bound to a rail's device, or to its address.
type line struct {
	rail   int // its place in the run
	source netip.Addr
	is4    bool
	device bool
}

// heard is a packet that came in about a request.
type heard struct {
	said
	from    netip.Addr
	ifindex int // where it came in
}

// sockets sends echo requests and hears what comes back. Each line has a socket to send
// from. All is received on one socket for each family that is bound to nothing: one
// bound to a device would not see a reply that comes in elsewhere.
type sockets struct {
	lines    map[line]int
	receive4 int
	receive6 int
	id       uint16
	nonce    nonce
	buf      []byte
}

// openSockets makes the receiving sockets in the calling thread's namespace.
func openSockets() (*sockets, error) {
	s := &sockets{lines: map[line]int{}, receive4: -1, receive6: -1, buf: make([]byte, 2048)}
	var random [10]byte
	if _, err := unix.Getrandom(random[:], 0); err != nil {
		return nil, fmt.Errorf("random numbers: %w", err)
	}
	s.id, s.nonce = binary.BigEndian.Uint16(random[:]), nonce(random[2:])
	var err error
	if s.receive4, err = receiver(unix.AF_INET); err != nil {
		return nil, err
	}
	if s.receive6, err = receiver(unix.AF_INET6); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sockets) close() {
	for _, fd := range s.lines {
		_ = unix.Close(fd)
	}
	for _, fd := range []int{s.receive4, s.receive6} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// raw makes a raw ICMP socket.
func raw(family int) (int, error) {
	protocol := unix.IPPROTO_ICMP
	if family == unix.AF_INET6 {
		protocol = unix.IPPROTO_ICMPV6
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if errors.Is(err, unix.EPERM) {
		return -1, fmt.Errorf("raw sockets need CAP_NET_RAW, which a pod may lack: "+
			"call it on the node, as root, with --pid or --netns: %w", err)
	}
	if err != nil {
		return -1, fmt.Errorf("raw ICMP socket: %w", err)
	}
	return fd, nil
}

// receiver makes a socket that hears replies and errors, and where they came in.
func receiver(family int) (fd int, err error) {
	if fd, err = raw(family); err != nil {
		return -1, err
	}
	// Every reply wakes it, so it must not overflow while the next requests are sent.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	if family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	if err == nil {
		err = filter(fd, family)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("raw ICMP socket: %w", err)
	}
	return fd, nil
}

// icmpFilter is ICMP_FILTER of include/uapi/linux/icmp.h: a bit for each type not to hear.
const icmpFilter = 1

func filter(fd, family int) error {
	if family == unix.AF_INET {
		wanted := 1<<echoReply4 | 1<<unreachable4 | 1<<exceeded4
		return unix.SetsockoptInt(fd, unix.SOL_RAW, icmpFilter, int(^uint32(wanted)&0x7fffffff))
	}
	var f unix.ICMPv6Filter
	for i := range f.Data {
		f.Data[i] = ^uint32(0)
	}
	for _, kind := range []int{echoReply6, unreachable6, exceeded6} {
		f.Data[kind/32] &^= 1 << (kind % 32)
	}
	return unix.SetsockoptICMPv6Filter(fd, unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &f)
}

// open returns the line's socket.
func (s *sockets) open(l line, device string) (int, error) {
	if fd, ok := s.lines[l]; ok {
		return fd, nil
	}
	family := unix.AF_INET6
	if l.is4 {
		family = unix.AF_INET
	}
	fd, err := raw(family)
	if err != nil {
		return -1, err
	}
	// What this one would hear, the receiver hears.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 0)
	switch {
	case err != nil:
	case l.device:
		err = unix.BindToDevice(fd, device)
	default:
		err = unix.Bind(fd, sockaddr(l.source))
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	s.lines[l] = fd
	return fd, nil
}

func sockaddr(a netip.Addr) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Addr: a.As16()}
}

// send sends one request. A hop limit of 0 is the system's own.
func (s *sockets) send(l line, device string, to netip.Addr, seq uint16, hopLimit int) error {
	fd, err := s.open(l, device)
	if err != nil {
		return err
	}
	var control []byte
	if hopLimit > 0 {
		control = hopLimitMessage(l.is4, hopLimit)
	}
	return unix.Sendmsg(fd, request(l.is4, s.id, seq, s.nonce), control, sockaddr(to), 0)
}

// hopLimitMessage is a control message that sets a packet's TTL or hop limit (ip(7),
// ipv6(7)).
func hopLimitMessage(is4 bool, limit int) []byte {
	b := make([]byte, unix.CmsgSpace(4))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT
	if is4 {
		h.Level, h.Type = unix.IPPROTO_IP, unix.IP_TTL
	}
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], uint32(limit))
	return b
}

// wait hears what comes in until a time, and calls f for each; it returns early once f
// returns true.
func (s *sockets) wait(until time.Time, f func(heard) (enough bool)) error {
	fds := []unix.PollFd{{Fd: int32(s.receive4), Events: unix.POLLIN}, {Fd: int32(s.receive6), Events: unix.POLLIN}}
	for {
		left := time.Until(until)
		n, err := unix.Poll(fds, max(0, int((left+time.Millisecond-1)/time.Millisecond)))
		if err != nil && err != unix.EINTR {
			return err
		}
		for n > 0 {
			h, ok, more, err := s.next()
			if err != nil {
				return err
			}
			if ok && f(h) {
				return nil
			}
			if !more {
				break
			}
		}
		if time.Until(until) <= 0 {
			return nil
		}
	}
}

// next takes one packet. ok is false for what is not about a request of this run.
func (s *sockets) next() (h heard, ok, more bool, err error) {
	for _, fd := range []int{s.receive4, s.receive6} {
		if fd < 0 {
			continue
		}
		var control [128]byte
		n, oobn, _, from, err := unix.Recvmsg(fd, s.buf, control[:], 0)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil {
			return h, false, false, err
		}
		switch a := from.(type) {
		case *unix.SockaddrInet4:
			h.from = netip.AddrFrom4(a.Addr)
			h.said, ok = read4(s.buf[:n], s.id, s.nonce)
		case *unix.SockaddrInet6:
			h.from = netip.AddrFrom16(a.Addr)
			h.said, ok = read6(s.buf[:n], s.id, s.nonce)
		}
		h.ifindex = arrival(control[:oobn])
		return h, ok, true, nil
	}
	return h, false, false, nil
}

// arrival is the interface in a packet's control message: ipi_ifindex of in_pktinfo, or
// ipi6_ifindex of in6_pktinfo.
func arrival(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= 4:
			return int(int32(binary.NativeEndian.Uint32(m.Data)))
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 20:
			return int(binary.NativeEndian.Uint32(m.Data[16:]))
		}
	}
	return 0
}
