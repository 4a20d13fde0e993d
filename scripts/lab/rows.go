package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

// row is one line of the published table: the settings of both pods, and how
// many of the 32 directed rail-to-rail paths carried on the hardware.
type row struct {
	number    int
	rail      map[string]string // conf/netK of every rail
	all       map[string]string // conf/all
	published int
}

// published is what was measured on two pods with 16 physical NICs each in one
// subnet, their policy rules copied from the host without the output device.
var published = []row{
	{1, values("rp_filter=0 arp_ignore=1 arp_announce=2 accept_local=1 arp_filter=1"), nil, 0},
	{2, values("rp_filter=2 arp_ignore=1 arp_announce=2"), nil, 32},
	{3, values("rp_filter=2"), values("arp_ignore=1 arp_announce=2"), 32},
	{4, values("rp_filter=0 arp_ignore=1 arp_announce=2"), nil, 32},
	{5, values("arp_ignore=1 arp_announce=2 accept_local=1"), nil, 32},
	{6, values("arp_ignore=1 arp_announce=2 arp_filter=1"), nil, 0},
	{7, values("arp_ignore=1"), nil, 31},
	{8, values("arp_announce=2"), nil, 18},
}

func values(s string) map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Fields(s) {
		key, value, _ := strings.Cut(pair, "=")
		m[key] = value
	}
	return m
}

// String is the row's settings, those of conf/all prefixed.
func (r row) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(r.all)) {
		parts = append(parts, "all."+key+"="+r.all[key])
	}
	for _, key := range slices.Sorted(maps.Keys(r.rail)) {
		parts = append(parts, key+"="+r.rail[key])
	}
	return strings.Join(parts, " ")
}

// prepare gives a pod what the row has before any rail is there: the values of
// conf/all, and the copied rules, one `from all lookup T` per rail in random order
// where the host had `oif rail lookup T`. The kernel numbers them itself, from
// 32765 down, as the copier let it.
func (r row) prepare(ctx context.Context, p *testbed.Pod, random *rand.Rand) error {
	for key, value := range r.all {
		if err := p.SetSysctl("ipv4/conf/all/"+key, value); err != nil {
			return err
		}
	}
	var batch strings.Builder
	for _, i := range random.Perm(len(p.Rails)) {
		fmt.Fprintf(&batch, "rule add from all lookup %d\n", copied(p.Rails[i]))
	}
	_, err := p.Feed(ctx, batch.String(), "ip", "-batch", "-")
	return err
}

// arrive sets a rail up with the row's values and fills its copied table.
func (r row) arrive(ctx context.Context, p *testbed.Pod, rail testbed.Rail) error {
	for key, value := range r.rail {
		if err := p.SetSysctl("ipv4/conf/"+rail.Name+"/"+key, value); err != nil {
			return err
		}
	}
	_, err := p.Feed(ctx, fmt.Sprintf("link set %s up\nroute add %s dev %s scope link src %s table %d\n",
		rail.Name, rail.Addr.Masked(), rail.Name, rail.Addr.Addr(), copied(rail)), "ip", "-batch", "-")
	if err != nil {
		return err
	}
	return p.Settle()
}

// copied is the table of a rail's copied rule.
func copied(rail testbed.Rail) int { return 100 + rail.Index }
