package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Path is one directed way from a rail to another.
type Path struct {
	From, To         *Pod
	FromRail, ToRail Rail
}

// String is A.net1→B.net4.
func (p Path) String() string {
	return p.From.Prefixed(p.FromRail) + "→" + p.To.Prefixed(p.ToRail)
}

// SameRail are the directed paths between equal rails of all pods: 32 for two
// pods of 16.
func (f *Fabric) SameRail() []Path {
	return f.paths(func(from, to Rail) bool { return from.Index == to.Index })
}

// CrossRail are the directed paths between different rails of different pods:
// 480 for two pods of 16.
func (f *Fabric) CrossRail() []Path {
	return f.paths(func(from, to Rail) bool { return from.Index != to.Index })
}

func (f *Fabric) paths(wanted func(from, to Rail) bool) []Path {
	var paths []Path
	for _, from := range f.Pods {
		for _, to := range f.Pods {
			if from == to {
				continue
			}
			for _, a := range from.Rails {
				for _, b := range to.Rails {
					if wanted(a, b) {
						paths = append(paths, Path{from, to, a, b})
					}
				}
			}
		}
	}
	return paths
}

// Probe says how Measure tries a path.
type Probe struct {
	// Rounds is how often all paths are tried, one round after the other, 1 when
	// 0. Under flux the first try often gets through where the second does not.
	Rounds int
	// Wait is how long an answer may take, 1s when 0.
	Wait time.Duration
	// Warm leaves the neighbour tables as they are, where else both ends forget
	// them before the first round.
	Warm bool
	// BindAddress binds each ping to the rail's address, not to its device.
	BindAddress bool
}

// Tally is what became of the pings of one path.
type Tally struct {
	Sent int
	// Arrived counts the requests that reached the rail that owns the
	// destination. Only a strict pod counts them; else it is 0.
	Arrived int
	// Answered counts the requests whose answer came back, to the rail that
	// asked.
	Answered int
}

// Matrix holds what became of each path.
type Matrix map[Path]Tally

// Answered is how many paths answered every try.
func (m Matrix) Answered() int {
	return m.count(func(t Tally) bool { return t.Answered == t.Sent })
}

// Arrived is how many paths brought every try to the rail that owns the
// destination.
func (m Matrix) Arrived() int {
	return m.count(func(t Tally) bool { return t.Arrived == t.Sent })
}

func (m Matrix) count(good func(Tally) bool) int {
	n := 0
	for _, t := range m {
		if good(t) {
			n++
		}
	}
	return n
}

// atOnce bounds the pings that run at the same time. Those of dead paths only
// wait, so it is far more than there are processors.
const atOnce = 512

// Measure pings every path, all at once, with the ping command bound to the
// rail.
func Measure(ctx context.Context, paths []Path, probe Probe) (Matrix, error) {
	m := make(Matrix, len(paths))
	pods := map[*Pod]bool{}
	for _, p := range paths {
		m[p] = Tally{}
		pods[p.From], pods[p.To] = true, true
	}
	for p := range pods {
		if err := p.forgetArrivals(ctx); err != nil {
			return nil, err
		}
		if probe.Warm {
			continue
		}
		if err := p.ForgetNeighbours(ctx); err != nil {
			return nil, err
		}
	}
	for range max(probe.Rounds, 1) {
		if err := m.round(ctx, paths, probe); err != nil {
			return nil, err
		}
	}
	for p := range pods {
		arrived, err := p.arrivals(ctx)
		if err != nil {
			return nil, err
		}
		for path, tally := range m {
			if path.To == p {
				tally.Arrived = arrived[[2]netip.Addr{path.FromRail.Addr.Addr(), path.ToRail.Addr.Addr()}]
				m[path] = tally
			}
		}
	}
	return m, nil
}

func (m Matrix) round(ctx context.Context, paths []Path, probe Probe) error {
	var (
		wait  sync.WaitGroup
		lock  sync.Mutex
		errs  []error
		slots = make(chan struct{}, atOnce)
	)
	for _, p := range paths {
		slots <- struct{}{}
		wait.Go(func() {
			ok, err := p.ping(ctx, probe)
			<-slots
			lock.Lock()
			defer lock.Unlock()
			tally := m[p]
			tally.Sent++
			if ok {
				tally.Answered++
			}
			m[p] = tally
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// ping reports whether one echo came back. Its exit code is 1 for silence and
// for unreachable, and 2 for what makes the answer meaningless.
func (p Path) ping(ctx context.Context, probe Probe) (bool, error) {
	source := p.FromRail.Name
	if probe.BindAddress {
		source = p.FromRail.Addr.Addr().String()
	}
	wait := probe.Wait
	if wait == 0 {
		wait = time.Second
	}
	o, err := finish(exec.CommandContext(ctx, "ping", "-n", "-q", "-c", "1",
		"-W", fmt.Sprintf("%.3f", wait.Seconds()), "-I", source, p.ToRail.Addr.Addr().String()), p.From.Namespace)
	switch {
	case err != nil:
		return false, fmt.Errorf("ping %s: %w", p, err)
	case strings.Contains(o.Stderr, "No buffer space available"):
		return false, fmt.Errorf("ping %s: the machine's neighbour table is full (gc_thresh3), by this test or another: %s", p, strings.TrimSpace(o.Stderr))
	case o.Exit > 1 || o.Exit < 0:
		return false, fmt.Errorf("ping %s: exit %d: %s", p, o.Exit, strings.TrimSpace(o.Stderr))
	}
	return o.Exit == 0, nil
}
