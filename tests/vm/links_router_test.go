//go:build vm

package vm

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

// routed is the prefix that routers announce.
var routed = netip.MustParsePrefix("fd61:a::/64")

// router speaks router discovery (RFC 4861 section 6.2) on one link, when told to.
type router struct {
	conn *ndp.Conn
	addr netip.Addr
	mac  net.HardwareAddr
	// asked holds the MACs of those who solicited an advertisement.
	asked chan string
}

func newRouter(t *testing.T, n *testbed.Namespace, link string) *router {
	t.Helper()
	r := &router{mac: parseMAC(t, macOf(t, n, link)), asked: make(chan string, 64)}
	r.conn, r.addr = listenND(t, n, link, ipv6.ICMPTypeRouterSolicitation, "ff02::2")
	go func() {
		defer close(r.asked)
		for {
			m, _, _, err := r.conn.ReadFrom()
			if err != nil {
				return // the end of the test
			}
			for _, o := range m.(*ndp.RouterSolicitation).Options {
				if from, ok := o.(*ndp.LinkLayerAddress); ok {
					r.asked <- from.Addr.String()
				}
			}
		}
	}()
	return r
}

// listenND opens a socket for one type of neighbour discovery messages.
func listenND(t *testing.T, n *testbed.Namespace, link string, kind ipv6.ICMPType, group string) (conn *ndp.Conn, addr netip.Addr) {
	t.Helper()
	err := n.Do(func() error {
		ifi, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		if conn, addr, err = ndp.Listen(ifi, ndp.LinkLocal); err != nil {
			return err
		}
		var filter ipv6.ICMPFilter
		filter.SetAll(true)
		filter.Accept(kind)
		if err := conn.SetICMPFilter(&filter); err != nil {
			return err
		}
		return conn.JoinGroup(netip.MustParseAddr(group))
	})
	if err != nil {
		t.Fatalf("neighbour discovery on %s of %s: %v", link, n.Name, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, addr
}

// advertise announces the router to all on the link, and the prefix for valid.
func (r *router) advertise(t *testing.T, valid time.Duration) {
	t.Helper()
	if err := r.conn.WriteTo(r.advertisement(valid), nil, netip.MustParseAddr("ff02::1")); err != nil {
		t.Fatalf("advertising: %v", err)
	}
}

func (r *router) advertisement(valid time.Duration) ndp.Message {
	return &ndp.RouterAdvertisement{
		RouterLifetime: time.Hour,
		Options: []ndp.Option{
			&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: r.mac},
			&ndp.PrefixInformation{
				Prefix: routed.Addr(), PrefixLength: uint8(routed.Bits()), OnLink: true,
				AutonomousAddressConfiguration: true, ValidLifetime: valid, PreferredLifetime: valid,
			},
		},
	}
}

// keepAdvertising is advertise again and again, to the end of the test, as routers do: often
// enough that nothing it announces ends before it is announced anew.
func (r *router) keepAdvertising(t *testing.T, valid time.Duration) {
	t.Helper()
	r.advertise(t, valid)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-time.After(valid / 12):
				_ = r.conn.WriteTo(r.advertisement(valid), nil, netip.MustParseAddr("ff02::1"))
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}

// solicited waits for the next solicitation and returns the MAC in it.
func (r *router) solicited(t *testing.T) string {
	t.Helper()
	select {
	case mac := <-r.asked:
		return mac
	case <-time.After(patience):
		t.Fatal("nobody solicited the router")
		return ""
	}
}

func (r *router) mustNotHaveBeenAsked(t *testing.T) {
	t.Helper()
	select {
	case mac := <-r.asked:
		t.Errorf("%s solicited the router as well", mac)
	default:
	}
}

// hearRouters returns a function that waits for the next advertisement to arrive on a link.
func hearRouters(t *testing.T, n *testbed.Namespace, link string) func() {
	t.Helper()
	conn, _ := listenND(t, n, link, ipv6.ICMPTypeRouterAdvertisement, "ff02::1")
	return func() {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := conn.ReadFrom(); err != nil {
			t.Fatalf("no advertisement on %s of %s: %v", link, n.Name, err)
		}
	}
}

// until waits, by the kernel's news of IPv6 addresses and routes, for something to hold.
func until(t *testing.T, n *testbed.Namespace, what string, holds func() bool) {
	t.Helper()
	var news *nl.NetlinkSocket
	err := n.Do(func() (err error) {
		news, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer news.Close()
	if err := news.SetReceiveTimeout(&unix.Timeval{Sec: int64(patience.Seconds())}); err != nil {
		t.Fatal(err)
	}
	for !holds() {
		if _, _, err := news.Receive(); err != nil {
			t.Fatalf("waiting for %s in %s: %v", what, n.Name, err)
		}
	}
}

func parseMAC(t *testing.T, text string) net.HardwareAddr {
	t.Helper()
	mac, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return mac
}
