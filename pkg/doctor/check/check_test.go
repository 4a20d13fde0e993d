package check

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/sysctl"
)

// healthy is a rail on which nothing is wrong, as facts alone: what RDMA hardware shows
// cannot be had in a namespace.
func healthy() *facts.Namespace {
	p := netip.MustParsePrefix("10.61.0.1/16")
	link := netstate.Link{
		Index: 2, Name: "net1", MAC: []byte{2, 0, 0, 0, 0, 1}, ARPHRD: 1, Up: true, Carrier: true,
		Addrs: []netstate.Addr{{Prefix: p}},
	}
	return &facts.Namespace{
		Links: []netstate.Link{link},
		Rails: []facts.Rail{{
			Name: "net1", Index: 2, Up: true, Carrier: true, Link: link, MAC: link.MAC.String(),
			Addresses: []facts.Address{{Address: p, OnLink: p.Masked(), State: "usable"}},
			Settings: []facts.Setting{
				{Key: sysctl.ARPIgnore, File: "1", All: "0", Effective: "1"},
				{Key: sysctl.ARPAnnounce, File: "2", All: "0", Effective: "2"},
			},
			RDMA: &facts.RDMA{Device: "mlx5_0", GIDs: []facts.GID{{Port: 1, Index: 3, Addr: p.Addr(), GID: "::ffff:10.61.0.1"}}},
		}},
	}
}

// TestGIDMissing: an address without a RoCE v2 GID, which only RDMA hardware can show.
func TestGIDMissing(t *testing.T) {
	n := healthy()
	if found := All(n, ""); len(found) > 0 {
		t.Fatalf("the healthy rail: %+v", found)
	}
	n.Rails[0].RDMA.GIDs[0].Addr = netip.MustParseAddr("fe80::1")
	found := All(n, "ip netns exec pod ")
	if len(found) != 1 || found[0].Code != GIDMissing || !strings.Contains(found[0].Summary, "mlx5_0") ||
		found[0].Remedy[1] != "ip netns exec pod ip addr add 10.61.0.1/16 dev net1" {
		t.Errorf("without a GID: %+v", found)
	}
}

// TestIPVLANSharesItsMAC: a sibling in another pod has this rail's MAC by design.
func TestIPVLANSharesItsMAC(t *testing.T) {
	n := healthy()
	r := &n.Rails[0]
	r.Entries = []facts.Entry{{Address: netip.MustParseAddr("10.61.0.9"), MAC: r.MAC, State: "REACHABLE"}}
	if found := All(n, ""); len(found) != 1 || found[0].Code != NeighbourStale {
		t.Errorf("a neighbour with the rail's own MAC: %+v", found)
	}
	r.Kind, n.Links[0].Kind = "ipvlan", "ipvlan"
	if found := All(n, ""); len(found) > 0 {
		t.Errorf("the same on ipvlan: %+v", found)
	}
}

// TestQuoted: what goes into a remedy is one word to the shell.
func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"net1": "net1", "rail0.100": "rail0.100", "a;b": "'a;b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "": "''", "a b": "'a b'",
	} {
		if got := Quoted(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
