package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/railtune/railtune/pkg/testbed"
)

// tries is how often each path is pinged where the row says "each of".
const tries = 3

// result is what one row gave here, each number of 32 paths.
type result struct {
	row
	// once and each count the paths whose request reached the rail that owns the
	// destination: on one ping a path, and on each of three.
	once, each int
	// tuned counts the paths that also answered each of three pings, with
	// railtune chained on top of the row, in three attachments one after another.
	tuned [3]int
}

// few is the most that a row published as 0 may give: the rail whose copied rule
// happens to come first resolves its peers even under arp_filter.
const few = 4

// check compares a result with what was published; nil is as it should be.
func (r result) check() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("row %d (%s): "+format, append([]any{r.number, r.row}, args...)...))
	}
	switch {
	case r.published == 32 && (r.once != 32 || r.each != 32):
		fail("published 32, here %d and %d", r.once, r.each)
	case r.published == 0 && (r.once > few || r.each > few):
		fail("published 0, here %d and %d, more than %d", r.once, r.each, few)
	case r.published > 0 && r.published < 32 && r.each >= 32:
		fail("published %d, here all paths on each of %d pings", r.published, tries)
	}
	for i, n := range r.tuned {
		if n != 32 {
			fail("with railtune, attachment %d: %d of 32", i+1, n)
		}
	}
	return errors.Join(errs...)
}

// run measures one row. seed decides the order of the copied rules.
func (r row) run(ctx context.Context, seed uint64) (result, error) {
	res := result{row: r}
	random := rand.New(rand.NewPCG(seed, uint64(r.number)))
	for _, m := range []struct {
		rounds int
		count  *int
	}{{1, &res.once}, {tries, &res.each}} {
		matrix, err := r.measure(ctx, random, m.rounds, nil)
		if err != nil {
			return res, err
		}
		*m.count = matrix.Arrived()
	}
	for i := range res.tuned {
		matrix, err := r.measure(ctx, random, tries, testbed.Railtune)
		if err != nil {
			return res, err
		}
		res.tuned[i] = matrix.Answered()
	}
	return res, nil
}

// atOnce is how many rows are measured at the same time. Most of it is waiting for
// answers that do not come, but the machine has one neighbour table for all
// namespaces, and a row under flux takes some hundred of its thousand entries.
const atOnce = 3

// measureAll runs all rows.
func measureAll(ctx context.Context, seed uint64) ([]result, error) {
	results := make([]result, len(published))
	errs := make([]error, len(published))
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, r := range published {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if results[i], errs[i] = r.run(ctx, seed); errs[i] == nil {
				errs[i] = results[i].check()
			}
		})
	}
	wait.Wait()
	return results, errors.Join(errs...)
}

// measure pings the paths between two fresh pods in the row's state, with a plugin
// chained to each rail as it arrives if entry is not nil.
func (r row) measure(ctx context.Context, random *rand.Rand, rounds int, entry testbed.Object) (m testbed.Matrix, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("row %d (%s): %w", r.number, r, err)
		}
	}()
	f, err := testbed.NewFabric(testbed.Options{Direct: true, Down: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range f.Pods {
		if err := errors.Join(p.Strict(ctx), r.prepare(ctx, p, random)); err != nil {
			return nil, err
		}
	}
	err = f.EachPod(func(p *testbed.Pod) error {
		for _, rail := range p.Rails {
			if err := r.arrive(ctx, p, rail); err != nil {
				return err
			}
			if entry == nil {
				continue
			}
			if _, err := p.Chain(ctx, "ADD", rail, entry); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := f.Switches.Settle(); err != nil {
		return nil, err
	}
	return testbed.Measure(ctx, f.SameRail(), testbed.Probe{Rounds: rounds})
}
