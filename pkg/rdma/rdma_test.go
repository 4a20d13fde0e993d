package rdma

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

const (
	v4gid = "0000:0000:0000:0000:0000:ffff:0a09:0001"
	v6gid = "fd5a:0001:0000:0000:0000:0000:0000:0011"
	llgid = "fe80:0000:0000:0000:b498:75ff:fea3:26fe"
)

var v4, v6 = netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd5a:1::11")

func TestNoRDMA(t *testing.T) {
	if _, err := os.Stat("/sys/class/infiniband"); err == nil {
		t.Skip("this kernel has RDMA: the tests in a virtual machine are about that")
	}
	if _, err := Open(); !errors.Is(err, ErrNone) {
		t.Errorf("Open: %v", err)
	}
	if _, err := ForLink(&netstate.Link{Index: 1, Name: "lo"}, nil); !errors.Is(err, ErrNone) {
		t.Errorf("ForLink: %v", err)
	}
}

// A sysfs that is made in a namespace shows that namespace, whatever /sys is, also to a
// thread that has left it.
func TestSysfsOfTheNamespace(t *testing.T) {
	testbed.NeedRoot(t)
	pod := testbed.MustNamespace(t, "pod")
	if _, err := pod.Run(t.Context(), "ip", "link", "add", "net7", "type", "veth", "peer", "name", "net7p"); err != nil {
		t.Fatal(err)
	}
	var mount int
	err := pod.Do(func() (err error) {
		mount, err = mountSysfs()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(mount)
	for path, want := range map[string]error{"class/net/net7/ifindex": nil, "class/net/eth0/ifindex": unix.ENOENT} {
		if err := unix.Faccessat(mount, path, unix.R_OK, 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if fd, err := unix.Openat(mount, "class/net/net7/mtu", unix.O_WRONLY, 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("opened for writing (descriptor %d): %v", fd, err)
	}
}

func TestGIDs(t *testing.T) {
	f := fakeSysfs{t.TempDir()}
	p := f.device(t, "mlx5_0",
		entry{llgid, RoCEv1, "net1"}, entry{}, entry{v4gid, RoCEv2, "net1"}, entry{v6gid, RoCEv2, "net2"}, entry{})
	v := f.view(t)
	want := []GID{
		{0, netip.MustParseAddr("fe80::b498:75ff:fea3:26fe"), RoCEv1, "net1"}, {2, v4, RoCEv2, "net1"}, {3, v6, RoCEv2, "net2"},
	}
	var got []GID
	for g, err := range v.GIDs(p) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, g)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for g := range v.GIDs(p) {
		if g.Index != 0 {
			t.Error("went on after break")
		}
		break
	}
}

// Reading stops with the error, and a device that is gone is one, not an empty table.
func TestGIDErrors(t *testing.T) {
	f := fakeSysfs{t.TempDir()}
	f.device(t, "bad", entry{"rubbish", RoCEv2, "net1"}, entry{v4gid, RoCEv2, "net1"})
	f.device(t, "typeless", entry{v4gid, "", "net1"}, entry{v4gid, RoCEv2, "net1"})
	v := f.view(t)
	for _, name := range []string{"gone", "bad", "typeless"} {
		n := 0
		for _, err := range v.GIDs(Port{Device: name, Number: 1}) {
			n++
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d answers", name, n)
		}
	}
}

func TestUnused(t *testing.T) {
	for err, want := range map[error]bool{unix.EINVAL: true, unix.ENODATA: true, unix.EACCES: false, nil: false} {
		if unused(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

func TestMissing(t *testing.T) {
	f := fakeSysfs{t.TempDir()}
	ours := []netip.Addr{v4, v6}
	for _, c := range []struct {
		name  string
		table []entry
		want  string
	}{
		{"both", []entry{{v6gid, RoCEv2, "net1"}, {v4gid, RoCEv1, "net1"}, {v4gid, RoCEv2, "net1"}, {}}, ""},
		{"one", []entry{{v6gid, RoCEv2, "net1"}, {}}, "RDMA device one port 1 has no RoCE v2 GID for 10.9.0.1"},
		{
			"version",
			[]entry{{v6gid, RoCEv2, "net1"}, {v4gid, RoCEv1, "net1"}, {}},
			"RDMA device version port 1 has no RoCE v2 GID for 10.9.0.1 (only index 1: IB/RoCE v1 of net1)",
		},
		{
			"other",
			[]entry{{}, {v6gid, RoCEv2, "net2"}, {v4gid, RoCEv2, "net1"}, {}},
			"RDMA device other port 1 has no RoCE v2 GID for fd5a:1::11 (only index 1: RoCE v2 of net2)",
		},
		{
			"full",
			[]entry{{llgid, RoCEv2, "net1"}, {v4gid, RoCEv2, "net1"}},
			"RDMA device full port 1 has no RoCE v2 GID for fd5a:1::11 (all 2 entries of its table are in use)",
		},
	} {
		p := f.device(t, c.name, c.table...)
		absent, err := (&Link{View: f.view(t), Name: "net1", Ports: []Port{p}}).Missing(ours)
		got := ""
		for _, a := range absent {
			got += a.String()
		}
		if got != c.want || err != nil {
			t.Errorf("%s: %q, %v\nwant %q", c.name, got, err, c.want)
		}
	}
}

// Every port has to have the GIDs, except one that has none in this sense.
func TestMissingByPort(t *testing.T) {
	f := fakeSysfs{t.TempDir()}
	a, b := f.device(t, "a", entry{v4gid, RoCEv2, "net1"}, entry{}), f.device(t, "b", entry{})
	iwarp := f.device(t, "iwarp", entry{})
	iwarp.Protocol = "iw"
	absent, err := (&Link{View: f.view(t), Name: "net1", Ports: []Port{a, b, iwarp}}).Missing([]netip.Addr{v4})
	if err != nil || len(absent) != 1 || absent[0].Port.Device != "b" {
		t.Errorf("%v, %v", absent, err)
	}
}

func TestWait(t *testing.T) {
	f := fakeSysfs{t.TempDir()}
	p := f.device(t, "late", entry{"", RoCEv2, "net1"})
	l := &Link{View: f.view(t), Name: "net1", Ports: []Port{p}}
	over, stop := context.WithCancel(t.Context())
	stop()
	absent, err := l.Wait(over, []netip.Addr{v4})
	if len(absent) != 1 || err != nil {
		t.Errorf("an empty table and no time: %v, %v", absent, err)
	}
	filled := f.device(t, "filled", entry{v4gid, RoCEv2, "net1"})
	time.AfterFunc(firstPause, func() {
		if err := os.Rename(filepath.Join(f.dir, filled.dir(), "gids/0"), filepath.Join(f.dir, p.dir(), "gids/0")); err != nil {
			t.Error(err)
		}
	})
	late, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if absent, err := l.Wait(late, []netip.Addr{v4}); len(absent) != 0 || err != nil {
		t.Errorf("a table that fills: %v, %v", absent, err)
	}
	if absent, err := l.Wait(over, []netip.Addr{v4}); len(absent) != 0 || err != nil {
		t.Errorf("a full table and no time: %v, %v", absent, err)
	}
}

func TestServing(t *testing.T) {
	ports := []Port{{Device: "a", IfIndex: 7}, {Device: "b"}, {Device: "c", IfIndex: 9}, {Device: "d", IfIndex: 7}}
	names := func(ports []Port) (out string) {
		for _, p := range ports {
			out += p.Device
		}
		return out
	}
	for _, c := range []struct {
		links []int
		want  string
	}{{[]int{7}, "ad"}, {[]int{9, 8}, "c"}, {[]int{0}, ""}, {nil, ""}} {
		if got := names(serving(ports, c.links)); got != c.want {
			t.Errorf("%v: %q, want %q", c.links, got, c.want)
		}
	}
}

// Where the lower link cannot be reached, a GID under the link's name says which port it is.
func TestListing(t *testing.T) {
	f := fakeSysfs{t.TempDir()}
	ports := []Port{
		f.device(t, "elsewhere", entry{v4gid, RoCEv2, "net2"}, entry{llgid, RoCEv2, "net1"}),
		f.device(t, "right", entry{}, entry{v4gid, RoCEv2, "net1"}),
	}
	l := &netstate.Link{Name: "net1", Addrs: []netstate.Addr{{Prefix: netip.PrefixFrom(v4, 24)}}}
	got, err := f.view(t).listing(ports, l)
	if err != nil || len(got) != 1 || got[0].Device != "right" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestStacked(t *testing.T) {
	for _, c := range []struct {
		kind   string
		parent int
		want   bool
	}{{"ipvlan", 3, true}, {"vlan", 3, true}, {"veth", 3, false}, {"", 0, false}, {"macvlan", 0, false}} {
		if got := Stacked(&netstate.Link{Kind: c.kind, Parent: c.parent}); got != c.want {
			t.Errorf("%s on %d: %v", c.kind, c.parent, got)
		}
	}
}

// lowerLinks follows what a link is stacked on, within the namespace, and not a veth to
// its peer.
func TestLowerLinks(t *testing.T) {
	testbed.NeedRoot(t)
	node, pod := testbed.MustNamespace(t, "node"), testbed.MustNamespace(t, "pod")
	for _, c := range []struct {
		in   *testbed.Namespace
		link string
	}{
		{pod, "low index 50 type veth peer name lowp"},
		{pod, "link low name mid index 60 type macvlan"},
		{pod, "link mid name top index 70 type macvlan"},
		{node, "low index 50 type veth peer name lowp"},
		{node, "link low name far index 80 netns " + pod.Name + " type macvlan"},
	} {
		if _, err := c.in.Run(t.Context(), "ip", strings.Fields("link add "+c.link)...); err != nil {
			t.Fatal(err)
		}
	}
	err := pod.Do(func() error {
		// The kernel stacks a macvlan on a macvlan's lower link.
		for index, want := range map[int][]int{50: {50}, 60: {60, 50}, 70: {70, 50}, 80: {80}, 99: {99}} {
			if got, err := lowerLinks(index); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d: %v, %v, want %v", index, got, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want uint32
	}{{[]byte{4}, 4}, {[]byte{1, 0, 0, 0}, 1}, {nil, 0}, {[]byte{1, 2}, 0}} {
		if got := number(c.b); got != c.want {
			t.Errorf("%v: %d", c.b, got)
		}
	}
	if stateName(4) != "ACTIVE" || stateName(9) != "state 9" {
		t.Error(stateName(4), stateName(9))
	}
}
