package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

// TestPublishedTable is `make lab` as a test.
func TestPublishedTable(t *testing.T) {
	testbed.NeedRoot(t)
	testbed.MustRailtune(t)
	seed := rand.Uint64()
	results, err := measureAll(t.Context(), seed)
	if err != nil {
		t.Error(err)
	}
	var table strings.Builder
	show(&table, results, seed)
	t.Log("\n" + table.String())
}

func TestCheckKnowsGoodFromBad(t *testing.T) {
	good := [3]int{32, 32, 32}
	for _, c := range []struct {
		published, once, each int
		tuned                 [3]int
		ok                    bool
	}{
		{32, 32, 32, good, true},
		{32, 32, 31, good, false},
		{32, 31, 32, good, false},
		{0, 4, 0, good, true},
		{0, 5, 0, good, false},
		{0, 0, 5, good, false},
		{31, 32, 1, good, true},
		{31, 32, 32, good, false},
		{18, 17, 17, good, true},
		{18, 17, 32, good, false},
		{32, 32, 32, [3]int{32, 32, 31}, false},
		{0, 0, 0, [3]int{0, 32, 32}, false},
	} {
		err := result{row: row{published: c.published}, once: c.once, each: c.each, tuned: c.tuned}.check()
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
