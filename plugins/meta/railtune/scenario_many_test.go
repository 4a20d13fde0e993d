package main_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/railtune/railtune/pkg/testbed"
)

// Commands about many rails, or about all that the kernel would do.
func init() {
	commands["each"] = cmdEach // here, as it looks commands up
	commands["leaves"] = cmdLeaves
	commands["together"] = cmdTogether
	commands["storm"] = cmdStorm
	commands["clean"] = cmdClean
}

// cmdEach runs a command of this package once for each number, in that order:
//
//	each k=1..8 rail net%k 10.61.%k.11/24
//	each k=8..1 add net%k
func cmdEach(ts *testscript.TestScript, neg bool, args []string) {
	name, numbers, ok := strings.Cut(args[0], "=")
	first, last, ok2 := between(numbers)
	if !ok || !ok2 || commands[args[1]] == nil {
		ts.Fatalf("each: want NAME=FIRST..LAST COMMAND…, where COMMAND is one of the scenarios' own")
	}
	for _, n := range numbersFrom(first, last) {
		words := slices.Clone(args[1:])
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "%"+name, strconv.Itoa(n))
		}
		commands[words[0]](ts, neg, words[1:])
	}
}

func between(s string) (first, last int, ok bool) {
	from, to, _ := strings.Cut(s, "..")
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	return first, last, err == nil && err2 == nil
}

// numbersFrom counts from one number to another, up or down.
func numbersFrom(first, last int) []int {
	step := 1
	if last < first {
		step = -1
	}
	var out []int
	for n := first; n != last+step; n += step {
		out = append(out, n)
	}
	return out
}

// cmdLeaves asks the kernel where a packet would leave the pod:
//
//	leaves FROM TO by NAME [via GATEWAY|directly]
//	leaves FROM TO by nothing
//
// FROM is an address, - for a socket without one, or oif=NAME for one bound to a device.
func cmdLeaves(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	if len(args) < 4 || args[2] != "by" {
		ts.Fatalf("leaves: want FROM TO by NAME [via GATEWAY|directly]")
	}
	ask := []string{"route", "get", args[1]}
	switch from := args[0]; {
	case strings.HasPrefix(from, "oif="):
		ask = append(ask, "oif", from[len("oif="):])
	case from != "-":
		ask = append(ask, "from", from)
	}
	got, err := bedOf(ts).pod.Run(context.Background(), "ip", ask...)
	got = strings.TrimSpace(strings.Join(strings.Fields(got), " "))
	if args[3] == "nothing" {
		if err == nil {
			ts.Fatalf("%s leaves: %s", strings.Join(ask, " "), got)
		}
		return
	}
	ts.Check(err)
	words := " " + got + " "
	gw := ""
	if len(args) > 4 && args[4] == "via" {
		gw = args[5]
	}
	if !strings.Contains(words, " dev "+args[3]+" ") || gw != "" && !strings.Contains(words, " via "+gw+" ") ||
		len(args) == 5 && args[4] == "directly" && strings.Contains(words, " via ") {
		ts.Fatalf("want %s, got: %s", strings.Join(args, " "), got)
	}
}

// spread reads names of rails: net1..16 stands for net1, net2, … net16.
func spread(words []string) []string {
	var out []string
	for _, word := range words {
		m := regexp.MustCompile(`^(.*?)(\d+\.\.\d+)$`).FindStringSubmatch(word)
		if m == nil {
			out = append(out, word)
			continue
		}
		first, last, _ := between(m[2])
		for _, n := range numbersFrom(first, last) {
			out = append(out, m[1]+strconv.Itoa(n))
		}
	}
	return out
}

// cmdTogether runs one verb for many rails at once, each in a process of its own:
// "together ADD net1..16". All must succeed, and change what is theirs only.
func cmdTogether(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b := bedOf(ts)
	before, err := b.pod.Snapshot(context.Background())
	ts.Check(err)
	if b.baseline == nil {
		b.baseline = &before
	}
	names := spread(args[1:])
	ts.Check(b.atOnce(args[0], names))
	after, err := b.pod.Snapshot(context.Background())
	ts.Check(err)
	changes := testbed.Diff(before, after)
	for _, name := range names {
		changes = changes.Except(settingsOf(name)...)
	}
	for _, c := range changes {
		if !strings.Contains(c, mark) {
			ts.Fatalf("I2/I3: %s of %v changed what is not their own: %s", args[0], names, c)
		}
	}
}

func (b *bed) atOnce(verb string, names []string) error {
	failed := make([]error, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		r := b.rail(name)
		prev := b.prevResult(r)
		if verb != "ADD" {
			prev = r.result
		}
		call := testbed.Call{
			Plugin: b.binary, Command: verb, ContainerID: "c-" + b.pod.Name, NetNS: b.pod.Path(), IfName: name,
			Config: b.config(r, prev),
		}
		wait.Go(func() {
			out, err := call.Run(context.Background())
			if err == nil {
				err = out.Err()
			}
			if err == nil && verb == "ADD" {
				r.result = out.Stdout
			}
			if err != nil {
				failed[i] = fmt.Errorf("%s %s: %w", verb, name, err)
			}
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// cmdStorm attaches rails all at once and detaches them all at once, again and
// again: "storm ROUNDS NAME…". Every round must end in the first one's state (I8), and
// every DEL in the state before.
func cmdStorm(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b := bedOf(ts)
	rounds, err := strconv.Atoi(args[0])
	ts.Check(err)
	names := spread(args[1:])
	var attached, detached *testbed.Snapshot
	for n := range rounds {
		for _, half := range []struct {
			verb string
			want **testbed.Snapshot
		}{{"ADD", &attached}, {"DEL", &detached}} {
			if err := b.atOnce(half.verb, names); err != nil {
				ts.Fatalf("round %d: %v", n, err)
			}
			now, err := b.pod.Snapshot(context.Background())
			ts.Check(err)
			slices.Sort(now.Lines) // rules of one priority stand in the order they were made
			if *half.want == nil {
				*half.want = &now
			}
			mustEqual(ts, fmt.Sprintf("I8: round %d of %s differs from the first", n, half.verb), **half.want, now)
		}
	}
}

// cmdClean asserts that no rule or route of railtune's is in the pod, in either family.
func cmdClean(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	now, err := bedOf(ts).pod.Snapshot(context.Background())
	ts.Check(err)
	for _, line := range now.Lines {
		if strings.Contains(line, mark) {
			ts.Fatalf("left: %s", line)
		}
	}
}
