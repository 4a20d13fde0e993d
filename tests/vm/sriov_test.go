//go:build vm

package vm

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/promise"
)

// TestSRIOV is the life of two rails that are virtual functions: attached, checked,
// found wrong after somebody's change, removed, and the functions back on the node.
func TestSRIOV(t *testing.T) {
	nics := virtualFunctions(t, 2)
	before := onNode(t, nics)
	pod := namespace(t, "pod")
	addresses := []string{"10.71.30.1/16", "10.71.30.2/16"}
	var rails []*chain
	for i, nic := range nics {
		c := newChain(t, nil, pod, ifName(i), hostDevice(nic[0], addresses[i]), testbed.Railtune)
		c.must(t, "add")
		rails = append(rails, c)
	}
	for i, c := range rails {
		c.must(t, "check")
		rail := promise.Rail{Name: ifName(i), Addr: netip.MustParsePrefix(addresses[i])}
		if err := promise.Kept(t.Context(), pod, rail, false, rail.Near()); err != nil {
			t.Error(err)
		}
	}
	set(t, pod, "ipv4/conf/net2/arp_ignore", "0")
	rails[0].must(t, "check")
	rails[1].mustFail(t, "check", "arp_ignore")
	for _, c := range rails {
		c.must(t, "del")
	}
	if err := promise.Gone(t.Context(), pod); err != nil {
		t.Error(err)
	}
	if after := onNode(t, nics); !slices.Equal(before, after) {
		t.Errorf("the functions on the node were %q and are %q", before, after)
	}
}

// TestSRIOVDuplicate gives a function an address that another pod's has: the chain is
// refused, and what the runtime then deletes is back on the node.
func TestSRIOVDuplicate(t *testing.T) {
	nics := virtualFunctions(t, 2)
	before := onNode(t, nics)
	first, second := namespace(t, "pod"), namespace(t, "pod")
	newChain(t, nil, first, "net1", hostDevice(nics[0][0], "10.71.40.1/16"), testbed.Railtune).must(t, "add")
	c := newChain(t, nil, second, "net1", hostDevice(nics[1][1], "10.71.40.1/16"), with(nil)[0])
	c.mustFail(t, "add", "10.71.40.1", macOf(t, first, "net1"))
	c.must(t, "del")
	if err := promise.Gone(t.Context(), second); err != nil {
		t.Error(err)
	}
	if after := onNode(t, nics[1:]); !slices.Equal(before[2:], after) {
		t.Errorf("the functions on the node were %q and are %q", before[2:], after)
	}
}

// onNode are the functions' interfaces in the guest's first namespace.
func onNode(t *testing.T, nics []functions) (names []string) {
	t.Helper()
	for _, nic := range nics {
		for _, pci := range nic {
			entries, err := os.ReadDir("/sys/bus/pci/devices/" + pci + "/net")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, pci+" "+e.Name())
			}
		}
	}
	return names
}
