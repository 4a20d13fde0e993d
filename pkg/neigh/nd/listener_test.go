package nd

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/testutils"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/neigh/internal/poll"
	"github.com/railtune/railtune/pkg/neigh/internal/watch"
	"github.com/railtune/railtune/pkg/testbed"
)

// TestMain runs the tests in a sandbox: what they make is gone with the process, however
// that ends.
func TestMain(m *testing.M) { testbed.Main(m) }

// Of four messages in a row only the last is a claim: the first came through a
// router, the second is no advertisement, the third has no link-layer address.
func TestListenerHearsOnlyClaimsFromTheLink(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	n, err := testutils.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = n.Close(), testutils.UnmountNS(n) })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err = n.Do(func(ns.NetNS) error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		b, err := netlink.LinkByName("b")
		if err != nil {
			return err
		}
		for _, l := range []netlink.Link{veth, b} {
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		for _, index := range []int{veth.Index, b.Attrs().Index} {
			if err := watch.Until(ctx, unix.RTNLGRP_LINK, func() (bool, error) {
				l, err := netlink.LinkByIndex(index)
				return err == nil && l.Attrs().RawFlags&unix.IFF_RUNNING != 0, err
			}); err != nil {
				return err
			}
		}
		return hear(t, ctx, veth.Index, b.Attrs().Index)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, ctx context.Context, from, at int) error {
	listener, err := Listen(at)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	socket, err := packet.Open(from, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	// Unknown source addresses, so that nothing of the kernel's own is in the way.
	message := func(addr string) Message {
		m, err := Advertisement(us, netip.MustParseAddr(addr), false)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	routed, plain, good := message("fe80::1"), message("fe80::3"), message("fe80::4")
	routed.Packet[7] = hopLimit - 1
	solicitation, err := Solicitation(us, netip.MustParseAddr("fe80::2"), peer)
	if err != nil {
		return err
	}
	solicitation.To, solicitation.Packet = good.To, append(append([]byte{}, solicitation.Packet[:24]...),
		append(good.Packet[24:40:40], solicitation.Packet[40:]...)...)
	plain.Packet[64] = 14 // its option is a nonce instead
	for _, m := range []Message{routed, solicitation, plain, good} {
		fix(m.Packet)
		if err := socket.Send(EtherType, m.To, m.Packet); err != nil {
			return err
		}
	}
	waiter, err := poll.New(ctx)
	if err != nil {
		return err
	}
	defer waiter.Close()
	for {
		c, err := listener.Read()
		if err == nil {
			if want := (Claim{netip.MustParseAddr("fe80::4"), us}); c != want {
				t.Errorf("heard %v, want %v", c, want)
			}
			return nil
		}
		if !errors.Is(err, packet.ErrNothing) {
			return err
		}
		if err := waiter.Wait(time.Time{}, listener.FD()); err != nil {
			return err
		}
	}
}

// fix makes a changed packet's checksum right again.
func fix(b []byte) {
	b[42], b[43] = 0, 0
	sum := ^checksum(b)
	b[42], b[43] = byte(sum>>8), byte(sum)
}
