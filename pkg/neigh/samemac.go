package neigh

import (
	"bytes"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/hwaddr"
)

// SameMAC finds, without asking on the wire, two rails of one namespace that
// are one station to the switch: equal MACs in one subnet, or none at all.
//
// Links stacked on one parent share its MAC by design (ipvlan children, VLANs),
// and so do a link and the VLAN on it. Rails with no subnet in common do not
// meet on the wire. The error has code Neighbour for equal MACs and Link for a
// zero one.
func SameMAC(rail Rail, siblings []Rail) error {
	rail = normal(rail)
	if err := zeroMAC(rail.Link); err != nil {
		return err
	}
	for _, s := range normalAll(siblings) {
		if !bytes.Equal(rail.Link.MAC, s.Link.MAC) || !hasARP(rail.Link) || !hasARP(s.Link) ||
			rail.Link.Index == s.Link.Index || sharesByDesign(rail.Link, s.Link) || !shareSubnet(rail, s) {
			continue
		}
		return cnierr.New(cnierr.Neighbour, "%s and %s both have MAC %s in one subnet: the switch sees one station on two "+
			"ports and RDMA retries run out; give each rail a MAC of its own", rail.Link.Name, s.Link.Name, rail.Link.MAC)
	}
	return nil
}

func zeroMAC(l Link) error {
	if !hasARP(l) || len(bytes.Trim(l.MAC, "\x00")) > 0 {
		return nil
	}
	return cnierr.New(cnierr.Link, "%s has no MAC (%s): nobody can send to it; set one on the virtual function "+
		"before it is given to the pod", l.Name, orNone(l.MAC))
}

func orNone(m hwaddr.MAC) string {
	if len(m) == 0 {
		return "none"
	}
	return m.String()
}

// hasARP says whether a link is an Ethernet one that resolves addresses.
func hasARP(l Link) bool { return !l.NoARP && l.ARPType == arpEthernet }

// sharesByDesign says whether the kernel itself gives both links one MAC.
func sharesByDesign(a, b Link) bool {
	if stacked(a) && stacked(b) && a.ParentIndex == b.ParentIndex && a.ParentNetns == b.ParentNetns {
		return true
	}
	return on(a, b) || on(b, a)
}

func stacked(l Link) bool { return (l.Kind == "ipvlan" || l.Kind == "vlan") && l.ParentIndex != 0 }

// on says whether l is stacked on base, in the same namespace.
func on(l, base Link) bool {
	return stacked(l) && l.ParentNetns < 0 && l.ParentIndex == base.Index
}

func shareSubnet(a, b Rail) bool {
	for _, x := range a.Addrs {
		for _, y := range b.Addrs {
			// Every IPv6 link is in fe80::/64, whoever it can reach.
			if x.Masked().Overlaps(y.Masked()) && !x.Addr().IsLinkLocalUnicast() {
				return true
			}
		}
	}
	return false
}
