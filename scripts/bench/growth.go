package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

// crowd is what others have in the pod's namespace.
type crowd struct {
	name                      string
	rules, routes, neighbours int
	rails                     int
}

var crowds = []crowd{
	{name: empty, rails: 1},
	{name: "100 rules", rails: 1, rules: 100},
	{name: "10,000 rules", rails: 1, rules: 10000},
	{name: "100,000 routes", rails: 1, routes: 100000},
	{name: full, rails: 1, rules: 10000, routes: 100000},
	{name: "10,000 neighbours", rails: 1, neighbours: 10000},
	{name: "64 rails", rails: 64},
}

const (
	empty = "nothing"
	full  = "10,000 rules, 100,000 routes"
)

// growth shows whether ADD and DEL cost more where others have much.
func growth(ctx context.Context, b *bench) (err error) {
	all := b.contenders()
	beds := make([]*bed, len(crowds))
	for i, c := range crowds {
		f, err := testbed.NewFabric(testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: c.rails, Direct: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if beds[i], err = newBed(f, false); err != nil {
			return err
		}
		if err := c.fill(ctx, b, beds[i]); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	took := map[string]series{}
	for range max(3, *runs*2) {
		for i, crowd := range crowds {
			d := beds[i]
			rail := d.pod.Rails[0]
			for _, c := range all {
				if err := d.afresh(ctx, rail); err != nil {
					return err
				}
				for _, verb := range []string{"ADD", "DEL"} {
					one, err := b.call(ctx, d, rail, c.chain, verb)
					if err != nil {
						return fmt.Errorf("%s: %w", crowd.name, err)
					}
					took[crowd.name+c.name+verb] = append(took[crowd.name+c.name+verb], one)
				}
			}
		}
	}
	t := newTable("others have", "", "ADD wall", "ADD / nothing", "ADD CPU", "peak RSS", "DEL wall", "DEL / nothing")
	for _, crowd := range crowds {
		for _, c := range all {
			add, del := took[crowd.name+c.name+"ADD"], took[crowd.name+c.name+"DEL"]
			t.row(crowd.name, c.name, add.spread(wall), ratio(add.median(wall), took[empty+c.name+"ADD"].median(wall)),
				add.spread(cpu), add.kib(), del.spread(wall), ratio(del.median(wall), took[empty+c.name+"DEL"].median(wall)))
		}
	}
	t.print("Growth")
	b.reached["growth"] = took[full+withoutProof+"ADD"].median(wall) / took[empty+withoutProof+"ADD"].median(wall)
	return nil
}

// fill makes the crowd: rules and permanent neighbours, half of the routes in main and
// half in a table, and railtune's own objects for all rails but the first.
func (c crowd) fill(ctx context.Context, b *bench, d *bed) error {
	var lines strings.Builder
	for i := range c.rules {
		fmt.Fprintf(&lines, "rule add from 100.64.%d.%d lookup 500 priority %d\n", i>>8, i&255, 1000+i)
	}
	for i := range c.routes {
		table := "main"
		if i%2 == 1 {
			table = "500"
		}
		fmt.Fprintf(&lines, "route add 100.%d.%d.%d dev eth0 table %s\n", 65+i>>16, i>>8&255, i&255, table)
	}
	for i := range c.neighbours {
		fmt.Fprintf(&lines, "neigh add 100.64.%d.%d lladdr 02:00:00:00:%02x:%02x dev eth0 nud permanent\n", i>>8, i&255, i>>8, i&255)
	}
	if lines.Len() > 0 {
		if _, err := d.pod.Feed(ctx, lines.String(), "ip", "-batch", "-"); err != nil {
			return err
		}
	}
	for _, r := range d.pod.Rails[1:] {
		if _, err := b.measure(ctx, d.process(r, entry{b.railtune, unproven}, "ADD")); err != nil {
			return err
		}
	}
	return nil
}
