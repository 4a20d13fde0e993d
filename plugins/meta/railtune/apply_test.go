package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// apply runs "railtune apply" on all rails of a pod from outside, which must end with
// the given status, and returns all it printed.
func apply(t *testing.T, pod *testbed.Pod, status int, args ...string) string {
	t.Helper()
	return applyIn(t, pod.Node, status, append([]string{"--netns", pod.Path(), "--rail", "net*"}, args...)...)
}

// applyIn runs "railtune apply" in a namespace.
func applyIn(t *testing.T, in *testbed.Namespace, status int, args ...string) string {
	t.Helper()
	args = append([]string{"apply"}, args...)
	out, err := in.Run(t.Context(), testbed.MustRailtune(t), args...)
	got := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		got, out = exit.ExitCode(), out+err.Error() // which holds its stderr
	}
	if got != status {
		t.Fatalf("railtune %s: exit %d, want %d: %s", strings.Join(args, " "), got, status, out)
	}
	return out
}

// mustPass asserts how many of the paths carry every ping, bound to the rails' addresses.
func mustPass(t *testing.T, what string, paths []testbed.Path, atLeast, atMost int) {
	t.Helper()
	m, err := testbed.Measure(t.Context(), paths, testbed.Probe{Rounds: 2, BindAddress: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Answered(); n < atLeast || n > atMost {
		t.Errorf("%s: %d of %d paths work, want %d to %d", what, n, len(paths), atLeast, atMost)
	}
}

func strict(t *testing.T, fabric *testbed.Fabric) {
	t.Helper()
	for _, p := range fabric.Pods {
		if err := p.Strict(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.StrictSource(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func mustIP(t *testing.T, pod *testbed.Pod, format string, args ...any) {
	t.Helper()
	if _, err := pod.Run(t.Context(), "ip", strings.Fields(fmt.Sprintf(format, args...))...); err != nil {
		t.Fatal(err)
	}
}

// TestApplyOneSubnet is the field's failure where no chain runs: two pods of sixteen
// rails in one subnet. Applied, every path works; applying again changes nothing; undone,
// nothing but the interface settings is left.
func TestApplyOneSubnet(t *testing.T) {
	fabric := testbed.MustFabric(t, testbed.Options{Direct: true})
	strict(t, fabric)
	mustPass(t, "before", fabric.SameRail(), 0, 8)
	before, err := fabric.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range fabric.Pods {
		if out := apply(t, p, 0, "--dry-run"); !strings.Contains(out, "# net16: ") || !strings.Contains(out, "nothing was changed") {
			t.Errorf("the dry run printed:\n%s", out)
		}
	}
	if err := fabric.Unchanged(t.Context(), before); err != nil {
		t.Errorf("the dry run: %v", err)
	}
	for _, p := range fabric.Pods {
		apply(t, p, 0)
	}
	mustPass(t, "applied", fabric.SameRail(), 32, 32)
	applied, err := fabric.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range fabric.Pods {
		if out := apply(t, p, 0); !strings.Contains(out, "16 rails, 0 changes") {
			t.Errorf("applied again it printed:\n%s", out)
		}
	}
	if err := fabric.Unchanged(t.Context(), applied); err != nil {
		t.Errorf("applied again: %v", err)
	}
	var own []string
	for _, r := range fabric.Pods[0].Rails {
		own = append(own, settingsOf(r.Name)...)
	}
	for _, p := range fabric.Pods {
		apply(t, p, 0, "--undo")
		apply(t, p, 0, "--undo")
	}
	if err := fabric.Unchanged(t.Context(), before, own...); err != nil {
		t.Errorf("undone: %v", err)
	}
}

// TestApplyDRANET is a pod as DRANET leaves it: the two ARP values set, and the host's
// sixteen tables with their rules, which lost their device and stand in random order.
func TestApplyDRANET(t *testing.T) {
	fabric := testbed.MustFabric(t, testbed.Options{Direct: true})
	strict(t, fabric)
	seed := rand.Uint64()
	t.Logf("order of rules: seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, p := range fabric.Pods {
		for _, n := range random.Perm(len(p.Rails)) {
			r := p.Rails[n]
			mustIP(t, p, "route add %s dev %s table %d src %s", r.Addr.Masked(), r.Name, 100+r.Index, r.Addr.Addr())
			mustIP(t, p, "rule add from all lookup %d", 100+r.Index)
			for leaf, v := range map[string]string{"arp_ignore": "1", "arp_announce": "2"} {
				if err := p.SetSysctl("ipv4/conf/"+r.Name+"/"+leaf, v); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	mustPass(t, "before", fabric.SameRail(), 0, 8)
	for _, p := range fabric.Pods {
		apply(t, p, 0)
	}
	mustPass(t, "applied", fabric.SameRail(), 32, 32)
}

// TestApplyHostNetwork is a node, seen from itself: the rails have default routes of
// their own in main, each through its switch, IPv6 is forwarded, and a configuration
// asks for the supernet.
func TestApplyHostNetwork(t *testing.T) {
	const rails = 4
	fabric := testbed.MustFabric(t, testbed.Options{Direct: true, Layout: testbed.PerRail, Rails: rails})
	strict(t, fabric)
	config := filepath.Join(t.TempDir(), "railtune.json")
	if err := os.WriteFile(config, []byte(`{"supernets":[{"dst":"10.61.0.0/16"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range fabric.Pods {
		if err := p.SetSysctl("ipv6/conf/all/forwarding", "1"); err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Rails {
			mustIP(t, p, "route add default via %s dev %s metric %d", r.Gateway, r.Name, 500+r.Index)
		}
	}
	mustPass(t, "before", fabric.CrossRail(), 0, rails*(rails-1))
	a := fabric.Pods[0]
	before := testbed.MustSnapshot(t, a.Namespace)
	if out := applyIn(t, a.Namespace, 2, "--netns", a.Path(), "--rail", "net*"); !strings.Contains(out, "say --host") {
		t.Errorf("its own namespace without --host: %s", out)
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, a.Namespace)); len(d) > 0 {
		t.Errorf("its own namespace without --host changed:\n%s", d)
	}
	for _, p := range fabric.Pods {
		applyIn(t, p.Namespace, 0, "--host", "--rail", "net*", "--config", config)
		if out := applyIn(t, p.Namespace, 0, "--host", "--rail", "net1,net2", "--rail", "net3", "--rail", "net4", "--config", config); !strings.Contains(out, "4 rails, 0 changes") {
			t.Errorf("applied again it printed:\n%s", out)
		}
		for _, r := range p.Rails {
			if v, err := p.Sysctl("ipv6/conf/" + r.Name + "/accept_ra"); err != nil || v != "2" {
				t.Errorf("%s: accept_ra is %s (%v) where IPv6 is forwarded", p.Prefixed(r), v, err)
			}
		}
	}
	mustPass(t, "applied", fabric.CrossRail(), 2*rails*(rails-1), 2*rails*(rails-1))
	for _, p := range fabric.Pods {
		main, err := p.Run(t.Context(), "ip", "route", "show", "10.61.0.0/16")
		if err != nil || strings.Count(main, "proto 72 metric") != rails && strings.Count(main, "10.61.0.0/16 via") != rails {
			t.Errorf("the supernet in main of %s (%v):\n%s", p.Role, err, main)
		}
	}
}

// TestApplyTakesBack: an address of one rail is another node's too. No rail is left
// changed, and the message names address, rail and MAC.
func TestApplyTakesBack(t *testing.T) {
	fabric := testbed.MustFabric(t, testbed.Options{Direct: true, Rails: 4})
	a, b := fabric.Pods[0], fabric.Pods[1]
	apply(t, b, 0)
	mustIP(t, b, "addr add %s dev net4", a.Rails[2].Addr)
	before := testbed.MustSnapshot(t, a.Namespace)
	out := apply(t, a, 1)
	for _, want := range []string{"net3: ", "duplicate", a.Rails[2].Addr.Addr().String(), "every rail is as it was"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, a.Namespace)); len(d) > 0 {
		t.Errorf("left:\n%s", d)
	}
}
