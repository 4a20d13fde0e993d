package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

func mark(ok bool) string {
	if ok {
		return "✓"
	}
	return "✗"
}

// printRows prints one row per direction and one column per rail.
func printRows(c comparison, before, after testbed.Matrix) {
	width := max(len(c.before.name), len(c.after.name))
	fmt.Printf("   %-*s  rail  ", width, "")
	for _, r := range c.fabric.Pods[0].Rails {
		fmt.Printf("%3d", r.Index)
	}
	fmt.Println()
	for _, result := range []struct {
		name string
		m    testbed.Matrix
	}{{c.before.name, before}, {c.after.name, after}} {
		for i, path := range c.paths {
			if i == 0 || path.From != c.paths[i-1].From {
				if i > 0 {
					fmt.Println()
				}
				fmt.Printf("   %-*s  %s → %s ", width, result.name, path.From.Role, path.To.Role)
				result.name = ""
			}
			fmt.Printf("  %s", mark(result.m[path].Answered == result.m[path].Sent))
		}
		fmt.Printf("   %2d of %d\n\n", result.m.Answered(), len(result.m))
	}
}

// printGrids prints both results side by side, one cell for both directions
// between a rail of A and a rail of B.
func printGrids(c comparison, before, after testbed.Matrix) {
	const gap = "      "
	rails := c.fabric.Pods[0].Rails
	head := func(text string) string { return fmt.Sprintf("%-*s", 3+2*len(rails), text) }
	count := func(m testbed.Matrix) string { return fmt.Sprintf("%d of %d directed paths", m.Answered(), len(m)) }
	fmt.Println("   " + head(c.before.name) + gap + c.after.name)
	fmt.Println("   " + head(count(before)) + gap + count(after))
	for _, r := range rails {
		fmt.Printf("   %2d%s%s%2d%s\n", r.Index, gridRow(c, before, r), gap+" ", r.Index, gridRow(c, after, r))
	}
	fmt.Println()
}

func gridRow(c comparison, m testbed.Matrix, from testbed.Rail) string {
	a, b := c.fabric.Pods[0], c.fabric.Pods[1]
	var row strings.Builder
	for i, there := range b.Rails {
		cell := "·"
		if there.Index != from.Index {
			forth := m[testbed.Path{From: a, To: b, FromRail: from, ToRail: there}]
			back := m[testbed.Path{From: b, To: a, FromRail: b.Rails[from.Index-1], ToRail: a.Rails[i]}]
			cell = mark(forth.Answered == forth.Sent && back.Answered == back.Sent)
		}
		row.WriteString(" " + cell)
	}
	return row.String()
}

// showPod prints what railtune left for one rail, having checked that the others
// have the same.
func showPod(ctx context.Context, p *testbed.Pod) error {
	r := p.Rails[0]
	fmt.Printf("   What railtune left in pod %s for %s, %s via %s, and alike for each of its %d rails:\n\n",
		p.Role, r.Name, r.Addr, r.Gateway, len(p.Rails))
	s, err := p.Snapshot(ctx)
	if err != nil {
		return err
	}
	rules := s.Matching("rule4 720:", "rule4 721:", "rule4 722:")
	own := rulesOf(rules, r)
	for _, other := range p.Rails {
		if n := len(rulesOf(rules, other)); n != len(own) {
			return fmt.Errorf("%s has %d rules and %s %d", r.Name, len(own), other.Name, n)
		}
	}
	section("ip rule", own)
	table := ""
	for _, rule := range own {
		if _, after, found := strings.Cut(rule, " lookup "); found {
			table = strings.Fields(after)[0]
		}
	}
	if table == "" {
		return fmt.Errorf("no rule leads %s to a table of its own", r.Name)
	}
	for _, question := range [][]string{
		{"route", "show", "table", table},
		{"route", "show", "table", "main", "proto", "72", "dev", r.Name},
	} {
		out, err := p.Run(ctx, "ip", question...)
		if err != nil {
			return err
		}
		section("ip "+strings.Join(question, " "), strings.Split(strings.TrimSpace(out), "\n"))
	}
	return showSettings(p)
}

// rulesOf picks the rules that are about one rail.
func rulesOf(rules []string, r testbed.Rail) []string {
	var own []string
	for _, rule := range rules {
		words := strings.Fields(rule)
		if slices.Contains(words, r.Addr.Addr().String()) || slices.Contains(words, r.Name) {
			own = append(own, strings.TrimPrefix(rule, "rule4 "))
		}
	}
	return own
}

func section(title string, lines []string) {
	fmt.Println("   " + title)
	for _, line := range lines {
		fmt.Println("      " + strings.TrimSpace(line))
	}
}

// showSettings prints the values in force: for these keys the kernel takes the
// larger of conf/all and the interface's (IN_DEV_MAXCONF in linux/inetdevice.h).
func showSettings(p *testbed.Pod) error {
	fmt.Printf("   %-24s %8s %10s %9s\n", "effective settings", "conf/all", "conf/"+p.Rails[0].Name, "in force")
	for _, key := range []string{"arp_ignore", "arp_announce", "rp_filter"} {
		all, err := p.Sysctl("ipv4/conf/all/" + key)
		if err != nil {
			return err
		}
		var first string
		for i, r := range p.Rails {
			value, err := p.Sysctl("ipv4/conf/" + r.Name + "/" + key)
			switch {
			case err != nil:
				return err
			case i == 0:
				first = value
			case value != first:
				return fmt.Errorf("%s is %s on %s and %s on %s", key, first, p.Rails[0].Name, value, r.Name)
			}
		}
		fmt.Printf("      %-21s %8s %10s %9s\n", key, all, first, max(all, first))
	}
	return nil
}
