package watch

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/testutils"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestMain runs the tests in a sandbox: what they make is gone with the process, however
// that ends.
func TestMain(m *testing.M) { testbed.Main(m) }

func inNamespace(t *testing.T, f func() error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	n, err := testutils.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = n.Close(), testutils.UnmountNS(n) })
	if err := n.Do(func(ns.NetNS) error { return f() }); err != nil {
		t.Fatal(err)
	}
}

// The change is made inside the first look, that is after subscribing: its
// event must bring the second look about.
func TestChangeAfterTheFirstLookIsSeen(t *testing.T) {
	t.Parallel()
	inNamespace(t, func() error {
		looks := 0
		err := Until(context.Background(), unix.RTNLGRP_LINK, func() (bool, error) {
			looks++
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return false, err
			}
			if looks == 1 {
				return false, netlink.LinkSetUp(lo)
			}
			return lo.Attrs().RawFlags&unix.IFF_UP != 0, nil
		})
		if looks < 2 {
			t.Errorf("%d looks", looks)
		}
		return err
	})
}

func TestEnds(t *testing.T) {
	t.Parallel()
	inNamespace(t, func() error {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		broken := errors.New("broken")
		looks := 0
		for name, c := range map[string]struct {
			look func() (bool, error)
			want error
		}{
			"settled":      {func() (bool, error) { return true, nil }, nil},
			"broken":       {func() (bool, error) { return false, broken }, broken},
			"context over": {func() (bool, error) { looks++; return false, nil }, context.Canceled},
		} {
			if err := Until(over, unix.RTNLGRP_LINK, c.look); !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if looks != 1 {
			t.Errorf("%d looks with a context that is over, want one", looks)
		}
		return nil
	})
}
