package attach_test

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
	"github.com/railtune/railtune/pkg/testbed"
)

// fault strikes once, at the n-th operation that passes through it.
type fault struct {
	n      int
	err    error
	struck bool
}

func (f *fault) strike() error {
	if f.n--; f.n == 0 {
		f.struck = true
		return f.err
	}
	return nil
}

// fakeFaultyKernel is the real kernel with one operation that fails.
type fakeFaultyKernel struct {
	attach.Kernel
	*fault
}

func (k fakeFaultyKernel) Links() ([]netstate.Link, error) {
	if err := k.strike(); err != nil {
		return nil, err
	}
	return k.Kernel.Links()
}

func (k fakeFaultyKernel) Rules(f policy.Family, keep func(*kernel.FoundRule) bool) ([]kernel.FoundRule, error) {
	if err := k.strike(); err != nil {
		return nil, err
	}
	return k.Kernel.Rules(f, keep)
}

func (k fakeFaultyKernel) RulesUpTo(f policy.Family, last uint32, keep func(*kernel.FoundRule) bool) ([]kernel.FoundRule, error) {
	if err := k.strike(); err != nil {
		return nil, err
	}
	return k.Kernel.RulesUpTo(f, last, keep)
}

func (k fakeFaultyKernel) AddRule(r policy.Rule) error {
	if err := k.strike(); err != nil {
		return err
	}
	return k.Kernel.AddRule(r)
}

func (k fakeFaultyKernel) Routes(f policy.Family, filter kernel.RouteFilter) ([]kernel.FoundRoute, error) {
	if err := k.strike(); err != nil {
		return nil, err
	}
	return k.Kernel.Routes(f, filter)
}

func (k fakeFaultyKernel) AddRoute(r policy.Route) error {
	if err := k.strike(); err != nil {
		return err
	}
	return k.Kernel.AddRoute(r)
}

func (k fakeFaultyKernel) Lookup(to, from netip.Addr, ifindex int) (kernel.Hop, error) {
	if err := k.strike(); err != nil {
		return kernel.Hop{}, err
	}
	return k.Kernel.Lookup(to, from, ifindex)
}

// fakeFaultyFiles is the real /proc/sys with one operation that fails.
type fakeFaultyFiles struct {
	sysctl.Files
	*fault
}

func (f fakeFaultyFiles) Read(path string) (string, error) {
	if err := f.strike(); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return f.Files.Read(path)
}

func (f fakeFaultyFiles) Write(path, value string) error {
	if err := f.strike(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Files.Write(path, value)
}

// TestEveryFault lets ADD fail at every operation in turn, with every errno the
// kernel may give, and looks whether anything is left.
func TestEveryFault(t *testing.T) {
	testbed.NeedRoot(t)
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENODEV, unix.ENOBUFS, unix.EOPNOTSUPP, unix.EROFS, unix.ENETUNREACH, unix.EINTR} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			t.Parallel()
			pod := newPod(t)
			before := testbed.MustSnapshot(t, pod)
			for n := 1; ; n++ {
				f := &fault{n: n, err: errno}
				err := with(t, pod, func(r *attach.Rail) error {
					r.Kernel, r.Files = fakeFaultyKernel{r.Kernel, f}, fakeFaultyFiles{r.Files, f}
					return add(r)
				})
				if !f.struck {
					if err != nil {
						t.Fatalf("without a fault: %v", err)
					}
					t.Logf("%d operations", n-1)
					break
				}
				if err == nil { // a fault that ADD may survive: what was only for a message, or right already
					t.Logf("operation %d: survived", n)
					mustRestore(t, pod, before)
					continue
				}
				if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 {
					t.Fatalf("operation %d failed (%v) and left:\n%s", n, err, d)
				}
			}
			mustRestore(t, pod, before)
		})
	}
}

// TestNoPolicyRouting is RT-72: a kernel without policy routing. It is a fake: no such
// kernel is at hand.
func TestNoPolicyRouting(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	err := with(t, pod, func(r *attach.Rail) error {
		r.Kernel = fakeNoRules{Kernel: r.Kernel}
		return add(r)
	})
	if cnierr.CodeOf(err, 0) != cnierr.Kernel {
		t.Errorf("got %v, want code %d", err, cnierr.Kernel)
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 {
		t.Errorf("left:\n%s", d)
	}
	if err := with(t, pod, func(r *attach.Rail) error { return attach.Status(fakeNoRules{Kernel: r.Kernel}) }); cnierr.CodeOf(err, 0) != cnierr.Unavailable {
		t.Errorf("STATUS: got %v, want code %d", err, cnierr.Unavailable)
	}
	if err := with(t, pod, func(r *attach.Rail) error {
		r.Kernel = fakeNoRules{Kernel: r.Kernel}
		return r.Del()
	}); err != nil {
		t.Errorf("DEL: %v", err)
	}
}

// fakeNoRules is a kernel built without CONFIG_IP_MULTIPLE_TABLES.
type fakeNoRules struct{ attach.Kernel }

func (fakeNoRules) Rules(policy.Family, func(*kernel.FoundRule) bool) ([]kernel.FoundRule, error) {
	return nil, unix.EOPNOTSUPP
}

func (fakeNoRules) RulesUpTo(policy.Family, uint32, func(*kernel.FoundRule) bool) ([]kernel.FoundRule, error) {
	return nil, unix.EOPNOTSUPP
}

func (fakeNoRules) AddRule(policy.Rule) error { return unix.EOPNOTSUPP }

// TestSlotTaken is EEXIST with another object behind it: the place of the plan's route
// in main is held by someone else's.
func TestSlotTaken(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	fake := &fakeLateRoute{t: t, pod: pod}
	err := with(t, pod, func(r *attach.Rail) error {
		fake.Kernel = r.Kernel
		r.Kernel = fake
		return add(r)
	})
	if cnierr.CodeOf(err, 0) != cnierr.Routing {
		t.Errorf("got %v, want code %d", err, cnierr.Routing)
	}
	mustRun(t, pod, "route", "del", "10.61.0.0/16", "dev", "eth0", "metric", fake.metric)
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 {
		t.Errorf("left:\n%s", d)
	}
}

// fakeLateRoute lets another tool take the place of the supernet in main just before
// railtune adds it.
type fakeLateRoute struct {
	attach.Kernel
	t      *testing.T
	pod    *testbed.Namespace
	metric string
}

func (k *fakeLateRoute) AddRoute(r policy.Route) error {
	if r.Table == policy.MainTable && r.Family() == policy.IPv4 {
		k.metric = fmt.Sprint(r.Metric)
		mustRun(k.t, k.pod, "route", "add", "10.61.0.0/16", "dev", "eth0", "metric", k.metric)
	}
	return k.Kernel.AddRoute(r)
}
