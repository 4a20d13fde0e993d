package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Snapshot is everything railtune could change in a namespace, one fact a line:
//
//	rule4 721: from all oif net1 lookup 7200002 proto 72
//	route6 unicast fe80::/64 dev net1 table main proto kernel …
//	sysctl net/ipv4/conf/net1/arp_ignore = 1
//	link net1: …
//	addr net1 inet 10.61.10.1/16 …
//
// Rules stand in the order in which the kernel evaluates them, all else is
// sorted. Neighbours, counters, remaining lifetimes and the carrier are left out:
// they change by themselves.
type Snapshot struct{ Lines []string }

// Snapshot reads the namespace through the ip command and /proc, and not through
// the netlink library the plugin uses, so that one cannot hide the other's
// mistakes. Some ten milliseconds for a pod of 16 rails.
func (n *Namespace) Snapshot(ctx context.Context) (Snapshot, error) {
	var (
		parts [4][]string
		errs  [4]error
		wait  sync.WaitGroup
	)
	wait.Go(func() { parts[0], errs[0] = n.policy(ctx, "4") })
	wait.Go(func() { parts[1], errs[1] = n.policy(ctx, "6") })
	wait.Go(func() { parts[2], errs[2] = n.links(ctx) })
	wait.Go(func() { errs[3] = n.Do(func() (err error) { parts[3], err = sysctls(); return err }) })
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot of %s: %w", n.Name, err)
	}
	return Snapshot{slices.Concat(parts[:]...)}, nil
}

// policy returns the rules and the routes of all tables of one family.
func (n *Namespace) policy(ctx context.Context, family string) ([]string, error) {
	rules, err := n.Run(ctx, "ip", "-"+family, "-d", "-o", "rule", "show")
	if err != nil {
		return nil, err
	}
	routes, err := n.Run(ctx, "ip", "-"+family, "-d", "-o", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	return append(facts("rule"+family, rules), sorted(facts("route"+family, routes))...), nil
}

func (n *Namespace) links(ctx context.Context) ([]string, error) {
	links, err := n.Run(ctx, "ip", "-d", "-o", "link", "show")
	if err != nil {
		return nil, err
	}
	addrs, err := n.Run(ctx, "ip", "-o", "addr", "show")
	if err != nil {
		return nil, err
	}
	return append(facts("link", links), sorted(facts("addr", number.ReplaceAllString(addrs, "")))...), nil
}

var (
	spaces = regexp.MustCompile(`[\s\\]+`)
	number = regexp.MustCompile(`(?m)^\d+: `) // the ifindex; the link's line has it
	// passing is what changes by itself: lifetimes, bridge timers, and what
	// follows the carrier a moment later (net/core/link_watch.c).
	passing = regexp.MustCompile(` (expires|valid_lft|preferred_lft|\w+_timer|state) +(\w+|[0-9.]+)(sec)?| linkdown|,LOWER_UP|,M-DOWN|NO-CARRIER,| (numtx|gso_max_s).*`)
)

func facts(kind, output string) []string {
	var lines []string
	for line := range strings.Lines(output) {
		line = passing.ReplaceAllString(spaces.ReplaceAllString(line, " "), "")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, kind+" "+line)
		}
	}
	return lines
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// sysctls reads every conf and neigh value of the calling thread's namespace.
func sysctls() ([]string, error) {
	var lines []string
	buf := make([]byte, 4096)
	for _, dir := range []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"} {
		root := filepath.Join("/proc/sys/net", dir)
		ifaces, err := names(root)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		for _, iface := range ifaces {
			keys, err := names(filepath.Join(root, iface))
			if err != nil {
				return nil, err
			}
			for _, key := range keys {
				lines = append(lines, fmt.Sprintf("sysctl net/%s/%s/%s = %s", dir, iface, key, value(filepath.Join(root, iface, key), buf)))
			}
		}
	}
	return lines, nil
}

// names lists a directory, sorted, without the stat a DirEntry would cost.
func names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.Readdirnames(-1)
	return sorted(found), err
}

// value is a file's content, or the error reading it gives (stable_secret has
// none until it is set). Raw calls, as there are some thousand files.
func value(path string, buf []byte) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer unix.Close(fd)
	for {
		got, err := unix.Read(fd, buf)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return "(" + err.Error() + ")"
		default:
			return strings.Join(strings.Fields(string(buf[:got])), " ")
		}
	}
}

// Snapshots is the Snapshot of every pod.
func (f *Fabric) Snapshots(ctx context.Context) ([]Snapshot, error) {
	all := make([]Snapshot, len(f.Pods))
	for i, p := range f.Pods {
		var err error
		if all[i], err = p.Snapshot(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Unchanged returns an error that shows how pods differ from earlier Snapshots,
// leaving out lines that start with one of the prefixes.
func (f *Fabric) Unchanged(ctx context.Context, before []Snapshot, except ...string) error {
	const shown = 20 // sixteen rails change alike
	after, err := f.Snapshots(ctx)
	if err != nil {
		return err
	}
	for i, p := range f.Pods {
		d := Diff(before[i], after[i]).Except(except...)
		if more := len(d) - shown; more > 0 {
			d = append(d[:shown:shown], fmt.Sprintf("… and %d more", more))
		}
		if len(d) > 0 {
			err = errors.Join(err, fmt.Errorf("pod %s is not as it was:\n%s", p.Role, d))
		}
	}
	return err
}

// Matching returns the lines that start with one of the prefixes.
func (s Snapshot) Matching(prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(s.Lines), func(line string) bool { return !hasPrefix(line, prefixes) })
}

func hasPrefix(line string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) })
}

// Changes are the lines that left ("- ") and came ("+ ") between two snapshots.
type Changes []string

// Diff compares two snapshots; equal ones give an empty Changes. A rule that only
// changed places shows as well: its rank is compared with its text.
func Diff(before, after Snapshot) Changes {
	var c Changes
	left, came := tally(before), tally(after)
	for _, line := range before.Lines {
		if came[line] < left[line] {
			c = append(c, "- "+line)
			left[line]--
		}
	}
	left = tally(before)
	for _, line := range after.Lines {
		if left[line] < came[line] {
			c = append(c, "+ "+line)
			came[line]--
		}
	}
	if len(c) == 0 && !slices.Equal(before.Lines, after.Lines) {
		for i := range before.Lines {
			if before.Lines[i] != after.Lines[i] {
				c = append(c, "- "+before.Lines[i], "+ "+after.Lines[i]+" (order)")
			}
		}
	}
	return c
}

func tally(s Snapshot) map[string]int {
	counts := make(map[string]int, len(s.Lines))
	for _, line := range s.Lines {
		counts[line]++
	}
	return counts
}

// Except returns the changes whose line starts with none of the prefixes, as in
// Except("sysctl net/ipv4/conf/net1/") for what must not change.
func (c Changes) Except(prefixes ...string) Changes {
	return slices.DeleteFunc(slices.Clone(c), func(line string) bool { return hasPrefix(line[2:], prefixes) })
}

// String is one change a line.
func (c Changes) String() string { return strings.Join(c, "\n") }
