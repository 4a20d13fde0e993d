package nl

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForeignMessages: any process may send to a netlink socket, and the answer to an
// earlier request may still be under way; neither is taken for the answer.
func TestForeignMessages(t *testing.T) {
	s, err := Open(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	links := func() (n int, err error) {
		err = s.Do(NewMessage(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg)), unix.NLM_F_DUMP,
			func(uint16, []byte) error { n++; return nil })
		return n, err
	}
	// The socket has its address from the first request on.
	if _, err := links(); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(s.fd)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	forged := NewMessage(unix.NLMSG_ERROR, make([]byte, 4+unix.SizeofNlMsghdr))
	binary.NativeEndian.PutUint32(forged, uint32(len(forged)))
	for ahead := range uint32(3) {
		binary.NativeEndian.PutUint32(forged[8:], s.seq+ahead)
		if err := unix.Sendto(other.fd, forged, 0, own); err != nil {
			if errors.Is(err, unix.EPERM) {
				t.Skip("only root may send to another netlink socket")
			}
			t.Fatal(err)
		}
	}
	if n, err := links(); err != nil || n == 0 {
		t.Errorf("%d links, %v", n, err)
	}
}

// TestAnswer reads answers that a real kernel gives rarely or never.
func TestAnswer(t *testing.T) {
	piece := func(kind, flags uint16, seq uint32, body ...byte) []byte {
		m := NewMessage(kind, body)
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

// TestSubscribe: a socket has an address from then on, without which it would hear
// nothing; and one that has an address keeps it.
func TestSubscribe(t *testing.T) {
	s, err := Open(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var before uint32
	for _, group := range []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV6_IFADDR} {
		if err := s.Subscribe(group); err != nil {
			t.Fatal(err)
		}
		own, err := unix.Getsockname(s.FD())
		if err != nil {
			t.Fatal(err)
		}
		address := own.(*unix.SockaddrNetlink).Pid
		if address == 0 || before != 0 && address != before {
			t.Errorf("group %d: the socket's address is %d after %d", group, address, before)
		}
		before = address
	}
}
