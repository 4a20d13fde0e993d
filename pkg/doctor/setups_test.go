package doctor_test

import (
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// setup is one row of the table "who sets the values".
type setup struct {
	name string
	make func(t *testing.T) *bed
}

// setups are the four of the table, each as it is when it is healthy, where they differ
// in both layouts, and the rails that live on router advertisements.
var setups = []setup{
	{"multus", func(t *testing.T) *bed {
		b := newBed(t, testbed.OneSubnet)
		b.addRailtune()
		return b
	}},
	{"multus-subnets", func(t *testing.T) *bed {
		b := newBed(t, testbed.PerRail)
		b.addRailtune("10.61.0.0/16")
		return b
	}},
	{"host", func(t *testing.T) *bed { // one subnet: the node's own rules
		b := byHand(t, testbed.OneSubnet)
		b.sourceRules()
		return b
	}},
	{"host-subnets", func(t *testing.T) *bed { // a subnet each: no rules at all
		return byHand(t, testbed.PerRail)
	}},
	{"host-ra", func(t *testing.T) *bed { // IPv6 only, from router advertisements; the node forwards
		b := newRABed(t)
		b.sh("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
		b.set("ipv6/conf/IFNAME/accept_ra", "2")
		b.advertise()
		return b
	}},
	{"dranet", func(t *testing.T) *bed { // values and rules from its configuration, source rules copied
		b := byHand(t, testbed.OneSubnet)
		b.sourceRules()
		return b
	}},
	{"dranet-ra", func(t *testing.T) *bed { // the pod does not forward
		b := newRABed(t)
		b.advertise()
		return b
	}},
	{"multus-ra", func(t *testing.T) *bed { // railtune's ADD leaves what the kernel does to it
		b := newRABed(t)
		for _, r := range b.pod.Rails {
			b.add(r.Name, "")
		}
		b.advertise()
		return b
	}},
	{"pod-sysctls", func(t *testing.T) *bed { // conf/all, set before the rails arrive
		b := newBed(t, testbed.PerRail)
		b.options.Rails = []string{"net*"}
		b.sh("echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce")
		return b
	}},
}

// byHand is rails with the two ARP values, and nothing of railtune's.
func byHand(t *testing.T, layout testbed.Layout) *bed {
	t.Helper()
	b := newBed(t, layout)
	b.options.Rails = []string{"net*"}
	b.set("ipv4/conf/IFNAME/arp_ignore", "1")
	b.set("ipv4/conf/IFNAME/arp_announce", "2")
	return b
}

// TestHealthy: each setup is clean.
func TestHealthy(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) { t.Parallel(); s.make(t).mustBeClean() })
	}
}

func setupNamed(t *testing.T, name string) *bed {
	t.Helper()
	for _, s := range setups {
		if s.name == name {
			return s.make(t)
		}
	}
	t.Fatalf("no setup %s", name)
	return nil
}
