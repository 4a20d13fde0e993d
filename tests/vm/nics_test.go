//go:build vm

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// functions are the virtual functions of one NIC, as PCI addresses: the first is pod
// A's, the second B's.
type functions [2]string

// virtualFunctions makes two virtual functions on each of the guest's igb NICs, n of
// them, and returns them in the order of the NICs. All share one link layer. Their MACs
// say what they are: 02:00:00:00:0b:03 is pod B's of the third NIC.
func virtualFunctions(t *testing.T, n int) []functions {
	t.Helper()
	var all []functions
	for i := range n {
		nic := fmt.Sprintf("eth%d", i)
		driver, err := os.Readlink("/sys/class/net/" + nic + "/device/driver")
		if err != nil || filepath.Base(driver) != "igb" {
			t.Fatalf("%s is no igb NIC (%v): the guest needs %d, see scripts/vm/run -n", nic, err, n)
		}
		run(t, nil, "ip link set "+nic+" up")
		device := "/sys/class/net/" + nic + "/device/"
		if b, err := os.ReadFile(device + "sriov_numvfs"); err != nil || strings.TrimSpace(string(b)) == "0" {
			// A driver reads the MAC when it takes the function.
			write(t, device+"sriov_drivers_autoprobe", "0")
			write(t, device+"sriov_numvfs", "2")
			for k := range 2 {
				run(t, nil, fmt.Sprintf("ip link set %s vf %d mac 02:00:00:00:0%x:%02x", nic, k, 0xa+k, i+1))
			}
			write(t, device+"sriov_drivers_autoprobe", "1") // without it none can bind
		}
		var f functions
		for k := range f {
			link, err := os.Readlink(fmt.Sprintf("%svirtfn%d", device, k))
			if err != nil {
				t.Fatal(err)
			}
			f[k] = filepath.Base(link)
			if _, err := os.Stat("/sys/bus/pci/devices/" + f[k] + "/driver"); err != nil {
				write(t, "/sys/bus/pci/drivers/igbvf/bind", f[k])
			}
		}
		all = append(all, f)
	}
	return all
}

// write writes to a file of the kernel's.
func write(t *testing.T, path, value string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

// hostDevice is the configuration of the real host-device plugin that moves a function
// into a pod. It stands in for sriov here, which does the same: the function is found by
// its PCI address, moved, renamed, addressed by IPAM and set up.
func hostDevice(pci, address string) object {
	return object{"type": "host-device", "pciBusID": pci, "ipam": static(address)}
}

// managed gives two pods a network besides their rails, for what talks before RDMA does:
// A is 10.72.0.1 on it and B 10.72.0.2.
func managed(t *testing.T, a, b *testbed.Namespace) {
	t.Helper()
	run(t, a, "ip link add eth0 type veth peer name eth0 netns "+b.Name)
	for i, pod := range []*testbed.Namespace{a, b} {
		run(t, pod, fmt.Sprintf("ip addr add 10.72.0.%d/24 dev eth0", i+1))
		run(t, pod, "ip link set eth0 up")
	}
}
