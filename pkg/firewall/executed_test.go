package firewall_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/firewall"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/testbed"
)

func chains(t *testing.T, n *testbed.Namespace, ifname string) (found []string) {
	t.Helper()
	if err := n.Do(func() (err error) {
		found, err = firewall.IPTables{}.Chains(ifname)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// fakes puts scripts of these names, and nothing else, on PATH, and returns their folder.
func fakes(t *testing.T, script string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		// A child writes it: a descriptor of ours that another fork has inherited would
		// make it busy.
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `printf '#!/bin/sh\n%s\n' "$1" >"$2" && chmod 755 "$2"`, "sh", script, filepath.Join(dir, name))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// TestNothingExecuted: a rail without a chain costs no process, whatever else the packet
// filters of both backends hold, a chain of another rail with a longer name included.
func TestNothingExecuted(t *testing.T) {
	empty, full := testbed.MustNamespace(t, "empty"), testbed.MustNamespace(t, "full")
	mustAccept(t, full, "net11")
	for _, tool := range []string{"iptables-legacy", "ip6tables-legacy"} {
		mustRun(t, full, tool+" -N RAILTUNE-net11")
		mustRun(t, full, tool+" -N ARAILTUNE-net1")
	}
	dir := fakes(t, `echo "$0 $*" >>"$(dirname "$0")/ran"`,
		"iptables", "ip6tables", "iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy")
	for _, n := range []*testbed.Namespace{empty, full} {
		if err := remove(n, "net1"); err != nil {
			t.Error(err)
		}
		if got := chains(t, n, "net1"); len(got) > 0 {
			t.Errorf("found %q", got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "ran")); err == nil {
		t.Errorf("executed:\n%s", text)
	}
}

// TestUsable is what stands in the way before anything is made.
func TestUsable(t *testing.T) {
	testbed.NeedRoot(t)
	for _, c := range []struct {
		ifname string
		want   cnierr.Code
	}{{"net1", 0}, {"rail0.100", 0}, {"bond12-mcast-dp", 0}, {"net+", cnierr.Config}, {"!net1", cnierr.Config}} {
		if err := (firewall.IPTables{}).Usable(c.ifname, policy.IPv4); cnierr.CodeOf(err, 0) != c.want {
			t.Errorf("%s: %v, want code %d", c.ifname, err, c.want)
		}
	}
	dir := fakes(t, "exit 0", "iptables")
	if err := (firewall.IPTables{}).Usable("net1", policy.IPv4); err != nil {
		t.Error(err)
	}
	err := firewall.IPTables{}.Usable("net1", policy.IPv6)
	if cnierr.CodeOf(err, 0) != cnierr.Kernel || !strings.Contains(err.Error(), "no ip6tables") || !strings.Contains(err.Error(), dir) {
		t.Errorf("without ip6tables: %v", err)
	}
}

// TestLongName: the longest interface name fits, whole, into a chain's.
func TestLongName(t *testing.T) {
	t.Parallel()
	pod := testbed.MustNamespace(t, "pod")
	for _, name := range []string{"bond12-mcast-dp", "bond12-mcast-dq", "rail0.100"} {
		mustAccept(t, pod, name)
	}
	if now := state(t, pod); strings.Count(now, "-N RAILTUNE-bond12-mcast-d") != 4 {
		t.Errorf("not a chain each:\n%s", now)
	}
}

// TestTogether: sixteen rails at once, again and again.
func TestTogether(t *testing.T) {
	t.Parallel()
	pod := testbed.MustNamespace(t, "pod")
	before := state(t, pod)
	each := func(what string, do func(ifname string) error) {
		t.Helper()
		var wait sync.WaitGroup
		for k := range 16 {
			wait.Go(func() {
				if err := do(fmt.Sprintf("net%d", k+1)); err != nil {
					t.Errorf("%s net%d: %v", what, k+1, err)
				}
			})
		}
		wait.Wait()
	}
	for range 3 {
		each("accept", func(ifname string) error { _, err := accept(pod, ifname, wanted); return err })
		now := state(t, pod)
		if strings.Count(now, "-j RAILTUNE-") != 32 || strings.Count(now, "-j ACCEPT") != 16*6 {
			t.Fatalf("not all of it is there:\n%s", now)
		}
		each("remove", func(ifname string) error { return remove(pod, ifname) })
		if now := state(t, pod); now != before {
			t.Fatalf("left:\n%s", now)
		}
	}
}

// TestBusy is iptables' lock held by somebody else for longer than is waited: a fake, as
// the real one would take that long.
func TestBusy(t *testing.T) {
	pod := testbed.MustNamespace(t, "pod")
	fakes(t, `[ "$1" = --version ] && echo 'iptables v1.8.9 (legacy)' && exit; echo 'Another app is currently holding the xtables lock.' >&2; exit 4`, "iptables")
	_, err := accept(pod, "net1", wanted)
	if cnierr.CodeOf(err, 0) != cnierr.TryAgain || !strings.Contains(err.Error(), "xtables lock") {
		t.Errorf("got %v, want code %d", err, cnierr.TryAgain)
	}
}

// TestNoFilter is a kernel without netfilter.
func TestNoFilter(t *testing.T) {
	pod := testbed.MustNamespace(t, "pod")
	fakes(t, `[ "$1" = --version ] && echo 'iptables v1.8.9 (nf_tables)' && exit; echo 'iptables: Failed to initialize nft: Protocol not supported' >&2; exit 3`, "iptables")
	_, err := accept(pod, "net1", wanted)
	if cnierr.CodeOf(err, 0) != cnierr.Kernel || !strings.Contains(err.Error(), "Protocol not supported") {
		t.Errorf("got %v, want code %d", err, cnierr.Kernel)
	}
}

// TestNoComments is a kernel that cannot keep comments (xt_comment): a fake in front of
// the real iptables refuses them. The rules are made without.
func TestNoComments(t *testing.T) {
	pod := testbed.MustNamespace(t, "pod")
	before := state(t, pod)
	real, err := exec.LookPath("iptables")
	if err != nil {
		t.Fatal(err)
	}
	real6, err := exec.LookPath("ip6tables")
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	dir := fakes(t, `case "$*" in *comment*) echo "No chain/target/match by that name." >&2; exit 2; esac
case "$0" in *ip6tables*) exec `+real6+` "$@"; esac
exec `+real+` "$@"`, "iptables", "ip6tables", "iptables-nft", "ip6tables-nft")
	done := mustAccept(t, pod, "net1")
	again := mustAccept(t, pod, "net1")
	t.Setenv("PATH", path)
	now := state(t, pod)
	if len(done) == 0 || len(again) > 0 || strings.Contains(now, "comment") || !strings.Contains(now, "-A INPUT -i net1 -j RAILTUNE-net1") {
		t.Errorf("%d steps, again %d:\n%s", len(done), len(again), now)
	}
	t.Setenv("PATH", dir)
	if err := remove(pod, "net1"); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", path)
	if now := state(t, pod); now != before {
		t.Errorf("left:\n%s", now)
	}
}
