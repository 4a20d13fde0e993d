package nd

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/neigh/internal/packet"
)

// typeAdvertisement is the ICMPv6 type of a neighbour advertisement.
const typeAdvertisement = 136

// Listener hears neighbour advertisements that arrive on one link.
type Listener struct {
	fd int
	b  [2048]byte
}

// Listen opens an ICMPv6 socket on the calling thread, for one link, that lets
// nothing but neighbour advertisements through.
func Listen(ifindex int) (*Listener, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocolICMPv6)
	if err != nil {
		return nil, fmt.Errorf("an ICMPv6 socket (CAP_NET_RAW): %w", err)
	}
	// A set bit blocks the type (RFC 3542 section 3.2).
	var filter unix.ICMPv6Filter
	for i := range filter.Data {
		filter.Data[i] = ^uint32(0)
	}
	filter.Data[typeAdvertisement/32] &^= 1 << (typeAdvertisement % 32)
	err = errors.Join(
		unix.SetsockoptICMPv6Filter(fd, unix.SOL_ICMPV6, unix.ICMPV6_FILTER, &filter),
		unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVHOPLIMIT, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, ifindex),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an ICMPv6 socket for ifindex %d: %w", ifindex, err), unix.Close(fd))
	}
	return &Listener{fd: fd}, nil
}

// FD is the descriptor to poll.
func (l *Listener) FD() int { return l.fd }

// Close closes the socket.
func (l *Listener) Close() error { return unix.Close(l.fd) }

// Read returns the next claim, or packet.ErrNothing. Messages that came through
// a router, and those without a link-layer address, are passed over.
func (l *Listener) Read() (Claim, error) {
	var oob [64]byte
	for {
		n, oobn, _, _, err := unix.Recvmsg(l.fd, l.b[:], oob[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return Claim{}, packet.ErrNothing
		case err != nil:
			return Claim{}, err
		}
		if receivedHopLimit(oob[:oobn]) != hopLimit {
			continue
		}
		if claim, ok := ParseClaim(l.b[:n]); ok {
			return claim, nil
		}
	}
}

func receivedHopLimit(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return -1
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_HOPLIMIT && len(m.Data) >= 4 {
			return int(binary.NativeEndian.Uint32(m.Data))
		}
	}
	return -1
}
