// Bench measures what railtune costs as a runtime sees it: whole processes, from
// start to end, next to the tuning and sbr plugins it replaces and to a Go program
// that does nothing. The numbers of one run compare with each other only: what is
// compared runs in turn, so that what disturbs one disturbs all.
//
//	bench [-runs N] [-against OLD-RAILTUNE] [SECTION…]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

var (
	runs    = flag.Int("runs", 16, "rounds per number; sections that are slow make fewer")
	against = flag.String("against", "", "an older railtune to run in turn with this one")
)

// sections are the parts of the report, in order.
var sections = []section{
	{"start", start},
	{"rails", rails},
	{"parallel", parallel},
	{"growth", growth},
	{"proof", proof},
	{"multus", multus},
	{"calls", calls},
}

type section struct {
	name string
	run  func(context.Context, *bench) error
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	for _, name := range flag.Args() {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("no section is called %q", name)
		}
	}
	if err := testbed.Enter(); err != nil {
		return err
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	began := time.Now()
	b.machine()
	for _, s := range sections {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), s.name) {
			continue
		}
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	b.targets()
	fmt.Printf("\nTook %v.\n", time.Since(began).Round(time.Second))
	return nil
}

// machine says what the numbers are of.
func (b *bench) machine() {
	read := func(path string) string {
		raw, _ := os.ReadFile(path)
		return strings.TrimSpace(string(raw))
	}
	model := "unknown CPU"
	cores := 0
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			cores++
		}
	}
	fmt.Printf("%s, Linux %s, %d × %s, load %s at the start.\n", time.Now().UTC().Format("2 January 2006"),
		read("/proc/sys/kernel/osrelease"), cores, model, read("/proc/loadavg"))
	fmt.Println("Whole processes: median (10th to 90th percentile). Times in ms, CPU is user and system, peak RSS in KiB.")
}
