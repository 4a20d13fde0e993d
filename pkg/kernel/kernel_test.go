package kernel_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

// in calls f with sockets in a namespace that the ip lines have prepared.
func in(t *testing.T, lines string, f func(k *kernel.Netlink) error) *testbed.Namespace {
	t.Helper()
	n := testbed.MustNamespace(t, "kernel")
	for line := range strings.Lines(lines) {
		if args := strings.Fields(line); len(args) > 0 {
			if _, err := n.Run(t.Context(), "ip", args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := n.Do(func() error {
		k, err := kernel.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		return f(k)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

const rail = `
link add net1 type veth peer name p1
link set net1 up
link set p1 up
addr add 10.61.1.11/24 dev net1
addr add 10.9.0.1 peer 10.9.0.2/30 dev net1
addr add fd5a:1::11/64 dev net1 nodad
`

// TestRulesRoundTrip makes each kind of rule, reads it back as it was, and sees what
// only looks like railtune's for what it is.
func TestRulesRoundTrip(t *testing.T) {
	rules := []policy.Rule{
		{Family: policy.IPv4, Priority: 720, From: netip.MustParsePrefix("10.61.1.11/32"), Action: policy.Lookup, Table: 7200005, Protocol: policy.Protocol},
		{Family: policy.IPv4, Priority: 721, OIF: "net1", Action: policy.Lookup, Table: 200, Protocol: policy.Protocol},
		{Family: policy.IPv4, Priority: 722, From: netip.MustParsePrefix("10.61.1.11/32"), Action: policy.Unreachable, Protocol: policy.Protocol},
		{Family: policy.IPv6, Priority: 720, From: netip.MustParsePrefix("fd5a:1::11/128"), Action: policy.Lookup, Table: 7200005, Protocol: policy.Protocol},
	}
	in(t, rail+`
rule add priority 700 from 10.61.1.11 to 10.0.0.0/8 lookup 7200005 protocol 72
rule add priority 701 from 10.61.1.11 fwmark 1 lookup 7200005 protocol 72
rule add priority 702 not from 10.61.1.11 lookup 7200005 protocol 72
rule add priority 703 from 10.61.1.11 lookup 7200005 suppress_prefixlength 0 protocol 72
rule add priority 704 from 10.61.1.11 lookup 7200005 protocol 99
`, func(k *kernel.Netlink) error {
		for _, r := range rules {
			if err := k.AddRule(r); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
		}
		for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
			found, err := k.Rules(f, func(r *kernel.FoundRule) bool { return r.Ours() })
			if err != nil {
				return err
			}
			var want []policy.Rule
			for _, r := range rules {
				if r.Family == f {
					want = append(want, r)
				}
			}
			if len(found) != len(want) {
				t.Fatalf("%v: found %v, want %v", f, found, want)
			}
			for i := range want {
				if found[i].Rule != want[i] {
					t.Errorf("found %v, want %v", found[i], want[i])
				}
			}
		}
		for _, r := range append(rules, rules...) { // the second time they are gone
			if err := k.DelRule(r); err != nil {
				t.Errorf("del %s: %v", r, err)
			}
		}
		left, err := k.Rules(policy.IPv4, func(r *kernel.FoundRule) bool { return r.Priority > 600 && r.Priority < 1000 })
		if len(left) != 5 {
			t.Errorf("other tools' rules are not all there: %v", left)
		}
		return err
	})
}

// TestRulesUpTo: a list that ends early has all that it should have, and the next
// request gets its own answer.
func TestRulesUpTo(t *testing.T) {
	var lines strings.Builder
	for i := range 3000 { // more than fits into one piece of a dump, on both sides of the end
		fmt.Fprintf(&lines, "rule add from 100.64.%d.%d lookup 500 priority %d\n", i>>8, i&255, 100+i)
	}
	n := testbed.MustNamespace(t, "kernel")
	if _, err := n.Feed(t.Context(), lines.String(), "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
	if err := n.Do(func() error {
		k, err := kernel.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		for _, last := range []uint32{0, 99, 100, 722, 1500, 3099, 40000} {
			want := min(max(0, int(last)-99), 3000)
			seen := 0
			found, err := k.RulesUpTo(policy.IPv4, last, func(r *kernel.FoundRule) bool { seen++; return r.Table == 500 })
			if err != nil || len(found) != want || seen > want+3 {
				t.Errorf("up to %d: %d rules of %d looked at, want %d: %v", last, len(found), seen, want, err)
			}
			all, err := k.Rules(policy.IPv4, func(r *kernel.FoundRule) bool { return r.Table == 500 })
			if err != nil || len(all) != 3000 {
				t.Errorf("all after those up to %d: %d, %v", last, len(all), err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestRoutesRoundTrip makes each kind of route and reads it back as it was.
func TestRoutesRoundTrip(t *testing.T) {
	in(t, rail, func(k *kernel.Netlink) error {
		links, err := k.Links()
		if err != nil {
			return err
		}
		index := 0
		for _, l := range links {
			if l.Name == "net1" {
				index = l.Index
			}
		}
		base := policy.Route{Table: 7200005, IfIndex: index, Protocol: policy.Protocol}
		with := func(edit func(r *policy.Route)) policy.Route { r := base; edit(&r); return r }
		src := netip.MustParseAddr("10.61.1.11")
		routes := []policy.Route{
			with(func(r *policy.Route) {
				r.Dst, r.Src, r.Scope = netip.MustParsePrefix("10.61.1.0/24"), src, policy.OnLink
			}),
			with(func(r *policy.Route) {
				r.Dst, r.GW, r.Src, r.MTU, r.AdvMSS = netip.MustParsePrefix("10.61.0.0/16"), netip.MustParseAddr("10.61.1.254"), src, 1400, 1360
			}),
			with(func(r *policy.Route) {
				r.Dst, r.GW = netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.61.1.254")
			}),
			with(func(r *policy.Route) {
				r.Table, r.Dst, r.GW, r.Metric = policy.MainTable, netip.MustParsePrefix("10.99.0.0/16"), netip.MustParseAddr("10.61.1.1"), 1005
			}),
			with(func(r *policy.Route) { r.Dst, r.Metric = netip.MustParsePrefix("fd5a:1::/64"), 1024 }),
			with(func(r *policy.Route) {
				r.Dst, r.GW, r.Metric = netip.MustParsePrefix("::/0"), netip.MustParseAddr("fe80::1"), 1024
			}),
			with(func(r *policy.Route) {
				r.Dst, r.Local, r.Scope = netip.MustParsePrefix("10.61.1.11/32"), true, policy.OnHost
			}),
			with(func(r *policy.Route) { r.Dst, r.Local, r.Metric = netip.MustParsePrefix("fd5a:1::11/128"), true, 1024 }),
		}
		for _, r := range routes {
			if err := k.AddRoute(r); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
		}
		for _, want := range routes {
			found, err := k.Routes(want.Family(), kernel.RouteFilter{Table: want.Table, Protocol: policy.Protocol})
			if err != nil {
				return err
			}
			ok := false
			for _, f := range found {
				ok = ok || f.Route == want && f.Ours()
			}
			if !ok {
				t.Errorf("%s is not among %v", want, found)
			}
		}
		all, err := k.Routes(policy.IPv4, kernel.RouteFilter{IfIndex: index, Protocol: policy.Protocol})
		if err != nil || len(all) != 5 {
			t.Errorf("over all tables: %v, %v", all, err)
		}
		for _, r := range append(routes, routes...) {
			if err := k.DelRoute(r); err != nil {
				t.Errorf("del %s: %v", r, err)
			}
		}
		empty, err := k.Routes(policy.IPv4, kernel.RouteFilter{Table: 7299999})
		if err != nil || len(empty) != 0 {
			t.Errorf("a table that never was: %v, %v", empty, err)
		}
		return nil
	})
}

// TestLinks reads what the plan depends on.
func TestLinks(t *testing.T) {
	in(t, rail+"addr add fd5a:2::11/64 dev net1\n", func(k *kernel.Netlink) error {
		links, err := k.Links()
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Name != "net1" {
				continue
			}
			if l.Kind != "veth" || !l.Up || l.Loopback || l.NoARP || l.ARPHRD != unix.ARPHRD_ETHER || len(l.MAC) != 6 {
				t.Errorf("net1 is %+v", l)
			}
			p2p, ok := l.Find(netip.MustParseAddr("10.9.0.1"))
			if !ok || p2p.Connected().String() != "10.9.0.0/30" || p2p.Prefix.Bits() != 32 {
				t.Errorf("point-to-point address is %+v", p2p)
			}
			fresh, ok := l.Find(netip.MustParseAddr("fd5a:2::11"))
			if !ok || !fresh.Tentative || fresh.FromRA {
				t.Errorf("an address in duplicate address detection is %+v", fresh)
			}
			settled, ok := l.Find(netip.MustParseAddr("fd5a:1::11"))
			if !ok || settled.Tentative {
				t.Errorf("an address without detection is %+v", settled)
			}
			return nil
		}
		return errors.New("no net1")
	})
}

// TestDefaultThrough finds the default route itself, and none where the kernel would
// only make something up.
func TestDefaultThrough(t *testing.T) {
	in(t, rail+`
link add eth0 type veth peer name p0
link set eth0 up
addr add 172.20.0.5/32 dev eth0
route add 169.254.1.1 dev eth0
route add default via 169.254.1.1 dev eth0
`, func(k *kernel.Netlink) error {
		links, err := k.Links()
		if err != nil {
			return err
		}
		for _, l := range links {
			hop, ok := k.DefaultThrough(policy.IPv4, l.Index)
			switch {
			case l.Name == "eth0" && (!ok || hop.IfIndex != l.Index || hop.GW.String() != "169.254.1.1"):
				t.Errorf("eth0: %+v, %v", hop, ok)
			case l.Name == "net1" && ok:
				t.Errorf("net1 has no default route, and this was found: %+v", hop)
			}
		}
		if _, ok := k.DefaultThrough(policy.IPv6, 0); ok {
			t.Error("IPv6 has no default route")
		}
		return nil
	})
}

// TestKernelsWords: an error carries the kernel's own explanation and is its errno.
func TestKernelsWords(t *testing.T) {
	k, err := kernel.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	err = k.AddRoute(policy.Route{Dst: netip.MustParsePrefix("10.0.0.0/8"), GW: netip.MustParsePrefix("192.0.2.1/32").Addr(), IfIndex: 1, Table: 7200001})
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

// TestLink: one link alone is what the list of all says of it.
func TestLink(t *testing.T) {
	t.Parallel()
	in(t, "link add net1 type veth peer name other\nlink add link net1 name sub type macvlan\n", func(k *kernel.Netlink) error {
		links, err := k.Links()
		if err != nil {
			return err
		}
		for _, want := range links {
			want.Addrs = nil
			if got, err := k.Link(want.Index); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v, %v; listed as %+v", got, err, want)
			}
		}
		if _, err := k.Link(1 << 20); !errors.Is(err, unix.ENODEV) {
			t.Errorf("a link that is not there: %v", err)
		}
		return nil
	})
}

// TestNSID: a namespace's number is the one that links name their peers' by.
func TestNSID(t *testing.T) {
	t.Parallel()
	peer, stranger := testbed.MustNamespace(t, "peer"), testbed.MustNamespace(t, "stranger")
	in(t, "link add net1 type veth peer name there netns "+peer.Name+"\n", func(k *kernel.Netlink) error {
		index, err := indexOf(k, "net1")
		if err != nil {
			return err
		}
		l, err := k.Link(index)
		if err != nil {
			return err
		}
		if id, err := nsidOf(k, peer); err != nil || id != l.ParentNSID || id < 0 {
			t.Errorf("%d, %v; the link says %d", id, err, l.ParentNSID)
		}
		if id, err := nsidOf(k, stranger); err != nil || id != -1 {
			t.Errorf("a namespace that nothing leads to: %d, %v", id, err)
		}
		if _, err := k.NSID(-1); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EBADF) {
			t.Errorf("no namespace at all: %v", err)
		}
		return nil
	})
}

func nsidOf(k *kernel.Netlink, n *testbed.Namespace) (int, error) {
	f, err := os.Open(n.Path())
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return k.NSID(int(f.Fd()))
}
