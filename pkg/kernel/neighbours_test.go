package kernel_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
)

// Both ends are up only for p2: net1 has no carrier, and what is tentative there stays so.
const twoRails = `
link add net1 type veth peer name p1
link add net2 type veth peer name p2
link set net1 up
link set net2 up
link set p2 up
addr add 10.61.1.11/24 dev net1
`

func indexOf(k *kernel.Netlink, name string) (int, error) {
	links, err := k.Links()
	for _, l := range links {
		if l.Name == name {
			return l.Index, err
		}
	}
	return 0, errors.Join(err, fmt.Errorf("no %s", name))
}

// TestNeighbours: the list has one link's entries of one family, whoever made them, and
// one is removed without another.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	n := in(t, twoRails+`
neigh add 10.61.1.1 lladdr 02:00:00:00:00:01 dev net1 nud permanent
neigh add 10.61.1.2 lladdr 02:00:00:00:00:02 dev net1 nud stale
neigh add 10.61.1.3 lladdr 02:00:00:00:00:03 dev net1 nud noarp
neigh add 10.61.1.4 dev net1 nud failed
neigh add proxy 10.61.1.2 dev net1
neigh add 10.61.1.5 lladdr 02:00:00:00:00:05 dev net2 nud permanent
neigh add fd5a:1::1 lladdr 02:00:00:00:00:06 dev net1 nud permanent
`, func(k *kernel.Netlink) error {
		index, err := indexOf(k, "net1")
		if err != nil {
			return err
		}
		// The kernel makes entries of its own, for multicast groups.
		list := func(f policy.Family, index int) []kernel.Neighbour {
			all, err := k.Neighbours(f, index)
			if err != nil {
				t.Error(err)
			}
			return slices.DeleteFunc(all, func(e kernel.Neighbour) bool { return e.Addr.IsMulticast() })
		}
		expect := func(what string, found []kernel.Neighbour, want ...string) {
			var got []string
			for _, e := range found {
				got = append(got, fmt.Sprintf("%s %s %#x", e.Addr, e.MAC, e.State))
				if e.IfIndex != index {
					t.Errorf("%s: %+v is another link's", what, e)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		permanent, noARP := "10.61.1.1 02:00:00:00:00:01 0x80", "10.61.1.3 02:00:00:00:00:03 0x40"
		failed, other := "10.61.1.4  0x20", "fd5a:1::1 02:00:00:00:00:06 0x80"
		before := list(policy.IPv4, index)
		expect("IPv6", list(policy.IPv6, index), other)
		expect("IPv4", before, permanent, "10.61.1.2 02:00:00:00:00:02 0x4", noARP, failed)
		expect("a link that is not there", list(policy.IPv4, 1<<20))

		stale := kernel.Neighbour{IfIndex: index, Addr: netip.MustParseAddr("10.61.1.2"), MAC: hwaddr.MAC{2, 9, 9, 9, 9, 9}}
		if err := k.DelNeighbour(stale); err != nil {
			t.Errorf("del: %v", err)
		}
		expect("one less", list(policy.IPv4, index), permanent, noARP, failed)
		if err := k.DelNeighbour(stale); !errors.Is(err, unix.ENOENT) {
			t.Errorf("del of what is gone: %v", err)
		}
		if err := k.DelNeighbour(kernel.Neighbour{IfIndex: index, Addr: netip.MustParseAddr("fd5a:1::1")}); err != nil {
			t.Errorf("del: %v", err)
		}
		expect("none left", list(policy.IPv6, index))
		return nil
	})
	if left, err := n.Run(t.Context(), "ip", "neigh", "show", "proxy"); err != nil || !strings.Contains(left, "10.61.1.2 dev net1") {
		t.Errorf("the proxy entry for an address went with the ordinary one: %q, %v", left, err)
	}
}

var ntable = regexp.MustCompile(`(?s)thresh3 (\d+) .* table_fulls (\d+)`)

// TestNeighbourTable: the numbers are those that ip sees. Others fill the table too, so
// some can only be bounded.
func TestNeighbourTable(t *testing.T) {
	t.Parallel()
	var entries strings.Builder
	const made = 20
	for i := range made {
		fmt.Fprintf(&entries, "neigh add 10.61.1.%d lladdr 02:00:00:00:00:01 dev net1 nud permanent\n", 100+i)
		fmt.Fprintf(&entries, "neigh add fd5a:1::%d lladdr 02:00:00:00:00:01 dev net1 nud permanent\n", 100+i)
	}
	bed := in(t, twoRails, func(*kernel.Netlink) error { return nil })
	if _, err := bed.Feed(t.Context(), entries.String(), "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
	for f, table := range map[policy.Family]string{policy.IPv4: "arp_cache", policy.IPv6: "ndisc_cache"} {
		ask := func() (limit, refused uint64) {
			out, err := bed.Run(t.Context(), "ip", "-s", "ntable", "show", "name", table)
			m := ntable.FindStringSubmatch(out)
			if err != nil || m == nil {
				t.Fatalf("%v: %q", err, out)
			}
			limit, _ = strconv.ParseUint(m[1], 10, 32)
			refused, _ = strconv.ParseUint(m[2], 10, 64)
			return limit, refused
		}
		limit, before := ask()
		var got kernel.NeighbourTable
		if err := bed.Do(func() error {
			k, err := kernel.Open()
			if err != nil {
				return err
			}
			defer k.Close()
			var ok bool
			if got, ok, err = k.NeighbourTable(f); !ok {
				t.Errorf("%s: not told", f)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, after := ask()
		if uint64(got.Limit) != limit || got.Refused < before || got.Refused > after || got.Entries < made || got.Entries > 1<<20 {
			t.Errorf("%s: %+v; the limit is %d, refused were %d to %d, and there are %d of ours", f, got, limit, before, after, made)
		}
	}
}

// TestIPv6Flags: each address of one link has the flags that say how far its detection is.
func TestIPv6Flags(t *testing.T) {
	t.Parallel()
	in(t, twoRails+`
addr add fd5a:1::11/64 dev net1 nodad
addr add fd5a:1::12/64 dev net1
addr add fd5a:1::13/64 dev net1 optimistic
addr add fd5a:1::14 peer fd5a:3::14/64 dev net1 nodad
addr add fd5a:2::11/64 dev net2 nodad
`, func(k *kernel.Netlink) error {
		index, err := indexOf(k, "net1")
		if err != nil {
			return err
		}
		found, err := k.IPv6Flags(index)
		if err != nil {
			return err
		}
		maps.DeleteFunc(found, func(a netip.Addr, _ uint32) bool { return a.IsLinkLocalUnicast() })
		const seen = unix.IFA_F_NODAD | unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_PERMANENT
		for addr, want := range map[string]uint32{
			"fd5a:1::11": unix.IFA_F_PERMANENT | unix.IFA_F_NODAD,
			"fd5a:1::12": unix.IFA_F_PERMANENT | unix.IFA_F_TENTATIVE,
			"fd5a:1::13": unix.IFA_F_PERMANENT | unix.IFA_F_TENTATIVE,
			"fd5a:1::14": unix.IFA_F_PERMANENT | unix.IFA_F_NODAD,
		} {
			flags, ok := found[netip.MustParseAddr(addr)]
			if !ok || flags&seen != want {
				t.Errorf("%s: %#x, found %v, want %#x", addr, flags, ok, want)
			}
			if optimistic := flags&unix.IFA_F_OPTIMISTIC != 0; optimistic && addr != "fd5a:1::13" {
				t.Errorf("%s is optimistic", addr)
			}
		}
		if len(found) != 4 {
			t.Errorf("%v are more than the link's", found)
		}
		if none, err := k.IPv6Flags(1 << 20); err != nil || len(none) != 0 {
			t.Errorf("a link that is not there: %v, %v", none, err)
		}
		return nil
	})
}
