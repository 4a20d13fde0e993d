package neigh

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/testutils"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/testbed"
)

// TestMain runs the tests in a sandbox: what they make is gone with the process, however
// that ends.
func TestMain(m *testing.M) { testbed.Main(m) }

// lab is one link layer: a bridge in a namespace of its own, to which the rails
// of any number of pods are joined. All pods are in 10.61.0.0/16.
type lab struct {
	testing.TB
	fabric ns.NetNS
	pods   int
}

// pod is a namespace with rails.
type pod struct {
	*lab
	ns     ns.NetNS
	number int
	rails  []Rail
}

var ports atomic.Int64

func newLab(t testing.TB) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	l := &lab{TB: t}
	l.fabric = l.namespace()
	l.in(l.fabric, func() error {
		return joined(
			write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"),
			write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"),
			netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "fabric", MTU: 1500}, MulticastSnooping: new(bool)}),
			up("fabric"),
		)
	})
	return l
}

func (l *lab) namespace() ns.NetNS {
	l.Helper()
	n, err := testutils.NewNS()
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := joined(n.Close(), testutils.UnmountNS(n)); err != nil {
			l.Error(err)
		}
	})
	return n
}

// in runs f on a thread in a namespace and fails the test on its error.
func (l *lab) in(n ns.NetNS, f func() error) {
	l.Helper()
	if err := n.Do(func(ns.NetNS) error { return f() }); err != nil {
		l.Fatal(err)
	}
}

// pod makes a namespace whose interfaces start as the kernel's own defaults
// would have them, whatever the initial namespace has.
func (l *lab) pod() *pod {
	l.Helper()
	l.pods++
	p := &pod{lab: l, ns: l.namespace(), number: l.pods}
	l.in(p.ns, func() error {
		var errs []error
		for _, which := range []string{"all", "default"} {
			for _, key := range []string{"arp_ignore", "arp_announce", "arp_filter", "rp_filter", "proxy_arp", "accept_local"} {
				errs = append(errs, write("/proc/sys/net/ipv4/conf/"+which+"/"+key, "0"))
			}
			errs = append(errs, write("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", "1"))
		}
		return joined(append(errs, up("lo"))...)
	})
	return p
}

// rail gives the pod one more rail, net1, net2, …, with addresses.
func (p *pod) rail(addrs ...string) Rail {
	p.Helper()
	number := len(p.rails) + 1
	name, port := fmt.Sprintf("net%d", number), fmt.Sprintf("p%d", ports.Add(1))
	mac := hwaddr.MAC{0x02, 0, 0, 0, byte(p.number), byte(number)}
	var index int
	p.in(p.fabric, func() error {
		veth := &netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: port},
			PeerName:      name,
			PeerNamespace: netlink.NsFd(int(p.ns.Fd())), PeerHardwareAddr: net.HardwareAddr(mac),
		}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		bridge, err := netlink.LinkByName("fabric")
		if err != nil {
			return err
		}
		index = veth.Attrs().Index
		return joined(netlink.LinkSetMaster(veth, bridge), netlink.LinkSetUp(veth))
	})
	var rail Rail
	p.in(p.ns, func() (err error) {
		if err := up(name); err != nil {
			return err
		}
		for _, a := range addrs {
			if err := address(name, a); err != nil {
				return err
			}
		}
		own, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := awaitRunning(own.Attrs().Index); err != nil {
			return err
		}
		rail, err = railOf(name)
		return err
	})
	p.in(p.fabric, func() error { return awaitRunning(index) })
	p.rails = append(p.rails, rail)
	return rail
}

// awaitRunning waits until a link passes frames: a bridge port that has only
// just got its carrier is not forwarding yet.
func awaitRunning(index int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	carrier, err := WaitCarrier(ctx, index)
	if err == nil && !carrier {
		err = fmt.Errorf("link %d has no carrier after 30 s", index)
	}
	return err
}

// address adds an address; IPv6 ones without duplicate address detection.
func address(link, a string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(a)
	if err != nil {
		return err
	}
	if addr.IP.To4() == nil {
		addr.Flags = unix.IFA_F_NODAD
	}
	return netlink.AddrAdd(l, addr)
}

// carrierFlags are what Link.Carrier means.
const carrierFlags = unix.IFF_LOWER_UP | unix.IFF_RUNNING

func railOf(name string) (Rail, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return Rail{}, err
	}
	list, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return Rail{}, err
	}
	a := l.Attrs()
	r := Rail{Link: Link{
		Index: a.Index, Name: a.Name, MAC: hwaddr.MAC(a.HardwareAddr), Kind: l.Type(), ARPType: arpEthernet,
		Up: a.RawFlags&unix.IFF_UP != 0, Carrier: a.RawFlags&carrierFlags == carrierFlags, NoARP: a.RawFlags&unix.IFF_NOARP != 0,
		ParentIndex: a.ParentIndex, ParentNetns: a.NetNsID,
	}}
	for _, x := range list {
		addr, _ := netip.AddrFromSlice(x.IP)
		ones, _ := x.Mask.Size()
		if addr = addr.Unmap(); !addr.IsLinkLocalUnicast() {
			r.Addrs = append(r.Addrs, netip.PrefixFrom(addr, ones))
		}
	}
	return r, nil
}

// set writes an IPv4 setting of one of the pod's interfaces.
func (p *pod) set(link, key, value string) {
	p.Helper()
	p.in(p.ns, func() error { return write("/proc/sys/net/ipv4/conf/"+link+"/"+key, value) })
}

// write is set for a goroutine of the test's, which must not end it.
func (p *pod) write(link, key, value string) {
	err := p.ns.Do(func(ns.NetNS) error { return write("/proc/sys/net/ipv4/conf/"+link+"/"+key, value) })
	if err != nil {
		p.Error(err)
	}
}

// tune gives rails the two settings railtune gives them.
func (p *pod) tune(rails ...Rail) {
	p.Helper()
	for _, r := range rails {
		p.set(r.Link.Name, "arp_ignore", "1")
		p.set(r.Link.Name, "arp_announce", "2")
	}
}

// patient is the timeout of proofs that end by an event; a busy machine may
// need long for it.
const patient = 20 * time.Second

// request is what an ADD would ask for the pod's rail with this number.
func (p *pod) request(number int) Request {
	req := Request{Timeout: 300 * time.Millisecond, EffectiveARPIgnore: arpIgnoreOf}
	for i, r := range p.rails {
		if i+1 == number {
			req.Rail = r
		} else {
			req.Siblings = append(req.Siblings, r)
		}
	}
	return req
}

func arpIgnoreOf(ifindex int) string {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return ""
	}
	b, _ := os.ReadFile("/proc/sys/net/ipv4/conf/" + l.Attrs().Name + "/arp_ignore")
	return string(b[:max(0, len(b)-1)])
}

func up(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

func write(path, value string) error { return os.WriteFile(path, []byte(value), 0o600) }

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
