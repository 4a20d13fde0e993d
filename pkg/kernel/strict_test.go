package kernel

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/testbed"
)

// TestWhoFilters: what is others' is not even sent; and where the kernel is too old for
// that, the lists are the same. Requests without a filter stand for such a kernel's.
func TestWhoFilters(t *testing.T) {
	t.Parallel()
	n := testbed.MustNamespace(t, "kernel")
	lines := "link add net1 type veth peer name p1\n" +
		"addr add fd5a:1::1/64 dev net1\naddr add fd5a:1::2/64 dev p1\n" +
		"neigh add fd5a:1::3 lladdr 02:00:00:00:00:01 dev net1 nud permanent\n"
	for i := range 5 {
		lines += fmt.Sprintf("neigh add 10.61.1.%d lladdr 02:00:00:00:00:01 dev net1 nud permanent\n", i+1)
		lines += fmt.Sprintf("neigh add 10.61.2.%d lladdr 02:00:00:00:00:01 dev p1 nud permanent\n", i+1)
	}
	if _, err := n.Feed(t.Context(), lines, "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
	if err := n.Do(func() error {
		k, err := Open()
		if err != nil {
			return err
		}
		defer k.Close()
		links, err := k.Links()
		for _, l := range links {
			if l.Name != "net1" {
				continue
			}
			if _, err := unix.GetsockoptInt(k.socket.FD(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK); err == nil {
				sentAndListed(t, k, neighboursOf(policy.IPv4, l.Index), l.Index, 5, 1)
			}
			_ = unix.SetsockoptInt(k.socket.FD(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 0)
			all := neighboursOf(policy.IPv4, l.Index)[:unix.SizeofNlMsghdr+unix.SizeofNdMsg]
			sentAndListed(t, k, all, l.Index, 10, 3) // and lo's address
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func sentAndListed(t *testing.T, k *Netlink, m nl.Message, ifindex, entriesSent, addrsSent int) {
	t.Helper()
	entries, addrs := 0, 0
	err := k.dump(m, unix.RTM_NEWNEIGH, func([]byte) error { entries++; return nil })
	if err != nil || entries != entriesSent {
		t.Errorf("%d entries were sent, %v; want %d", entries, err, entriesSent)
	}
	local := netip.MustParseAddr("fd5a:1::1")
	err = k.eachAddr(unix.AF_INET6, ifindex, func(foundAddr) { addrs++ })
	if err != nil || addrs != addrsSent {
		t.Errorf("%d addresses were sent, %v; want %d", addrs, err, addrsSent)
	}
	if list, err := k.neighbours(m, policy.IPv4, ifindex); err != nil || len(list) != 5 {
		t.Errorf("listed are %v, %v", list, err)
	}
	if list, err := k.IPv6Flags(ifindex); err != nil || len(list) != 1 || list[local] == 0 {
		t.Errorf("listed are %v, %v", list, err)
	}
}
