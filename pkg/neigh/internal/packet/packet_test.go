package packet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/testutils"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/neigh/internal/watch"
	"github.com/railtune/railtune/pkg/testbed"
)

// TestMain runs the tests in a sandbox: what they make is gone with the process, however
// that ends.
func TestMain(m *testing.M) { testbed.Main(m) }

// localExperimental is an EtherType for use within one's own walls (IEEE 802).
const localExperimental = 0x88b5

// pair runs f in a namespace with the two ends of a veth, both up.
func pair(t *testing.T, f func(a, b int) error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	n, err := testutils.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = n.Close(), testutils.UnmountNS(n) })
	err = n.Do(func(ns.NetNS) error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		peer, err := netlink.LinkByName("b")
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkSetUp(veth), netlink.LinkSetUp(peer), running(veth.Index), running(peer.Attrs().Index)); err != nil {
			return err
		}
		return f(veth.Index, peer.Attrs().Index)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// running waits until a link passes frames: one that was just set up has
// carrier before it has a queue.
func running(index int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return watch.Until(ctx, unix.RTNLGRP_LINK, func() (bool, error) {
		link, err := netlink.LinkByIndex(index)
		if err != nil {
			return false, err
		}
		return link.Attrs().RawFlags&unix.IFF_RUNNING != 0, nil
	})
}

// receive waits for one frame.
func receive(s *Socket) ([]byte, error) {
	b := make([]byte, 2048)
	for {
		n, err := s.Receive(b)
		if !errors.Is(err, ErrNothing) {
			return b[:n], err
		}
		set := []unix.PollFd{{Fd: int32(s.FD()), Events: unix.POLLIN}}
		if n, err := unix.Poll(set, 10_000); n == 0 || (err != nil && !errors.Is(err, unix.EINTR)) {
			return nil, fmt.Errorf("no frame in 10 s (%v)", err)
		}
	}
}

// Only frames of the protocol that pass the filter arrive, from the other end.
func TestSendAndReceive(t *testing.T) {
	t.Parallel()
	pair(t, func(a, b int) error {
		evenOnly, err := bpf.Assemble([]bpf.Instruction{
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 1, SkipTrue: 1},
			bpf.RetConstant{Val: 0xffff},
			bpf.RetConstant{Val: 0},
		})
		if err != nil {
			return err
		}
		in, err := Open(b, localExperimental, evenOnly)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		out, err := Open(a, localExperimental, nil)
		if err != nil {
			return err
		}
		defer func() { _ = out.Close() }()
		to := [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		if err := errors.Join(
			out.Send(localExperimental+1, to, []byte{2}), // another protocol
			out.Send(localExperimental, to, []byte{1, 7}),
			out.Send(localExperimental, to, []byte{4, 7}),
		); err != nil {
			return err
		}
		got, err := receive(in)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(got, []byte{4, 7}) {
			t.Errorf("got %x, want the frame that passes the filter", got)
		}
		if _, err := out.Receive(make([]byte, 10)); !errors.Is(err, ErrNothing) {
			t.Errorf("the sender hears itself: %v", err)
		}
		return nil
	})
}

func TestErrorsName(t *testing.T) {
	t.Parallel()
	pair(t, func(a, _ int) error {
		if _, err := Open(99999, localExperimental, nil); !errors.Is(err, unix.ENODEV) {
			t.Errorf("a link that is not there: %v", err)
		}
		s, err := Open(a, 0, nil)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		link, err := netlink.LinkByIndex(a)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		if err := s.Send(localExperimental, [6]byte{}, []byte{1}); !errors.Is(err, unix.ENETDOWN) {
			t.Errorf("a link that is down: %v", err)
		}
		if err := netlink.LinkDel(link); err != nil {
			return err
		}
		if err := s.Send(localExperimental, [6]byte{}, []byte{1}); !errors.Is(err, unix.ENXIO) {
			t.Errorf("a link that is gone: %v", err)
		}
		return nil
	})
}

// A queue that is full is told apart from all other errors.
func TestBusyIsNamed(t *testing.T) {
	t.Parallel()
	pair(t, func(a, _ int) error {
		link, err := netlink.LinkByIndex(a)
		if err != nil {
			return err
		}
		// A token bucket that has let its first bytes through lets 1000 a second
		// follow, and holds two small frames meanwhile.
		if err := netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       1000, Buffer: 1 << 20, Limit: 100,
		}); err != nil {
			t.Skipf("this kernel has no tbf: %v", err)
		}
		s, err := Open(a, 0, nil)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		for range 100_000 {
			if err = s.Send(localExperimental, [6]byte{}, make([]byte, 28)); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		return nil
	})
}

// Close returns at once and the kernel does close the socket: the namespace's
// list of packet sockets becomes empty. There is no event to wait for, so it is
// looked at until then.
func TestCloseClosesInTheEnd(t *testing.T) {
	t.Parallel()
	pair(t, func(a, _ int) error {
		const each = 20
		before, err := sockets()
		if err != nil {
			return err
		}
		for range each {
			s, err := Open(a, localExperimental, nil)
			if err != nil {
				return err
			}
			if n, err := sockets(); err != nil || n == before {
				t.Errorf("an open socket is not in the list: %d, %v", n, err)
			}
			if err := s.Close(); err != nil {
				return err
			}
			if err := s.Send(localExperimental, [6]byte{}, nil); !errors.Is(err, unix.EBADF) {
				t.Errorf("a closed socket can be sent through: %v", err)
			}
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			n, err := sockets()
			if err != nil || n == before {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d closed sockets are still there", n-before, each)
			}
		}
	})
}

// sockets counts the packet sockets of this thread's namespace.
func sockets() (int, error) {
	b, err := os.ReadFile("/proc/thread-self/net/packet")
	return strings.Count(string(b), "\n"), err
}

func BenchmarkOpenAndClose(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("needs root")
	}
	for range b.N {
		s, err := Open(1, localExperimental, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
