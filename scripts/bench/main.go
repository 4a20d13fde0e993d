// Bench measures what railtune costs as a runtime sees it: whole processes, from
// start to end, next to the tuning and sbr plugins it replaces. The numbers of
// one run compare with each other only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

var runs = flag.Int("runs", 40, "processes per number")

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx)
	if ctx.Err() != nil {
		err = errors.New("interrupted") // what that broke says nothing more
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if err := testbed.Enter(); err != nil {
		return err
	}
	if _, err := testbed.FindRailtune(); err != nil {
		return err
	}
	fmt.Printf("Whole processes, median of %d, one after another.\n\n", *runs)
	return errors.Join(sideBySide(ctx), proof(ctx))
}

var (
	tuning = testbed.Object{"type": "tuning", "sysctl": testbed.Object{
		"net.ipv4.conf.IFNAME.arp_ignore": "1", "net.ipv4.conf.IFNAME.arp_announce": "2",
	}}
	sbr = testbed.Object{"type": "sbr"}
	// unproven does what tuning and sbr do together, and no more.
	unproven = testbed.Object{"type": "railtune", "verify": testbed.Object{"mode": "off"}, "announce": false}
)

// sideBySide runs the plugins in turn, so that what disturbs one disturbs all.
func sideBySide(ctx context.Context) (err error) {
	f, err := testbed.NewFabric(testbed.Options{Rails: 1, Direct: true, Gateway: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	pod, rail := f.Pods[0], f.Pods[0].Rails[0]
	columns := []struct {
		name  string
		chain []testbed.Object
	}{
		{"railtune", []testbed.Object{testbed.Railtune}},
		{"without proof", []testbed.Object{unproven}},
		{"tuning", []testbed.Object{tuning}},
		{"sbr", []testbed.Object{sbr}},
		{"tuning + sbr", []testbed.Object{tuning, sbr}},
	}
	verbs := []string{"VERSION", "ADD", "DEL"}
	took := map[string][]time.Duration{}
	for range *runs {
		for _, c := range columns {
			if err := afresh(ctx, pod, rail); err != nil {
				return err
			}
			for _, verb := range verbs {
				var sum time.Duration
				chain := slices.Clone(c.chain)
				if verb == "DEL" {
					slices.Reverse(chain)
				}
				for _, entry := range chain {
					o, err := pod.Chain(ctx, verb, rail, entry)
					if err != nil {
						return err
					}
					sum += o.Took
				}
				took[c.name+verb] = append(took[c.name+verb], sum)
			}
		}
	}
	fmt.Printf("%-10s", "")
	for _, c := range columns {
		fmt.Printf("%16s", c.name)
	}
	for _, verb := range verbs {
		fmt.Printf("\n%-10s", verb)
		for _, c := range columns {
			fmt.Printf("%13.1f ms", milliseconds(took[c.name+verb]))
		}
	}
	fmt.Println()
	return nil
}

// afresh makes the rail what the interface plugin leaves. The plugins' own DEL
// is not enough: sbr leaves its table behind and the connected route moved.
func afresh(ctx context.Context, pod *testbed.Pod, rail testbed.Rail) error {
	for _, key := range []string{"arp_ignore", "arp_announce"} {
		if err := pod.SetSysctl("ipv4/conf/"+rail.Name+"/"+key, "0"); err != nil {
			return err
		}
	}
	if _, err := pod.Run(ctx, "ip", "route", "flush", "table", "all", "dev", rail.Name); err != nil {
		return err
	}
	if _, err := pod.Run(ctx, "ip", "-4", "addr", "flush", "dev", rail.Name); err != nil {
		return err
	}
	_, err := pod.Run(ctx, "ip", "addr", "add", rail.Addr.String(), "dev", rail.Name)
	return err
}

func milliseconds(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}
