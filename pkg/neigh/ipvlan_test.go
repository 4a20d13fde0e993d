package neigh

import (
	"errors"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// With the kernel's own ipvlan, where it has that: two children of one parent
// in one pod, a third in another pod as a peer, and a station outside.
func TestIPVLANOfTheKernel(t *testing.T) {
	l := newLab(t)
	host, a, c, b := l.pod(), l.pod(), l.pod(), l.pod()
	parent := host.rail("10.61.9.1/16")
	b.tune(b.rail("10.61.2.1/16"))
	host.child(parent, a, "10.61.1.1/16")
	host.child(parent, a, "10.61.1.2/16")
	host.child(parent, c, "10.61.1.3/16")
	req := a.request(1)
	req.Peers = addrs("10.61.2.1", "10.61.1.3")
	report := a.prove(req)
	expect(t, report, "10.61.1.1", Skipped, "ipvlan")
	expect(t, report, "10.61.2.1", OK)
	expect(t, report, "10.61.1.3", OK, parent.Link.MAC.String())

	req.Parent = &Parent{Link: parent.Link, Enter: func(open func() error) error {
		return host.ns.Do(func(ns.NetNS) error { return open() })
	}}
	for _, r := range a.prove(req).Results {
		if r.Verdict != OK {
			t.Errorf("false alarm: %s", r)
		}
	}
	if err := SameMAC(req.Rail, req.Siblings); err != nil {
		t.Errorf("children of one parent: %v", err)
	}

	thief := l.pod()
	rail := thief.rail("10.61.1.1/16")
	report = a.prove(req)
	expect(t, report, "10.61.1.1", Duplicate, rail.Link.MAC.String())
	expect(t, report, "10.61.2.1", Skipped)
	// The child alone does not see it, which is why it says skipped and not ok.
	req.Parent = nil
	expect(t, a.prove(req), "10.61.1.1", Skipped)
}

// child gives a pod an ipvlan rail on one of this namespace's rails.
func (p *pod) child(parent Rail, to *pod, addr string) {
	p.Helper()
	name := "net" + string(rune('1'+len(to.rails)))
	err := p.ns.Do(func(ns.NetNS) error {
		link := &netlink.IPVlan{
			LinkAttrs: netlink.LinkAttrs{Name: "child", ParentIndex: parent.Link.Index}, Mode: netlink.IPVLAN_MODE_L2,
		}
		if err := netlink.LinkAdd(link); err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, int(to.ns.Fd()))
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		p.Skip("this kernel has no ipvlan")
	}
	if err != nil {
		p.Fatal(err)
	}
	to.in(to.ns, func() error {
		link, err := netlink.LinkByName("child")
		if err != nil {
			return err
		}
		if err := joined(netlink.LinkSetName(link, name), up(name), awaitRunning(link.Attrs().Index), address(name, addr)); err != nil {
			return err
		}
		rail, err := railOf(name)
		to.rails = append(to.rails, rail)
		return err
	})
	to.tune(to.rails[len(to.rails)-1])
}
