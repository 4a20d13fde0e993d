package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
	"github.com/railtune/railtune/pkg/testbed"
)

// calls counts what does not depend on what else the machine does: system calls,
// instructions and allocations.
func calls(ctx context.Context, b *bench) (err error) {
	f, err := testbed.NewFabric(testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 4, Direct: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d, err := newBed(f, false)
	if err != nil {
		return err
	}
	rows := []struct {
		name  string
		entry entry
	}{
		{"do nothing, in Go", entry{b.floor, nil}},
		{withoutProof, entry{b.railtune, unproven}},
		{withProof, entry{b.railtune, testbed.Railtune}},
		{"tuning", entry{b.plugin("tuning"), tuningConfig}},
		{"sbr", entry{b.plugin("sbr"), sbrConfig}},
	}
	if b.old != "" {
		rows = append(rows, struct {
			name  string
			entry entry
		}{before, entry{b.old, unproven}})
	}
	t := newTable("", "ADD system calls", "DEL system calls", "ADD instructions", "DEL instructions",
		"ADD, own KiB", "and of files", "binary, bytes")
	for _, row := range rows {
		cells := []string{row.name}
		for _, count := range []func(context.Context, *bench, process) (string, error){systemCalls, instructions} {
			if err := d.afresh(ctx, d.pod.Rails...); err != nil {
				return err
			}
			for _, verb := range []string{"ADD", "DEL"} {
				n, err := count(ctx, b, d.process(d.pod.Rails[0], row.entry, verb))
				if err != nil {
					return err
				}
				cells = append(cells, n)
			}
		}
		m, err := b.memoryOfAdd(ctx, d, row.entry)
		if err != nil {
			return err
		}
		cells = append(cells, strconv.Itoa(m.own), strconv.Itoa(m.files))
		info, err := os.Stat(row.entry.program)
		if err != nil {
			return err
		}
		t.row(append(cells, strconv.FormatInt(info.Size(), 10))...)
		if row.name == withoutProof {
			b.reached["size"] = float64(info.Size())
		}
	}
	t.print("Counts, 4 rails, IPv4 (system calls without futex and nanosleep; instructions in user mode; memory at the end)")
	if err := d.afresh(ctx, d.pod.Rails...); err != nil {
		return err
	}
	if err := allocations(ctx, d); err != nil {
		return err
	}
	return inits(ctx, b)
}

// missing stands for a count that no tool here can make.
const missing = "–"

// systemCalls counts with strace. What Go's scheduler does differs from run to run.
func systemCalls(ctx context.Context, b *bench, p process) (string, error) {
	if _, err := exec.LookPath("strace"); err != nil {
		return missing + " (no strace)", nil
	}
	out := b.dir + "/strace"
	if _, _, err := b.execute(ctx, p, "strace", "-f", "-c", "-o", out, p.program); err != nil {
		return "", err
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		return "", err
	}
	sum := 0
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || slices.Contains([]string{"futex", "nanosleep", "total"}, fields[len(fields)-1]) {
			continue
		}
		if n, err := strconv.Atoi(fields[3]); err == nil {
			sum += n
		}
	}
	return strconv.Itoa(sum), nil
}

var refs = regexp.MustCompile(`I +refs: +([0-9,]+)`)

// instructions counts with valgrind. It does not survive the signals that the Go
// runtime preempts with, so these are off; the fewest of three runs has the least of
// the scheduler's spinning in it. The second and third ADD find everything there, so
// each is preceded by a DEL.
func instructions(ctx context.Context, b *bench, p process) (string, error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return missing + " (no valgrind)", nil
	}
	fewest := 0
	for range 3 {
		if p.verb == "ADD" && p.program != b.floor {
			undo := p
			undo.verb = "DEL"
			if _, err := b.measure(ctx, undo); err != nil {
				return "", err
			}
		}
		_, out, err := b.execute(ctx, p, "env", "GODEBUG=asyncpreemptoff=1",
			"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", p.program)
		found := refs.FindStringSubmatch(out)
		if err != nil || found == nil {
			continue // valgrind's, not the plugin's: measure has run it
		}
		n, err := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
		if err == nil && (fewest == 0 || n < fewest) {
			fewest = n
		}
	}
	if fewest == 0 {
		return missing + " (valgrind failed)", nil
	}
	return fmt.Sprintf("%.2f M", float64(fewest)/1e6), nil
}

// allocations counts what ADD itself allocates, in this process.
func allocations(ctx context.Context, d *bed) error {
	rail := d.pod.Rails[0]
	t := newTable("in process", "allocations", "bytes")
	for _, c := range []struct {
		name  string
		entry testbed.Object
	}{{withoutProof, unproven}, {withProof, testbed.Railtune}} {
		raw, err := json.Marshal(d.process(rail, entry{config: c.entry}, "ADD").config)
		if err != nil {
			return err
		}
		var counts, bytes []uint64
		for range 5 {
			var before, after runtime.MemStats
			err := d.pod.Do(func() error {
				runtime.ReadMemStats(&before)
				err := add(ctx, raw, rail.Name, d.pod.Path())
				runtime.ReadMemStats(&after)
				return err
			})
			if err != nil {
				return err
			}
			counts, bytes = append(counts, after.Mallocs-before.Mallocs), append(bytes, after.TotalAlloc-before.TotalAlloc)
			if err := d.pod.Do(func() error { return onRail(rail.Name, d.pod.Path(), (*attach.Rail).Del) }); err != nil {
				return err
			}
		}
		slices.Sort(counts)
		slices.Sort(bytes)
		t.row("ADD, "+c.name, strconv.FormatUint(counts[2], 10), strconv.FormatUint(bytes[2], 10))
	}
	t.print("Allocations of an ADD")
	return nil
}

func add(ctx context.Context, stdin []byte, ifname, netns string) error {
	cfg, err := config.Parse(stdin)
	if err != nil {
		return err
	}
	res, err := prevresult.Parse(cfg.PrevResult, cfg.CNIVersion, nil)
	if err != nil {
		return err
	}
	return onRail(ifname, netns, func(r *attach.Rail) error {
		_, err := r.Add(ctx, cfg, res)
		return err
	})
}

// onRail calls f with a rail of the calling thread's namespace.
func onRail(ifname, netns string, f func(*attach.Rail) error) error {
	k, err := kernel.Open()
	if err != nil {
		return err
	}
	defer k.Close()
	return f(&attach.Rail{IfName: ifname, NetNS: netns, Kernel: k, Files: sysctl.Proc{}, Log: quietly{}, Neighbours: attach.Wire{}})
}

// quietly is a log for a run whose warnings are known.
type quietly struct{}

func (quietly) Warnf(string, ...any)  {}
func (quietly) Debugf(string, ...any) {}

var initLine = regexp.MustCompile(`^init (\S+) @.*, ([0-9.]+) ms clock, ([0-9]+) bytes, ([0-9]+) allocs`)

// inits shows what package initialisation costs (GODEBUG=inittrace=1).
func inits(ctx context.Context, b *bench) error {
	type row struct {
		name          string
		bytes, allocs int
		ms            float64
	}
	trace := func(program string) (sum row, all []row, err error) {
		_, out, err := b.execute(ctx, idle(program), "env", "GODEBUG=inittrace=1", program)
		if err != nil {
			return sum, nil, err
		}
		for line := range strings.Lines(out) {
			if m := initLine.FindStringSubmatch(line); m != nil && m[1] != "runtime" {
				r := row{name: m[1]}
				r.ms, _ = strconv.ParseFloat(m[2], 64)
				r.bytes, _ = strconv.Atoi(m[3])
				r.allocs, _ = strconv.Atoi(m[4])
				sum.ms, sum.bytes, sum.allocs = sum.ms+r.ms, sum.bytes+r.bytes, sum.allocs+r.allocs
				all = append(all, r)
			}
		}
		return sum, all, nil
	}
	t := newTable("GODEBUG=inittrace=1, GC", "packages", "ms", "bytes", "allocations")
	for _, p := range []struct{ name, path string }{
		{"do nothing, in Go", b.floor}, {"railtune", b.railtune}, {"tuning", b.plugin("tuning")}, {"sbr", b.plugin("sbr")},
	} {
		sum, all, err := trace(p.path)
		if err != nil {
			return err
		}
		t.row(p.name, strconv.Itoa(len(all)), fmt.Sprintf("%.2f", sum.ms), strconv.Itoa(sum.bytes), strconv.Itoa(sum.allocs))
		if p.path != b.railtune {
			continue
		}
		slices.SortFunc(all, func(x, y row) int { return cmp.Compare(y.bytes, x.bytes) })
		for _, r := range all[:min(6, len(all))] {
			t.row("railtune: "+r.name, "", fmt.Sprintf("%.3f", r.ms), strconv.Itoa(r.bytes), strconv.Itoa(r.allocs))
		}
	}
	t.print("Package initialisation")
	return nil
}
