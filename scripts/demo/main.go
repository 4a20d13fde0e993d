// Demo shows what railtune is for, on one machine and in namespaces of its own:
// two pods with 16 rails each, attached by the real cnitool, macvlan and static
// plugins, first without railtune and then with it. It ends 0 only if the paths
// that did not work before all work after.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	start := time.Now()
	err := run(ctx)
	if ctx.Err() != nil {
		err = errors.New("interrupted") // what that broke says nothing more
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	fmt.Printf("\nEverything the demo made is gone. %.0f s.\n", time.Since(start).Seconds())
}

func run(ctx context.Context) error {
	if err := testbed.Enter(); err != nil {
		return err
	}
	if _, err := testbed.FindRailtune(); err != nil {
		return err
	}
	one, err := oneSubnet(ctx)
	if err != nil {
		return fmt.Errorf("one subnet: %w", err)
	}
	cross, err := perRail(ctx)
	if err != nil {
		return fmt.Errorf("one subnet per rail: %w", err)
	}
	return errors.Join(one, cross)
}

// stage is one attachment of all rails: how the report names it, and the chain
// behind macvlan and static.
type stage struct {
	name  string
	chain []testbed.Object
}

func oneSubnet(ctx context.Context) (verdict, err error) {
	fmt.Print(`1. One subnet: two pods, 16 rails each, all 32 in 10.61.0.0/16 on one link layer.
   ✓ each of 2 pings arrived on the rail that owns the address, and so did its answer   ✗ not so

`)
	f, err := testbed.NewFabric(testbed.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range f.Pods {
		if err := p.Strict(ctx); err != nil {
			return nil, err
		}
	}
	return comparison{
		fabric: f,
		before: stage{"macvlan, static", nil},
		after:  stage{"macvlan, static, railtune", []testbed.Object{testbed.Railtune}},
		paths:  f.SameRail(),
		probe:  testbed.Probe{Rounds: 2},
		show:   func(before, after testbed.Matrix, c comparison) error { printRows(c, before, after); return nil },
	}.run(ctx)
}

func perRail(ctx context.Context) (verdict, err error) {
	fmt.Print(`
2. One subnet per rail: 10.61.1.0/24 … 10.61.16.0/24, and a router ("computenet") between them.
   From every rail of each pod to every other rail of the other. Row: rail of A, column: rail of B.
   ✓ both directions arrived on the rails that own the addresses   ✗ not so   · same rail, not tried

`)
	f, err := testbed.NewFabric(testbed.Options{Layout: testbed.PerRail})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range f.Pods {
		if err := errors.Join(p.Strict(ctx), p.StrictSource(ctx)); err != nil {
			return nil, err
		}
	}
	supernet := testbed.Object{"type": "railtune", "supernets": []testbed.Object{{"dst": testbed.Supernet.String()}}}
	return comparison{
		fabric: f,
		before: stage{"macvlan, static", nil},
		after:  stage{"… and railtune with supernet 10.61.0.0/16", []testbed.Object{supernet}},
		paths:  f.CrossRail(),
		show: func(before, after testbed.Matrix, c comparison) error {
			printGrids(c, before, after)
			return showPod(ctx, f.Pods[0])
		},
	}.run(ctx)
}

// comparison measures the same paths with two chains.
type comparison struct {
	fabric        *testbed.Fabric
	before, after stage
	paths         []testbed.Path
	probe         testbed.Probe
	// show prints both results, while the second chain is attached.
	show func(before, after testbed.Matrix, c comparison) error
}

// run says in verdict whether before was incomplete and after complete; err is
// what kept it from finding out.
func (c comparison) run(ctx context.Context) (verdict, err error) {
	var before, after testbed.Matrix
	err = c.attached(ctx, c.before, func() (err error) {
		before, err = testbed.Measure(ctx, c.paths, c.probe)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = c.attached(ctx, c.after, func() (err error) {
		if after, err = testbed.Measure(ctx, c.paths, c.probe); err != nil {
			return err
		}
		return c.show(before, after, c)
	})
	if err != nil {
		return nil, err
	}
	if n := before.Answered(); n == len(before) {
		verdict = fmt.Errorf("%q carries all %d paths already, so this fabric shows nothing", c.before.name, n)
	}
	if n := after.Answered(); n != len(after) {
		verdict = errors.Join(verdict, fmt.Errorf("%q carries %d of %d paths", c.after.name, n, len(after)))
	}
	return verdict, nil
}

// attached calls do while all rails are attached by a stage's chain, and then
// expects DEL to leave both pods as they were.
func (c comparison) attached(ctx context.Context, s stage, do func() error) error {
	before, err := c.fabric.Snapshots(ctx)
	if err != nil {
		return err
	}
	if err := c.fabric.AttachInOrder(ctx, s.chain...); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := c.fabric.Detach(ctx); err != nil {
		return err
	}
	if err := c.fabric.Unchanged(ctx, before); err != nil {
		return fmt.Errorf("after DEL: %w", err)
	}
	return nil
}
