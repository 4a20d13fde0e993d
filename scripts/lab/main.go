// Lab measures the published table of ARP and routing settings in two pods of 16
// rails each, and shows what each of its rows becomes with railtune on top. It
// ends 0 if the rows show here what they showed on the hardware and railtune
// makes 32 of 32 out of every one, three times in a row.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"

	"github.com/railtune/railtune/pkg/testbed"
)

func main() {
	seed := flag.Uint64("seed", rand.Uint64(), "decides the order of the copied rules")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *seed)
	if ctx.Err() != nil {
		err = errors.New("interrupted") // what that broke says nothing more
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64) error {
	if err := testbed.Enter(); err != nil {
		return err
	}
	if _, err := testbed.FindRailtune(); err != nil {
		return err
	}
	results, err := measureAll(ctx, seed)
	show(os.Stdout, results, seed)
	return err
}

func show(w io.Writer, results []result, seed uint64) {
	fmt.Fprintf(w, `Two pods, 16 rails each, one subnet, one link layer. Of 32 directed rail-to-rail paths, how many carry:
  published  on the hardware
  once       here, on one ping a path: requests that reached the rail that owns the address
  each       here, on each of %d pings a path
  railtune   here, with railtune on top of the row, in three attachments: each of %d pings reached
             the rail that owns the address, and so did its answer

`, tries, tries)
	width := 0
	for _, r := range results {
		width = max(width, len(r.row.String()))
	}
	fmt.Fprintf(w, "row  %-*s  published  once  each     railtune\n", width, "settings of both pods")
	for _, r := range results {
		fmt.Fprintf(w, "%3d  %-*s  %9d  %4d  %4d  %3d %3d %3d\n",
			r.number, width, r.row, r.published, r.once, r.each, r.tuned[0], r.tuned[1], r.tuned[2])
	}
	fmt.Fprintf(w, "\nEach pod also held one rule per rail that had lost its device, in the random order of -seed %d.\n", seed)
}
