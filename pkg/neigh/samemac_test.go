package neigh

import (
	"net/netip"
	"testing"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/hwaddr"
)

func TestSameMAC(t *testing.T) {
	t.Parallel()
	one := hwaddr.MAC{2, 0xa1, 0, 0, 0, 5}
	rail := func(index int, mac hwaddr.MAC, kind string, parent, netns int, prefix string) Rail {
		return Rail{
			Link: Link{
				Index: index, Name: "net" + string(rune('0'+index)), MAC: mac, ARPType: arpEthernet,
				Kind: kind, ParentIndex: parent, ParentNetns: netns,
			},
			Addrs: []netip.Prefix{netip.MustParsePrefix(prefix)},
		}
	}
	noARP := func(r Rail) Rail { r.Link.NoARP = true; return r }
	infiniband := func(r Rail) Rail { r.Link.ARPType = 32; return r }
	for name, c := range map[string]struct {
		a, b Rail
		code cnierr.Code
	}{
		"different": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(2, hwaddr.MAC{2, 0xa1, 0, 0, 0, 6}, "", 0, -1, "10.61.1.2/24"), 0,
		},
		"two VFs": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(2, one, "", 0, -1, "10.61.1.2/24"), cnierr.Neighbour,
		},
		"nested subnets": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(2, one, "", 0, -1, "10.61.2.2/16"), cnierr.Neighbour,
		},
		"subnets apart": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(2, one, "", 0, -1, "10.61.2.2/24"), 0,
		},
		"zero": {
			rail(1, make(hwaddr.MAC, 6), "", 0, -1, "10.61.1.1/24"), rail(2, one, "", 0, -1, "10.61.1.2/24"), cnierr.Link,
		},
		"no address at all": {
			rail(1, nil, "", 0, -1, "10.61.1.1/24"), rail(2, one, "", 0, -1, "10.61.1.2/24"), cnierr.Link,
		},
		"zero, NOARP": {
			noARP(rail(1, make(hwaddr.MAC, 6), "", 0, -1, "10.61.1.1/24")), rail(2, one, "", 0, -1, "10.61.1.2/24"), 0,
		},
		"equal, InfiniBand": {
			infiniband(rail(1, one, "", 0, -1, "10.61.1.1/24")), rail(2, one, "", 0, -1, "10.61.1.2/24"), 0,
		},
		"ipvlan, one parent": {
			rail(1, one, "ipvlan", 9, 0, "10.61.1.1/24"), rail(2, one, "ipvlan", 9, 0, "10.61.1.2/24"), 0,
		},
		"ipvlan, two parents": {
			rail(1, one, "ipvlan", 8, 0, "10.61.1.1/24"), rail(2, one, "ipvlan", 9, 0, "10.61.1.2/24"), cnierr.Neighbour,
		},
		"ipvlan, parents of one index in two namespaces": {
			rail(1, one, "ipvlan", 9, 0, "10.61.1.1/24"), rail(2, one, "ipvlan", 9, 1, "10.61.1.2/24"), cnierr.Neighbour,
		},
		"macvlan, one parent": {
			rail(1, one, "macvlan", 9, 0, "10.61.1.1/24"), rail(2, one, "macvlan", 9, 0, "10.61.1.2/24"), cnierr.Neighbour,
		},
		"VLANs of one parent": {
			rail(1, one, "vlan", 9, -1, "10.61.1.1/24"), rail(2, one, "vlan", 9, -1, "10.61.1.2/24"), 0,
		},
		"a link and its VLAN": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(2, one, "vlan", 1, -1, "10.61.1.2/24"), 0,
		},
		"the VLAN of a link of that index elsewhere": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(2, one, "vlan", 1, 0, "10.61.1.2/24"), cnierr.Neighbour,
		},
		"only link-local in common": {
			rail(1, one, "", 0, -1, "fe80::1/64"), rail(2, one, "", 0, -1, "fe80::2/64"), 0,
		},
		"itself": {
			rail(1, one, "", 0, -1, "10.61.1.1/24"), rail(1, one, "", 0, -1, "10.61.1.1/24"), 0,
		},
		"IPv4 in 16 bytes": {
			rail(1, one, "", 0, -1, "::ffff:10.61.1.1/120"), rail(2, one, "", 0, -1, "10.61.1.2/24"), cnierr.Neighbour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := SameMAC(c.a, []Rail{c.b})
			if got := cnierr.CodeOf(err, 99); (err == nil) != (c.code == 0) || (err != nil && got != c.code) {
				t.Fatalf("got %v, want code %d", err, c.code)
			}
			if c.code == cnierr.Neighbour && (!contains(err.Error(), c.a.Link.Name) || !contains(err.Error(), c.b.Link.Name)) {
				t.Errorf("the error does not name both links: %v", err)
			}
		})
	}
}
