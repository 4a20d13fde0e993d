package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

// proof measures what asking neighbours adds to an ADD.
func proof(ctx context.Context, b *bench) (err error) {
	f, err := testbed.NewFabric(testbed.Options{Rails: 1, Direct: true, Gateway: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d, err := newBed(f, false)
	if err != nil {
		return err
	}
	const most = 256
	var lines strings.Builder
	var answering, silent []string
	for i := range most {
		answering, silent = append(answering, fmt.Sprintf("10.61.200.%d", i)), append(silent, fmt.Sprintf("10.61.201.%d", i))
		fmt.Fprintf(&lines, "addr add 10.61.200.%d/16 dev %s\n", i, f.Pods[1].Rails[0].Name)
	}
	if _, err := f.Pods[1].Feed(ctx, lines.String(), "ip", "-batch", "-"); err != nil {
		return err
	}
	cases := []struct {
		name  string
		entry testbed.Object
	}{
		{"no proof, no announcement", unproven},
		{"own address and gateway", testbed.Railtune},
		{"and 1 peer that answers", asking(answering[:1])},
		{"and 1 peer that is silent", asking(silent[:1])},
		{"and 256 peers, all answer", asking(answering)},
		{"and 256 peers, half answer", asking(append(append([]string(nil), answering[:most/2]...), silent[:most/2]...))},
		{"and 256 peers, none answers", asking(silent)},
	}
	took := make([]series, len(cases))
	rail := d.pod.Rails[0]
	for range max(3, *runs/2) {
		for i, c := range cases {
			if err := d.afresh(ctx, rail); err != nil {
				return err
			}
			one, err := b.measure(ctx, d.process(rail, entry{b.railtune, c.entry}, "ADD"))
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			took[i] = append(took[i], one)
		}
	}
	t := newTable("ADD asks", "wall", "more than no proof", "CPU", "peak RSS")
	for i, c := range cases {
		t.row(c.name, took[i].spread(wall), fmt.Sprintf("%.1f", took[i].median(wall)-took[0].median(wall)), took[i].spread(cpu), took[i].kib())
	}
	t.print("The proof, verify.timeout 500 ms")
	b.reached["proof"] = took[1].median(wall) - took[0].median(wall)
	return nil
}

func asking(peers []string) testbed.Object {
	return testbed.Object{"type": "railtune", "verify": testbed.Object{"peers": peers}}
}
