//go:build vm

package vm

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

const roceRails = 4

// phase is one way to attach the rails.
type phase struct {
	title  string
	follow []object // the chain after the interface plugin
	stray  bool     // the pods hold policy rules that have lost their device
	flux   bool     // at least one rail has to fail, over another rail's MAC
	// longest is cut short where it is spent on what is expected to hang.
	longest time.Duration
}

// phases in the order of the table's columns.
var phases = []phase{
	{title: "without railtune", flux: true, longest: 10 * time.Second},
	{title: "with railtune", follow: []object{testbed.Railtune}, longest: patience},
	{title: "with railtune, arp_filter=1, stray rules", follow: []object{arpFilter, testbed.Railtune}, stray: true, longest: patience},
}

// arpFilter makes the kernel answer ARP only where its way back to the asker is through
// the same interface.
var arpFilter = object{"type": "tuning", "sysctl": object{"net.ipv4.conf.IFNAME.arp_filter": "1"}}

// result is what became of a path, with the MAC its sender had for the receiver.
type result struct {
	want, found  string
	write, rping error
}

// TestRoCE is the field's failure and its end, with RDMA over NICs that have SR-IOV: two
// pods with four rails each in one subnet, the virtual functions moved by the chain.
func TestRoCE(t *testing.T) {
	nics := virtualFunctions(t, roceRails)
	results := make([]map[way]result, len(phases))
	for k, ph := range phases {
		t.Run(ph.title, func(t *testing.T) {
			pods := roceBed(t, nics, ph)
			results[k] = measure(t, pods, ph.longest)
			ph.judge(t, results[k])
		})
	}
	if !t.Failed() {
		reports["roce"] = roceTable(results)
	}
}

// way names a path in a table.
type way struct{ rail, direction string }

// measure tries all rails at once, in one direction and then in the other.
func measure(t *testing.T, pods [2]*rocePod, longest time.Duration) map[way]result {
	results := map[way]result{}
	port := 18500
	for _, ends := range [][2]*rocePod{{pods[0], pods[1]}, {pods[1], pods[0]}} {
		for _, p := range pods {
			run(t, p.Namespace, "ip neigh flush all")
		}
		paths := make([]path, len(ends[0].macs))
		for i := range paths {
			paths[i] = path{ends[0], ends[1], i}
			paths[i].learn(t)
		}
		written := atOnce(paths, func(p path) error { return p.passes(t.Context(), p.write4K(port+p.rail, longest)) })
		pinged := atOnce(paths, func(p path) error { return p.passes(t.Context(), p.rping(port+p.rail, longest)) })
		port += len(paths)
		for i, p := range paths {
			r := result{want: p.to.macs[i], found: p.neighbour(t), write: written[i], rping: pinged[i]}
			t.Logf("%s: neighbour %s, right is %s; ib_write_bw: %v; rping: %v", p, r.found, r.want, r.write, r.rping)
			results[way{ifName(i), p.from.role + "→" + p.to.role}] = r
		}
	}
	return results
}

// atOnce tries all paths at the same time.
func atOnce(paths []path, try func(path) error) []error {
	errs := make([]error, len(paths))
	var wait sync.WaitGroup
	for i, p := range paths {
		wait.Go(func() { errs[i] = try(p) })
	}
	wait.Wait()
	return errs
}

// judge asserts what a phase promises. Under flux nobody can say which rail fails, nor
// how many do.
func (ph phase) judge(t *testing.T, results map[way]result) {
	t.Helper()
	var fluxed int
	for p, r := range results {
		for _, err := range []error{r.write, r.rping} {
			if errors.Is(err, errServer) {
				t.Errorf("%s %s: %v", p.rail, p.direction, err)
			}
		}
		if r.write != nil && isOther(r, results) {
			fluxed++
		}
		if ph.flux {
			continue
		}
		if r.found != r.want {
			t.Errorf("%s %s: the neighbour entry is %s, the rail's MAC %s", p.rail, p.direction, r.found, r.want)
		}
		if r.write != nil || r.rping != nil {
			t.Errorf("%s %s: ib_write_bw: %v; rping: %v", p.rail, p.direction, r.write, r.rping)
		}
	}
	if ph.flux && fluxed == 0 {
		t.Errorf("no rail fails over the MAC of another: the bed does not show what railtune is for")
	}
}

// isOther reports whether the MAC found is another rail's of the same pod.
func isOther(r result, all map[way]result) bool {
	for _, other := range all {
		if r.found == other.want && r.found != r.want {
			return true
		}
	}
	return false
}

// roceTable shows a path a line, and for each phase the programs and the MAC.
func roceTable(results []map[way]result) string {
	var b strings.Builder
	b.WriteString("| rail | direction | MAC of the rail |")
	for _, ph := range phases {
		fmt.Fprintf(&b, " %s | ib_write_bw | rping |", ph.title)
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat(" --- |", 3+3*len(phases)))
	passed := make([]int, len(phases))
	for _, direction := range []string{"A→B", "B→A"} {
		for i := range roceRails {
			p := way{ifName(i), direction}
			fmt.Fprintf(&b, "| %s | %s | %s |", p.rail, p.direction, results[0][p].want)
			for k := range phases {
				r := results[k][p]
				mac := "the same"
				if r.found != r.want {
					mac = "**" + r.found + "**"
				}
				fmt.Fprintf(&b, " %s | %s | %s |", mac, passes(r.write), passes(r.rping))
				if r.write == nil {
					passed[k]++
				}
			}
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	for k, ph := range phases {
		fmt.Fprintf(&b, "* %s: ib_write_bw passes on %d of %d paths\n", ph.title, passed[k], 2*roceRails)
	}
	return b.String()
}

func passes(err error) string {
	if err != nil {
		return "**fails**"
	}
	return "passes"
}
