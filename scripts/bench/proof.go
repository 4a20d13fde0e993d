package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// proof times ADDs that ask many neighbours, on pods of 16 rails.
func proof(ctx context.Context) (err error) {
	f, err := testbed.NewFabric(testbed.Options{Direct: true, Gateway: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.ChainAll(ctx, "ADD", testbed.Railtune); err != nil {
		return err
	}
	var peers, silent []string
	for _, r := range f.Pods[1].Rails {
		peers = append(peers, r.Addr.Addr().String())
		silent = append(silent, fmt.Sprintf("10.61.99.%d", r.Index))
	}
	fmt.Println()
	for _, c := range []struct {
		name  string
		peers []string
	}{
		{"ADD, 17 neighbours answer (the gateway and 16 peers), per rail", peers},
		{"ADD, 16 peers are silent, verify.timeout 500 ms, per rail", silent},
	} {
		entry := testbed.Object{"type": "railtune", "verify": testbed.Object{"peers": c.peers}}
		var took []time.Duration
		for _, r := range f.Pods[0].Rails {
			o, err := f.Pods[0].Chain(ctx, "ADD", r, entry)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			took = append(took, o.Took)
		}
		fmt.Printf("%-64s %7.1f ms\n", c.name, milliseconds(took))
	}
	return nil
}
