package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

// entry is one plugin of a chain.
type entry struct {
	program string
	config  testbed.Object
}

// contender is a chain that does a rail's job.
type contender struct {
	name  string
	chain []entry
}

// The jobs. Tuning and sbr together do what unproven does, and no more.
var (
	tuningConfig = testbed.Object{"type": "tuning", "sysctl": testbed.Object{
		"net.ipv4.conf.IFNAME.arp_ignore": "1", "net.ipv4.conf.IFNAME.arp_announce": "2",
	}}
	sbrConfig = testbed.Object{"type": "sbr"}
	unproven  = testbed.Object{"type": "railtune", "verify": testbed.Object{"mode": "off"}, "announce": false}
)

// The names of the contenders.
const (
	withoutProof = "railtune, no proof"
	withProof    = "railtune, full proof"
	before       = "before, no proof"
	both         = "tuning + sbr"
)

// contenders are what runs in turn.
func (b *bench) contenders() []contender {
	all := []contender{
		{withoutProof, []entry{{b.railtune, unproven}}},
		{withProof, []entry{{b.railtune, testbed.Railtune}}},
		{both, []entry{{b.plugin("tuning"), tuningConfig}, {b.plugin("sbr"), sbrConfig}}},
	}
	if b.old != "" {
		all = append(all, contender{before, []entry{{b.old, unproven}}})
	}
	return all
}

// bed is a pod whose rails can be made new.
type bed struct {
	pod *testbed.Pod
	// dual adds an IPv6 address to each rail.
	dual bool
	prev map[string]testbed.Object
}

// newBed prepares the first pod of a fabric. The rails' results are asked for once.
func newBed(f *testbed.Fabric, dual bool) (*bed, error) {
	d := &bed{pod: f.Pods[0], dual: dual, prev: map[string]testbed.Object{}}
	for _, r := range d.pod.Rails {
		prev, err := d.pod.PrevResult(r)
		if err != nil {
			return nil, err
		}
		if dual {
			ips, _ := prev["ips"].([]testbed.Object)
			prev["ips"] = append(ips, testbed.Object{
				"address": ipv6Of(r, 11).String(), "gateway": ipv6Of(r, 1).Addr().String(), "interface": 0,
			})
		}
		d.prev[r.Name] = prev
	}
	return d, nil
}

// ipv6Of is the address of a station on a rail's link: 1 is the router, 11 the rail.
func ipv6Of(r testbed.Rail, station int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:61:0:%x::%x/64", r.Index, station))
}

// afresh makes rails what the interface plugin leaves: down and up empties all
// its routing tables, and the addresses make the connected routes again. The plugins'
// own DEL is not enough: sbr leaves its table behind and the connected route moved.
func (d *bed) afresh(ctx context.Context, rails ...testbed.Rail) error {
	var lines strings.Builder
	for _, r := range rails {
		fmt.Fprintf(&lines, "link set %[1]s down\nlink set %[1]s up\naddr replace %[2]s dev %[1]s\n", r.Name, r.Addr)
		if d.dual {
			fmt.Fprintf(&lines, "addr replace %s dev %s nodad\n", ipv6Of(r, 11), r.Name)
		}
		for _, key := range []string{"arp_ignore", "arp_announce"} {
			if err := d.pod.SetSysctl("ipv4/conf/"+r.Name+"/"+key, "0"); err != nil {
				return err
			}
		}
	}
	if _, err := d.pod.Feed(ctx, lines.String(), "ip", "-batch", "-"); err != nil {
		return err
	}
	return d.pod.Settle()
}

// call runs a verb of a chain for one rail; DEL goes backwards and has no prevResult.
func (b *bench) call(ctx context.Context, d *bed, r testbed.Rail, chain []entry, verb string) (sum cost, err error) {
	chain = slices.Clone(chain)
	if verb == "DEL" {
		slices.Reverse(chain)
	}
	for _, e := range chain {
		one, err := b.measure(ctx, d.process(r, e, verb))
		if err != nil {
			return sum, err
		}
		sum.add(one)
	}
	return sum, nil
}

func (d *bed) process(r testbed.Rail, e entry, verb string) process {
	config := testbed.Object{"cniVersion": "1.0.0", "name": "rail"}
	maps.Copy(config, e.config)
	if verb != "DEL" {
		config["prevResult"] = d.prev[r.Name]
	}
	return process{program: e.program, verb: verb, pod: d.pod, ifname: r.Name, config: config}
}
