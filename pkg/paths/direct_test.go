package paths

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/railtune/railtune/pkg/testbed"
)

func do(t *testing.T, n *testbed.Namespace, lines ...string) {
	t.Helper()
	for _, line := range lines {
		args := strings.Fields(line)
		if _, err := n.Run(t.Context(), args[0], args[1:]...); err != nil {
			t.Fatal(err)
		}
	}
}

// oneSubnet is two pods with the two ARP values and no rules.
func oneSubnet(t *testing.T) *testbed.Fabric {
	t.Helper()
	f := testbed.MustFabric(t, testbed.Options{Layout: testbed.OneSubnet, Rails: rails, Direct: true})
	for _, p := range f.Pods {
		do(t, p.Namespace, "sysctl -qw net.ipv4.conf.all.arp_ignore=1", "sysctl -qw net.ipv4.conf.all.arp_announce=2")
	}
	return f
}

// Without source rules main decides, and takes the first rail for all.
func TestNoSourceRules(t *testing.T) {
	r := try(t, oneSubnet(t), Options{})
	expect(t, r, "net1: ok ok ok", "net2: wrong-way wrong-way wrong-way", "net3: wrong-way wrong-way wrong-way")
	if p := r.at(2, 2); !p.Device.good() || p.Source.Leaves != "net1" || !strings.Contains(p.Why, "out of net1") {
		t.Errorf("net2: %+v", p)
	}
}

// The peer has learned the MAC of rail 2 for the address of rail 1: replies come in
// there, and a socket bound to rail 1 would never know.
func TestReplyOnAnotherRail(t *testing.T) {
	f := oneSubnet(t)
	a, b := f.Pods[0], f.Pods[1]
	var mac string
	if err := a.Do(func() error {
		l, err := netlink.LinkByName("net2")
		if err == nil {
			mac = l.Attrs().HardwareAddr.String()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Rails {
		do(t, b.Namespace, fmt.Sprintf("ip neigh replace %s lladdr %s dev %s nud permanent", a.Rails[0].Addr.Addr(), mac, r.Name))
	}
	r := try(t, f, Options{SameRail: true})
	expect(t, r, "net1: other-rail", "net2: wrong-way", "net3: wrong-way")
	if p := r.Pairs[0]; p.Device.Elsewhere != "net2" || p.Device.Back != 0 {
		t.Errorf("net1: %+v", p)
	}
}

// IPv6, a subnet for each rail: all work, and then the switch has lost a route.
func TestIPv6(t *testing.T) {
	testbed.NeedRoot(t)
	t.Parallel()
	f := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Rails: rails, Direct: true})
	do(t, f.Switches, "sysctl -qw net.ipv6.conf.all.forwarding=1")
	var peers []Peer
	for k := 1; k <= rails; k++ {
		do(t, f.Switches, fmt.Sprintf("ip addr add fd61:%d::fe/64 dev br%d nodad", k, k))
		for i, p := range f.Pods {
			addr := fmt.Sprintf("fd61:%d::%d", k, 11+i)
			do(t, p.Namespace, fmt.Sprintf("ip addr add %s/64 dev net%d nodad", addr, k),
				fmt.Sprintf("ip route add fd61:%d::/64 dev net%d table %d", k, k, 100+k),
				fmt.Sprintf("ip route add fd61::/16 via fd61:%d::fe dev net%d table %d", k, k, 100+k),
				fmt.Sprintf("ip -6 rule add from %s lookup %d", addr, 100+k), fmt.Sprintf("ip -6 rule add oif net%d lookup %d", k, 100+k))
			if err := p.SettleAddresses(fmt.Sprintf("net%d", k), netip.MustParseAddr(addr)); err != nil {
				t.Fatal(err)
			}
		}
		peers = append(peers, Peer{Rail: fmt.Sprintf("net%d", k), Addr: netip.MustParseAddr(fmt.Sprintf("fd61:%d::12", k))})
	}
	r := try(t, f, Options{Peers: peers})
	expect(t, r, "net1: ok ok ok", "net2: ok ok ok", "net3: ok ok ok")
	if got := r.at(1, 2).path(); got != "fd61:1::fe → fd61:2::12" {
		t.Errorf("the hops are %s", got)
	}
	do(t, f.Switches, "ip addr del fd61:3::fe/64 dev br3")
	r = try(t, f, Options{Peers: peers})
	expect(t, r, "net1: ok ok switch-no-route", "net2: ok ok switch-no-route", "net3: gateway-silent gateway-silent ok")
}

// Sixteen rails fit into the width, and dual stack into one table.
func TestTableOfSixteen(t *testing.T) {
	r := &Report{}
	for i := range 16 {
		r.Rails = append(r.Rails, Rail{Name: fmt.Sprintf("gpu-rail-15-v%02d", i)})
	}
	for i, from := range r.Rails {
		for j, to := range r.Rails {
			p := Pair{From: from.Name, Code: OK, Peer: Peer{Pod: "worker-with-a-rather-long-name-0", Rail: to.Name, Addr: netip.AddrFrom4([4]byte{10, 61, byte(j), 12})}}
			p.Device, p.Source = Outcome{Sent: 3, Back: 3}, Outcome{Sent: 3, Back: 3}
			if i == 3 || j == 4 {
				p.Code, p.Why, p.Device.Back = BlackHole, strings.Repeat("nothing comes back ", 12), 0
				p.Hops = []netip.Addr{{}, netip.AddrFrom4([4]byte{10, 61, byte(i), 254})}
			}
			r.Pairs = append(r.Pairs, p)
		}
	}
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	lines := strings.Split(b.String(), "\n")
	for _, line := range lines {
		if len([]rune(line)) > width {
			t.Errorf("a line of %d columns: %s", len([]rune(line)), line)
		}
	}
	if len(lines) > 45 {
		t.Errorf("%d lines", len(lines))
	}
	if want := "gpu-rail-15-v03 -+"; !strings.Contains(b.String(), want) {
		t.Errorf("no row starts with %q", want)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestMine(t *testing.T) {
	f := newLab(t, nil)
	do(t, f.Pods[0].Namespace, "ip link add extra type bridge", "ip addr add 10.99.0.1/24 dev extra", "ip link set extra up")
	for _, n := range []struct {
		of   *testbed.Pod
		want []Peer
	}{{f.Pods[0], peersOf(f.Pods[0])}, {f.Pods[1], peersOf(f.Pods[1])}} {
		var got []Peer
		if err := n.of.Do(func() (err error) { got, err = Mine(); return err }); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(n.want) {
			t.Errorf("the rails are %v, want %v", got, n.want)
		}
	}
	// An address of its own in the map is a mistake, not a path.
	err := f.Pods[0].Do(func() error {
		_, err := Run(context.Background(), Options{Peers: peersOf(f.Pods[0]), Count: 1, Timeout: DefaultTimeout, MaxHops: 1})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "the map is of this pod") {
		t.Errorf("a map of the pod itself: %v", err)
	}
	err = f.Pods[0].Do(func() error {
		_, err := Run(context.Background(), Options{Peers: []Peer{{Rail: "rdma0", Addr: netip.MustParseAddr("10.61.1.12")}}, Count: 1, Timeout: DefaultTimeout, MaxHops: 1})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "there is no rdma0 here; this namespace has eth0, net1, net2, net3, extra") {
		t.Errorf("a map of other names: %v", err)
	}
}

// Without any railtune the rails are all but the way out.
func TestMineWithoutRailtune(t *testing.T) {
	f := oneSubnet(t)
	var got []Peer
	if err := f.Pods[0].Do(func() (err error) { got, err = Mine(); return err }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(peersOf(f.Pods[0])) {
		t.Errorf("the rails are %v", got)
	}
}
