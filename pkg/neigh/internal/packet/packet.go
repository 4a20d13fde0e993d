// Package packet is the AF_PACKET socket of the neighbour proof: bound to one
// link, non-blocking, filtered, cheap to open and cheap to close.
//
// It is six system calls through golang.org/x/sys. github.com/mdlayher/packet
// was weighed: it opens and binds as cheaply, but its connections live in the
// Go runtime's poller and are read by goroutines, while a proof waits on an ARP
// socket, an ICMPv6 socket and a cancellation at once, on the one thread that
// is in the rail's namespace.
package packet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// receiveBuffer is the socket's receive buffer in bytes. 256 peers that each
// answer with 16 MACs are 4096 frames of up to 1 KiB of kernel memory.
const receiveBuffer = 4 << 20

// ErrNothing says that no frame is waiting.
var ErrNothing = errors.New("no frame waiting")

// ErrBusy says that the kernel had no room for a frame: the link's transmit
// queue is full or the system is out of buffers (ENOBUFS, or EAGAIN where the
// socket's own send buffer is what is full). Trying later can help.
var ErrBusy = errors.New("transmit queue full (ENOBUFS)")

// Socket is a packet socket of type SOCK_DGRAM: the kernel puts the link's own
// MAC into the Ethernet source and strips the header on receipt.
type Socket struct {
	fd      int
	ifindex int
}

// Open opens a socket on a link of the calling thread's network namespace.
//
// The socket is created with protocol 0, so that it receives nothing yet, given
// its filter, and only then bound: no unfiltered frame is ever queued, and the
// kernel has no hook to unregister at bind, which costs a grace period of about
// 8 ms (net/packet/af_packet.c, packet_do_bind). With etherType 0 the socket
// only sends.
func Open(ifindex int, etherType uint16, filter []bpf.RawInstruction) (*Socket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("a packet socket (CAP_NET_RAW, CONFIG_PACKET): %w", err)
	}
	s := &Socket{fd: fd, ifindex: ifindex}
	if etherType == 0 {
		return s, nil
	}
	if err := s.receive(etherType, filter); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, nil
}

func (s *Socket) receive(etherType uint16, filter []bpf.RawInstruction) error {
	if len(filter) > 0 {
		program := make([]unix.SockFilter, len(filter))
		for i, f := range filter {
			program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
		}
		fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog); err != nil {
			return fmt.Errorf("attaching the filter to a packet socket: %w", err)
		}
	}
	// Without CAP_NET_ADMIN the limit net.core.rmem_max stands; a smaller buffer
	// loses answers only under a flood, so neither failure matters here.
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	addr := &unix.SockaddrLinklayer{Protocol: network(etherType), Ifindex: s.ifindex}
	if err := unix.Bind(s.fd, addr); err != nil {
		return fmt.Errorf("binding a packet socket to ifindex %d: %w", s.ifindex, err)
	}
	return nil
}

// Send puts one packet on the link. The error is ErrBusy where a later try can
// help, ENETDOWN where the link is down, ENXIO where it is gone.
func (s *Socket) Send(etherType uint16, to [6]byte, payload []byte) error {
	addr := &unix.SockaddrLinklayer{Protocol: network(etherType), Ifindex: s.ifindex, Halen: 6}
	copy(addr.Addr[:], to[:])
	for {
		err := unix.Sendto(s.fd, payload, 0, addr)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EAGAIN):
			return ErrBusy
		default:
			return err
		}
	}
}

// Receive reads one frame's payload into b, or says ErrNothing. Frames this
// host sent are passed over.
func (s *Socket) Receive(b []byte) (int, error) {
	for {
		n, from, err := unix.Recvfrom(s.fd, b, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, ErrNothing
		case err != nil:
			return 0, err
		default:
			if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			return n, nil
		}
	}
}

// FD is the descriptor to poll.
func (s *Socket) FD() int { return s.fd }

// Close closes the socket without waiting for the kernel to be done with it.
// Using it afterwards is EBADF.
func (s *Socket) Close() error {
	fd := s.fd
	s.fd = -1 // the number may soon be another file's
	return closeLater(fd)
}

// network turns a protocol number into the byte order sockaddr_ll wants.
func network(p uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], p)
	return binary.NativeEndian.Uint16(b[:])
}
