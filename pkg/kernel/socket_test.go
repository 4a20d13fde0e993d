package kernel

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// TestForeignMessages: any process may send to a netlink socket, and the answer to an
// earlier request may still be under way; neither is taken for the answer.
func TestForeignMessages(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	// The socket has its address from the first request on.
	if _, err := k.Links(); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(k.socket.fd)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	forged := newMessage(unix.NLMSG_ERROR, make([]byte, 4+unix.SizeofNlMsghdr))
	binary.NativeEndian.PutUint32(forged, uint32(len(forged)))
	for ahead := range uint32(3) {
		binary.NativeEndian.PutUint32(forged[8:], k.socket.seq+ahead)
		if err := unix.Sendto(other.fd, forged, 0, own); err != nil {
			if errors.Is(err, unix.EPERM) {
				t.Skip("only root may send to another netlink socket")
			}
			t.Fatal(err)
		}
	}
	links, err := k.Links()
	if err != nil || len(links) == 0 {
		t.Errorf("links %v, %v", links, err)
	}
}

// TestKernelsWords: an error carries the kernel's own explanation and is its errno.
func TestKernelsWords(t *testing.T) {
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	err = k.AddRoute(policy.Route{Dst: mustPrefix("10.0.0.0/8"), GW: mustPrefix("192.0.2.1/32").Addr(), IfIndex: 1, Table: 7200001})
	if !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.EPERM) {
		t.Errorf("a next hop nowhere: %v", err)
	}
	if errors.Is(err, unix.EPERM) {
		t.Skip("changing routes needs root")
	}
	if !strings.Contains(err.Error(), ": ") {
		t.Errorf("the kernel's words are missing: %v", err)
	}
}

// TestAnswer reads answers that a real kernel gives rarely or never.
func TestAnswer(t *testing.T) {
	piece := func(kind, flags uint16, seq uint32, body ...byte) []byte {
		m := newMessage(kind, body)
		binary.NativeEndian.PutUint32(m, uint32(len(m)))
		binary.NativeEndian.PutUint16(m[6:], flags)
		binary.NativeEndian.PutUint32(m[8:], seq)
		return m
	}
	busy := binary.NativeEndian.AppendUint32(nil, ^uint32(unix.EBUSY)+1)
	good := make([]byte, 4)
	for name, c := range map[string]struct {
		pieces []byte
		seen   int
		ended  bool
		want   error
	}{
		"whole":           {append(piece(24, 0, 7, good...), piece(unix.NLMSG_DONE, 0, 7, good...)...), 1, true, nil},
		"interrupted":     {append(piece(24, unix.NLM_F_DUMP_INTR, 7, good...), piece(unix.NLMSG_DONE, 0, 7, good...)...), 1, true, unix.EINTR},
		"fails at last":   {append(piece(24, 0, 7, good...), piece(unix.NLMSG_DONE, 0, 7, busy...)...), 1, true, unix.EBUSY},
		"of another":      {piece(24, 0, 6, good...), 0, false, nil},
		"not yet at end":  {piece(24, 0, 7, good...), 1, false, nil},
		"refused":         {piece(unix.NLMSG_ERROR, 0, 7, append(busy, make([]byte, 16)...)...), 0, true, unix.EBUSY},
		"cut off":         {piece(24, 0, 7, good...)[:18], 0, false, unix.EBADMSG},
		"shorter than it": {[]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, false, unix.EBADMSG},
	} {
		seen := 0
		a := answer{f: func(uint16, []byte) error { seen++; return nil }}
		err := errors.Join(a.read(c.pieces, 7), a.err)
		if seen != c.seen || a.ended != c.ended || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %d messages, ended %v, %v", name, seen, a.ended, err)
		}
	}
}

// FuzzAnswer: no answer, however broken, may do more than be refused.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{20, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a := answer{f: func(kind uint16, body []byte) error { return nil }}
		if err := a.read(b, 7); err != nil && !errors.Is(err, unix.EBADMSG) {
			t.Errorf("%v", err)
		}
	})
}
