package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// start compares what every call pays before it does anything.
func start(ctx context.Context, b *bench) error {
	type call struct {
		name string
		process
	}
	version := func(name, program string) call { return call{name, process{program: program, verb: "VERSION"}} }
	programs := []call{
		version("do nothing, in Go", b.floor),
		version("railtune", b.railtune),
		version("tuning", b.plugin("tuning")),
		version("sbr", b.plugin("sbr")),
		version("do nothing, JSON linked", b.floorJSON),
		{"railtune, GC", idle(b.railtune)},
		{"tuning, GC", idle(b.plugin("tuning"))},
	}
	if b.old != "" {
		programs = append(programs, version("before", b.old), call{"before, GC", idle(b.old)})
	}
	took := make([]series, len(programs))
	for range *runs * 8 {
		for i, p := range programs {
			c, err := b.measure(ctx, p.process)
			if err != nil {
				return err
			}
			took[i] = append(took[i], c)
		}
	}
	t := newTable("VERSION, and GC", "wall", "CPU", "peak RSS", "wall / floor", "CPU / floor")
	for i, p := range programs {
		t.row(p.name, took[i].spread(wall), took[i].spread(cpu), took[i].kib(),
			ratio(took[i].median(wall), took[0].median(wall)), ratio(took[i].median(cpu), took[0].median(cpu)))
	}
	t.print("Start")
	b.reached["version"] = took[1].median(wall) / took[0].median(wall)
	return nil
}

// idle is a call that reads its configuration and then has nothing to do: what every call
// pays.
func idle(program string) process {
	return process{program: program, verb: "GC", config: testbed.Object{
		"cniVersion": "1.1.0", "name": "rail", "cni.dev/valid-attachments": []any{},
	}}
}

var verbs = []string{"ADD", "CHECK", "DEL"}

// rails compares the verbs on pods of 4 and 16 rails, the rails one after another.
func rails(ctx context.Context, b *bench) error {
	for _, c := range []struct {
		rails int
		dual  bool
	}{{4, false}, {16, false}, {4, true}, {16, true}} {
		title := fmt.Sprintf("%d rails, IPv4", c.rails)
		if c.dual {
			title += " and IPv6"
		}
		if err := b.railsOf(ctx, title, c.rails, c.dual); err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
	}
	return nil
}

func (b *bench) railsOf(ctx context.Context, title string, n int, dual bool) (err error) {
	f, err := testbed.NewFabric(testbed.Options{Layout: testbed.PerRail, Rails: n, Direct: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if dual {
		for _, r := range f.Pods[0].Rails {
			router := fmt.Sprintf("br%d", r.Index)
			if _, err := f.Switches.Run(ctx, "ip", "addr", "add", ipv6Of(r, 1).String(), "dev", router, "nodad"); err != nil {
				return err
			}
		}
	}
	d, err := newBed(f, dual)
	if err != nil {
		return err
	}
	all := b.contenders()
	took := map[string]series{}
	for range max(2, *runs*4/n) {
		for _, c := range all {
			if err := d.afresh(ctx, d.pod.Rails...); err != nil {
				return err
			}
			for _, verb := range verbs {
				for _, r := range d.pod.Rails {
					one, err := b.call(ctx, d, r, c.chain, verb)
					if err != nil {
						return err
					}
					took[c.name+verb] = append(took[c.name+verb], one)
				}
			}
		}
	}
	t := newTable("each rail", "", "wall", "CPU", "peak RSS", "wall / ("+both+")", "CPU / ("+both+")")
	for _, verb := range verbs {
		for _, c := range all {
			if verb != "ADD" && c.name == withProof {
				continue // the proof is ADD's
			}
			s, peers := took[c.name+verb], took[both+verb]
			t.row(verb, c.name, s.spread(wall), s.spread(cpu), s.kib(),
				ratio(s.median(wall), peers.median(wall)), ratio(s.median(cpu), peers.median(cpu)))
		}
	}
	t.print(title)
	if n == 16 && !dual {
		add := took[withoutProof+"ADD"]
		b.reached["add"] = add.median(wall) / took[both+"ADD"].median(wall)
		b.reached["rss"] = add.median(rss)
		b.reached["proof"] = took[withProof+"ADD"].median(wall) - add.median(wall)
	}
	return b.tuningRSS(ctx, d)
}

// tuningRSS notes the peak of tuning alone, which the pair's is not.
func (b *bench) tuningRSS(ctx context.Context, d *bed) error {
	var s series
	for range 5 {
		c, err := b.measure(ctx, d.process(d.pod.Rails[0], entry{b.plugin("tuning"), tuningConfig}, "ADD"))
		if err != nil {
			return err
		}
		s = append(s, c)
	}
	b.reached["tuning rss"] = s.median(rss)
	return nil
}

// parallel attaches sixteen rails of a pod at once.
func parallel(ctx context.Context, b *bench) (err error) {
	f, err := testbed.NewFabric(testbed.Options{Layout: testbed.PerRail, Direct: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d, err := newBed(f, false)
	if err != nil {
		return err
	}
	all := b.contenders()
	took := map[string]series{}
	for range max(3, *runs/2) {
		for _, c := range all {
			if err := d.afresh(ctx, d.pod.Rails...); err != nil {
				return err
			}
			for _, verb := range []string{"ADD", "DEL"} {
				sum, err := b.atOnce(ctx, d, c.chain, verb)
				if err != nil {
					return err
				}
				took[c.name+verb] = append(took[c.name+verb], sum)
			}
		}
	}
	t := newTable("sixteen at once", "", "wall, all", "CPU, all", "wall / ("+both+")")
	for _, verb := range []string{"ADD", "DEL"} {
		for _, c := range all {
			s := took[c.name+verb]
			t.row(verb, c.name, s.spread(wall), s.spread(cpu), ratio(s.median(wall), took[both+verb].median(wall)))
		}
	}
	t.print("In parallel")
	return nil
}

// atOnce runs a verb for every rail at once; the wall time is from the first start
// to the last end.
func (b *bench) atOnce(ctx context.Context, d *bed, chain []entry, verb string) (sum cost, err error) {
	var (
		wait sync.WaitGroup
		lock sync.Mutex
		errs []error
	)
	began := time.Now()
	for _, r := range d.pod.Rails {
		wait.Go(func() {
			one, err := b.call(ctx, d, r, chain, verb)
			lock.Lock()
			defer lock.Unlock()
			sum.add(one)
			errs = append(errs, err)
		})
	}
	wait.Wait()
	sum.wall = time.Since(began)
	return sum, errors.Join(errs...)
}
