package doctor_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

func (b *bed) rail(name string) testbed.Rail {
	b.Helper()
	for _, r := range b.pod.Rails {
		if r.Name == name {
			return r
		}
	}
	b.Fatalf("no rail %s", name)
	return testbed.Rail{}
}

// mac is a rail's hardware address.
func (b *bed) mac(rail string) (mac string) {
	b.Helper()
	if err := b.pod.Do(func() error {
		link, err := net.InterfaceByName(rail)
		if err == nil {
			mac = link.HardwareAddr.String()
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return mac
}

// near is an address in a rail's subnet, told by its last byte.
func (b *bed) near(rail string, last byte) netip.Addr {
	b.Helper()
	bytes := b.rail(rail).Addr.Masked().Addr().As4()
	bytes[3] = last
	return netip.AddrFrom4(bytes)
}

// neighbour makes a neighbour entry.
func (b *bed) neighbour(rail string, last byte, mac, state string) {
	b.Helper()
	b.sh(fmt.Sprintf("ip neigh replace %s dev %s lladdr %s nud %s", b.near(rail, last), rail, mac, state))
}

// peers declares addresses of a rail's subnet as peers.
func (b *bed) peers(rail string, last ...byte) {
	b.Helper()
	for _, l := range last {
		b.options.Peers = append(b.options.Peers, b.near(rail, l))
	}
}

// peerAnswers gives the fabric a station with an address of the one subnet, declares it
// as a peer, and has doctor ask it.
func (b *bed) peerAnswers(last byte) {
	b.Helper()
	b.shIn(b.fabric.Switches, fmt.Sprintf("ip addr add %s/16 dev leafA", b.near("net1", last)))
	b.peers("net1", last)
	b.options.Probe = true
}

// twoGateways adds a second station that answers for a rail's gateway.
func (b *bed) twoGateways(rail string) {
	b.Helper()
	n := testbed.MustNamespace(b.TB, "second")
	b.shIn(b.fabric.Switches, "ip link add second type veth peer name second0; ip link set second master br"+rail[len("net"):]+" up; "+
		"ip link set second0 netns "+n.Name)
	b.shIn(n, fmt.Sprintf("ip addr add %s/24 dev second0; ip link set second0 up", b.rail(rail).Gateway))
	if err := n.Settle(); err != nil {
		b.Fatal(err)
	}
	if err := b.fabric.Switches.Settle(); err != nil {
		b.Fatal(err)
	}
}

// manyPeers declares more peers than any host's neighbour table is likely to hold.
func (b *bed) manyPeers() {
	b.Helper()
	limit := b.look().Namespace.NeighbourTables[0].Limit
	a := b.near("net1", 0)
	for range limit/rails + 1 {
		a = a.Next()
		b.options.Peers = append(b.options.Peers, a)
	}
}

// withoutDevice replaces the rules by those of a node that lost their device: each rail's
// table has a default route, and the first table takes everything.
func (b *bed) withoutDevice() {
	b.Helper()
	b.sh("for p in 1000 1001 1002; do ip rule del priority $p 2>/dev/null || true; done")
	for i := len(b.pod.Rails) - 1; i >= 0; i-- {
		r := b.pod.Rails[i]
		b.sh(fmt.Sprintf("ip route replace %s dev %s table %d scope link; ip route add default dev %s table %d; ip rule add priority %d lookup %d",
			r.Addr.Masked(), r.Name, 101+i, r.Name, 101+i, 2000-i, 101+i))
	}
}

// move takes a rail out of the namespace and back, and gives it its address and routes
// again, as whoever moves it does; nobody gives it its settings.
func (b *bed) move(rail string) {
	b.Helper()
	away := testbed.MustNamespace(b.TB, "away")
	out, err := b.pod.Run(b.Context(), "ip", "-4", "route", "show", "table", "all", "dev", rail)
	if err != nil {
		b.Fatal(err)
	}
	b.sh("ip link set " + rail + " netns " + away.Name)
	b.shIn(away, "ip link set "+rail+" netns "+b.pod.Name)
	b.sh(fmt.Sprintf("ip link set %s up; ip addr add %s dev %s", rail, b.rail(rail).Addr, rail))
	for line := range strings.Lines(out) {
		line = strings.ReplaceAll(strings.TrimSpace(line), " linkdown", "")
		if line != "" && !strings.Contains(line, "table local") && !strings.Contains(line, "proto kernel") {
			b.sh("ip route add " + line + " dev " + rail)
		}
	}
	b.settle()
}

// settle waits until links and link-local addresses are final.
func (b *bed) settle() {
	b.Helper()
	if err := b.pod.Settle(); err != nil {
		b.Fatal(err)
	}
	for _, r := range b.pod.Rails {
		if err := b.pod.SettleAddresses(r.Name); err != nil {
			b.Fatal(err)
		}
	}
}

// failDAD gives net2 an IPv6 address that another station on its link has.
func (b *bed) failDAD() {
	b.Helper()
	taken := addr("fd5a:99::1")
	bridge := "leafA"
	if b.fabric.Layout == testbed.PerRail {
		bridge = "br2"
	}
	b.shIn(b.fabric.Switches, "ip -6 addr add fd5a:99::1/64 dev "+bridge+" nodad")
	if err := b.fabric.Switches.SettleAddresses(bridge, taken); err != nil {
		b.Fatal(err)
	}
	updates, done := make(chan netlink.AddrUpdate, 64), make(chan struct{})
	defer close(done)
	if err := b.pod.Do(func() error { return netlink.AddrSubscribe(updates, done) }); err != nil {
		b.Fatal(err)
	}
	b.sh("echo 1 > /proc/sys/net/ipv6/conf/net2/accept_dad; ip -6 addr add fd5a:99::1/64 dev net2")
	late := time.After(30 * time.Second)
	for {
		select {
		case a := <-updates:
			if a.LinkAddress.IP.Equal(net.IP(taken.AsSlice())) && a.Flags&unix.IFA_F_DADFAILED != 0 {
				return
			}
		case <-late:
			b.Fatal("duplicate address detection has not failed after 30 s")
		}
	}
}
