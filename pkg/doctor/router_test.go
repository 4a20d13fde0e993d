package doctor_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

// router advertises a prefix and itself on one bridge, when it is solicited and when it
// is told to.
type router struct {
	conn   *ndp.Conn
	prefix netip.Prefix
}

// newRouter starts a router on an interface of a namespace.
func newRouter(b *bed, n *testbed.Namespace, ifname string, prefix netip.Prefix) *router {
	b.Helper()
	r := &router{prefix: prefix}
	if err := n.SettleAddresses(ifname); err != nil {
		b.Fatal(err)
	}
	if err := n.Do(func() error {
		ifi, err := net.InterfaceByName(ifname)
		if err != nil {
			return err
		}
		if r.conn, _, err = ndp.Listen(ifi, ndp.LinkLocal); err != nil {
			return err
		}
		return r.conn.JoinGroup(netip.MustParseAddr("ff02::2"))
	}); err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, _, _, err := r.conn.ReadFrom()
			if err != nil {
				return
			}
			if _, asked := m.(*ndp.RouterSolicitation); asked {
				_ = r.advertise()
			}
		}
	}()
	b.Cleanup(func() { r.conn.Close(); <-done })
	return r
}

func (r *router) advertise() error {
	return r.conn.WriteTo(&ndp.RouterAdvertisement{
		CurrentHopLimit: 64, RouterLifetime: 30 * time.Minute,
		Options: []ndp.Option{&ndp.PrefixInformation{
			PrefixLength: uint8(r.prefix.Bits()), OnLink: true, AutonomousAddressConfiguration: true,
			ValidLifetime: time.Hour, PreferredLifetime: time.Hour, Prefix: r.prefix.Addr(),
		}},
	}, nil, netip.MustParseAddr("ff02::1"))
}

// newRABed makes rails without IPv4, each on a link layer with a router.
func newRABed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, testbed.PerRail)
	b.options.Rails = []string{"net*"}
	for _, r := range b.pod.Rails {
		b.sh("ip addr del " + r.Addr.String() + " dev " + r.Name)
		prefix := netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x5a, 0, byte(r.Index)}), 64)
		b.ra = append(b.ra, newRouter(b, b.fabric.Switches, "br"+r.Name[len("net"):], prefix))
	}
	return b
}

// advertise sends one advertisement on every rail and waits until it has taken effect.
func (b *bed) advertise() {
	b.Helper()
	for i, r := range b.ra {
		name := b.pod.Rails[i].Name
		b.awaitRA(name, func() error { return r.advertise() })
	}
}

// awaitRA waits until an interface has an address and a default route from a router
// advertisement, which ask brings about.
func (b *bed) awaitRA(ifname string, ask func() error) {
	b.Helper()
	routes, addrs, done := make(chan netlink.RouteUpdate, 64), make(chan netlink.AddrUpdate, 64), make(chan struct{})
	defer close(done)
	index := 0
	if err := b.pod.Do(func() error {
		link, err := netlink.LinkByName(ifname)
		if err != nil {
			return err
		}
		index = link.Attrs().Index
		if err := netlink.AddrSubscribeWithOptions(addrs, done, netlink.AddrSubscribeOptions{ListExisting: true}); err != nil {
			return err
		}
		return netlink.RouteSubscribeWithOptions(routes, done, netlink.RouteSubscribeOptions{ListExisting: true})
	}); err != nil {
		b.Fatal(err)
	}
	if err := ask(); err != nil {
		b.Fatal(err)
	}
	address, route := false, false
	late := time.After(30 * time.Second)
	for !address || !route {
		select {
		case a := <-addrs:
			final := a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0
			address = address || a.LinkIndex == index && a.NewAddr && final && slices.Equal(a.LinkAddress.IP[:2], []byte{0xfd, 0x5a})
		case r := <-routes:
			isDefault := r.Dst == nil || r.Dst.IP.IsUnspecified()
			route = route || r.LinkIndex == index && r.Type == unix.RTM_NEWROUTE && isDefault && r.Protocol == unix.RTPROT_RA
		case <-late:
			b.Fatalf("%s: address %v, default route %v after 30 s", ifname, address, route)
		}
	}
}
