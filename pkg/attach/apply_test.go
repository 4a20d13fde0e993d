package attach_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/testbed"
)

// fleet calls f with the rails named, each with sockets of its own, in the pod.
func fleet(t *testing.T, pod *testbed.Namespace, conf string, wire attach.Neighbours, names []string, f func(*attach.Fleet) error) error {
	t.Helper()
	cfg, err := config.Parse([]byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	return pod.Do(func() error {
		fleet := &attach.Fleet{Config: cfg, Enter: pod.Do}
		for _, name := range names {
			r, k, err := openRail(pod.Path(), testLog{t})
			if err != nil {
				return err
			}
			defer k.Close()
			r.IfName, r.Neighbours = name, wire
			fleet.Rails = append(fleet.Rails, r)
		}
		return f(fleet)
	})
}

// TestGiven is what apply takes from a link instead of a prevResult: what somebody gave
// it, and nothing that the kernel made by itself or that railtune made.
func TestGiven(t *testing.T) {
	const quiet = `"verify":{"mode":"off"},"announce":false`
	for _, c := range []struct {
		name, ip, conf string
		with, without  []string
	}{
		{
			name: "nothing but addresses",
			with: []string{"from 10.61.1.11 lookup", "from fd5a:1::11 lookup", "from 10.61.1.11 unreachable"}, without: []string{"default", "via"},
		},
		{
			name: "main's default route", ip: "route add default via 10.61.1.254 dev net1 metric 700",
			with: []string{"default via 10.61.1.254 dev net1 table 7"}, without: []string{"competes"},
		},
		{
			name: "the preferred of two default routes",
			ip:   "route add default via 10.61.1.254 dev net1 metric 700\nroute add default via 10.61.1.253 dev net1 metric 600",
			with: []string{"default via 10.61.1.253 dev net1 table 7"}, without: []string{"10.61.1.254"},
		},
		{
			name: "another interface's default route", // eth0's, by the pod
			conf: `"supernets":[{"dst":"10.61.0.0/16","gw":"10.61.1.1"}],`,
			with: []string{"10.61.0.0/16 via 10.61.1.1 dev net1 table 7", "10.61.0.0/16 via 10.61.1.1 dev net1 src 10.61.1.11 metric 1"},
		},
		{
			name: "a router advertisement's default route", ip: "-6 route add default via fe80::1 dev net1 proto ra metric 1024",
			with: []string{"no guard rule"}, without: []string{"via fe80::1", "from fd5a:1::11 unreachable"},
		},
		{
			name: "a static link-local default route", ip: "-6 route add default via fe80::1 dev net1 proto static metric 1024",
			with: []string{"-6 route add default via fe80::1 dev net1 table 7", "from fd5a:1::11 unreachable"},
		},
		{
			name: "an address from a router advertisement", ip: "addr add fd5a:2::5/64 dev net1 mngtmpaddr nodad", without: []string{"fd5a:2::"},
		},
		{
			name: "addresses of the kernel's that another link has too",
			ip: "addr add fe80::5/64 dev net1 nodad\naddr add fe80::5/64 dev eth0 nodad\n" +
				"addr add fd5a:2::5/64 dev net1 mngtmpaddr nodad\naddr add fd5a:2::5/64 dev eth0 mngtmpaddr nodad",
			with: []string{"from fd5a:1::11 lookup"}, without: []string{"fd5a:2::", "fe80"},
		},
		{
			name: "a route through a next hop", ip: "route add 10.70.0.0/16 via 10.61.1.254 dev net1",
			conf: `"supernets":[{"dst":"10.61.0.0/16"}],`,
			with: []string{"10.70.0.0/16 via 10.61.1.254 dev net1 table 7", "10.61.0.0/16 via 10.61.1.254 dev net1 table 7", "default via 10.61.1.254"},
		},
		{
			name: "a default route in a table whose rule was lost", ip: "route add default via 10.61.1.254 dev net1 table 101",
			with: []string{"default via 10.61.1.254 dev net1 table 7"},
		},
		{
			name: "main's before another table's",
			ip:   "route add 10.70.0.0/16 via 10.61.1.254 dev net1\nroute add default via 10.61.1.253 dev net1 table 101",
			with: []string{"default via 10.61.1.254 dev net1 table 7"}, without: []string{"10.61.1.253"},
		},
		{
			name: "tables that do not agree",
			ip:   "route add default via 10.61.1.254 dev net1 table 101\nroute add default via 10.61.1.253 dev net1 table 102",
			with: []string{"do not agree on the gateway of 10.61.1.11"}, without: []string{"route add default"},
		},
		{
			name: "on the link, without a gateway", ip: "route add 10.70.0.0/16 dev net1 scope link",
			with: []string{"10.70.0.0/16 dev net1 table 7"},
		},
		{
			name: "on the link, with a gateway", ip: "route add 10.70.0.0/16 dev net1 scope link\nroute add default via 10.61.1.254 dev net1 metric 700",
			without: []string{"10.70.0.0/16"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pod := newPod(t)
			for line := range strings.Lines(c.ip) {
				words := strings.Fields(line)
				mustRun(t, pod, words...)
				if words[0] == "addr" { // addr add ADDRESS dev NAME …
					if err := pod.SettleAddresses(words[4], netip.MustParsePrefix(words[2]).Addr()); err != nil {
						t.Fatal(err)
					}
				}
			}
			mustSettle(t, pod, "fd5a:1::11")
			before := testbed.MustSnapshot(t, pod)
			err := fleet(t, pod, `{`+c.conf+quiet+`}`, nil, []string{"net1"}, func(f *attach.Fleet) error {
				prepared, err := f.Prepare()
				if err != nil {
					return err
				}
				if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 {
					t.Errorf("Prepare changed:\n%s", d)
				}
				text := prepared[0].String()
				for _, w := range c.with {
					if !strings.Contains(text, w) {
						t.Errorf("the plan lacks %q:\n%s", w, text)
					}
				}
				for _, w := range c.without {
					if strings.Contains(text, w) {
						t.Errorf("the plan has %q:\n%s", w, text)
					}
				}
				if n, err := f.Apply(context.Background(), prepared); err != nil || n == 0 {
					t.Errorf("%d changes, %v", n, err)
				}
				again, err := f.Prepare()
				if err != nil {
					return err
				}
				if again[0].String() != text || again[0].Missing != 0 || again[0].Wanted == 0 {
					t.Errorf("once applied the plan is another, or %d of %d are missing:\n%s", again[0].Missing, again[0].Wanted, again[0])
				}
				if n, err := f.Apply(context.Background(), again); n != 0 || err != nil {
					t.Errorf("applied again: %d changes, %v", n, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			mustRestore(t, pod, before)
		})
	}
}

// fakeDuplicate is a wire on which the second rail's address is somebody else's too.
type fakeDuplicate struct {
	fakeWire
	second netip.Addr
}

func (f *fakeDuplicate) Prove(_ context.Context, req neigh.Request) (neigh.Report, error) {
	verdict := neigh.OK
	if req.Rail.Addrs[0].Addr() == f.second {
		verdict = neigh.Duplicate
	}
	return neigh.Report{Results: []neigh.Result{{Addr: req.Rail.Addrs[0].Addr(), Role: neigh.Own, Verdict: verdict}}}, nil
}

// TestApplyAllOrNothing: where one rail cannot be proven, none is left changed.
func TestApplyAllOrNothing(t *testing.T) {
	pod := newPod(t)
	addNet2(t, pod)
	before := testbed.MustSnapshot(t, pod)
	wire := &fakeDuplicate{second: netip.MustParseAddr("10.61.1.12")}
	apply := func(f *attach.Fleet) error {
		prepared, err := f.Prepare()
		if err != nil {
			t.Errorf("before anything was changed: %v", err)
			return err
		}
		_, err = f.Apply(context.Background(), prepared)
		return err
	}
	err := fleet(t, pod, `{}`, wire, []string{"net1", "net2"}, apply)
	if cnierr.CodeOf(err, 0) != cnierr.Neighbour || !strings.Contains(err.Error(), "net2") || strings.Contains(err.Error(), "net1") {
		t.Errorf("got %v, want net2's duplicate", err)
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 || wire.announced != 0 {
		t.Errorf("announced %d times, left:\n%s", wire.announced, d)
	}
	if err := fleet(t, pod, `{}`, wire, []string{"net1"}, apply); err != nil || wire.announced != 1 {
		t.Errorf("net1 alone: announced %d times, %v", wire.announced, err)
	}
}

// fakeSlow is a wire on which the proof ends only when it is told to.
type fakeSlow struct {
	fakeWire
	stop context.CancelFunc
}

func (f *fakeSlow) Prove(ctx context.Context, _ neigh.Request) (neigh.Report, error) {
	f.stop()
	<-ctx.Done()
	return neigh.Report{}, ctx.Err()
}

// TestApplyInterrupted: stopped in the middle of the proof everything is put back, also
// where an unfinished proof would only be warned about.
func TestApplyInterrupted(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	ctx, stop := context.WithCancel(t.Context())
	wire := &fakeSlow{stop: stop}
	err := fleet(t, pod, `{"verify":{"mode":"warn"}}`, wire, []string{"net1"}, func(f *attach.Fleet) error {
		prepared, err := f.Prepare()
		if err != nil {
			t.Errorf("before it was interrupted: %v", err)
			return err
		}
		_, err = f.Apply(ctx, prepared)
		return err
	})
	if !errors.Is(err, context.Canceled) || wire.announced != 0 {
		t.Errorf("announced %d times, got %v", wire.announced, err)
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 {
		t.Errorf("left:\n%s", d)
	}
}

func addNet2(t *testing.T, pod *testbed.Namespace) {
	t.Helper()
	for _, line := range []string{
		"link add net2 type veth peer name net2p", "link set net2 addrgenmode none", "link set net2p addrgenmode none",
		"link set net2 up", "link set net2p up", "addr add 10.61.1.12/24 dev net2",
	} {
		mustRun(t, pod, strings.Fields(line)...)
	}
	mustSettle(t, pod, "fd5a:1::11")
}

// TestApplyOneTable: a table by number can only be one rail's.
func TestApplyOneTable(t *testing.T) {
	pod := newPod(t)
	addNet2(t, pod)
	err := fleet(t, pod, `{"table":500}`, nil, []string{"net1", "net2"}, func(f *attach.Fleet) error {
		_, err := f.Prepare()
		return err
	})
	if cnierr.CodeOf(err, 0) != cnierr.Config {
		t.Errorf("got %v, want code %d", err, cnierr.Config)
	}
}

// TestUndo: it names what it removes, and without more than looking where that was asked.
func TestUndo(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	if err := with(t, pod, add); err != nil {
		t.Fatal(err)
	}
	added := testbed.MustSnapshot(t, pod)
	undo := func(dry bool) (lines []string) {
		if err := with(t, pod, func(r *attach.Rail) (err error) {
			lines, err = r.Undo(dry)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	looked := undo(true)
	if d := testbed.Diff(added, testbed.MustSnapshot(t, pod)); len(d) > 0 {
		t.Errorf("looking changed:\n%s", d)
	}
	removed := undo(false)
	if len(removed) < 8 || !slices.Equal(looked, removed) || !slices.Contains(removed, "ip rule del priority 722 from 10.61.1.11 unreachable protocol 72") {
		t.Errorf("looked:\n%s\nremoved:\n%s", strings.Join(looked, "\n"), strings.Join(removed, "\n"))
	}
	if again := undo(false); len(again) > 0 {
		t.Errorf("removed twice:\n%s", strings.Join(again, "\n"))
	}
	mustRestore(t, pod, before)
}

// TestSelect is what patterns name.
func TestSelect(t *testing.T) {
	pod := newPod(t)
	addNet2(t, pod)
	mustRun(t, pod, "rule", "add", "priority", "721", "oif", "net9", "lookup", "7200099", "protocol", "72")
	for _, c := range []struct {
		patterns, want string
		leftovers      bool
	}{
		{patterns: "net?", want: "net1 net2"},
		{patterns: "net2 net1", want: "net1 net2"},
		{patterns: "net? net1", want: "net1 net2"},
		{patterns: "net1 eth0", want: "eth0 net1"},
		{patterns: "net[13]", want: "net1"},
		{patterns: "*", want: "matches eth0"},
		{patterns: "[", want: "syntax error"},
		{patterns: "net1 rdma*", want: "--rail rdma* matches no interface (there are lo, eth0"},
		{patterns: "net9", want: "--rail net9 matches no interface"},
		{patterns: "net[129]", want: "net1 net2 net9", leftovers: true},
		{patterns: "net7", want: "net7", leftovers: true},
		{patterns: "rdma*", want: "matches no interface", leftovers: true},
	} {
		err := pod.Do(func() error {
			k, err := kernel.Open()
			if err != nil {
				return err
			}
			defer k.Close()
			names, err := attach.Select(k, strings.Fields(c.patterns), c.leftovers)
			if got := strings.Join(names, " "); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %s, %v; want %s", c.patterns, got, err, c.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestApplyWithoutFirstInterface: the default route that counts is a rail's own. The
// other rails must not take that rail for the cluster's interface, neither before nor
// after it is tuned.
func TestApplyWithoutFirstInterface(t *testing.T) {
	pod := newPod(t)
	addNet2(t, pod)
	for _, line := range []string{
		"link del eth0", "route add default via 10.61.1.254 dev net1 metric 501", "route add default via 10.61.1.253 dev net2 metric 502",
	} {
		mustRun(t, pod, strings.Fields(line)...)
	}
	conf := `{"supernets":[{"dst":"10.60.0.0/14"}],"verify":{"mode":"off"},"announce":false}`
	err := fleet(t, pod, conf, nil, []string{"net1", "net2"}, func(f *attach.Fleet) error {
		for range 2 {
			prepared, err := f.Prepare()
			if err != nil {
				return err
			}
			for _, p := range prepared {
				if len(p.Plan.Main) != 1 {
					t.Errorf("%s has no supernet in main:\n%s", p.IfName(), p)
				}
			}
			if _, err := f.Apply(context.Background(), prepared); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
