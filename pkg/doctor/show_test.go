package doctor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/railtune/railtune/pkg/doctor/render"
	"github.com/railtune/railtune/pkg/testbed"
)

// sixteen is a pod with as many rails as there are, each tuned by railtune, in a layout.
func sixteen(t testing.TB, layout testbed.Layout) *bed {
	t.Helper()
	f := testbed.MustFabric(t, testbed.Options{Direct: true, Pods: 1, Layout: layout})
	b := &bed{TB: t, fabric: f, pod: f.Pods[0]}
	b.options.Firewall = true
	b.options.Path = b.pod.Path()
	b.options.EnterCommand = "ip netns exec " + b.pod.Name + " "
	b.addRailtune("10.61.0.0/16")
	return b
}

// TestReadable: no line of the table is wider than a terminal of a hundred columns, on a
// pod of sixteen rails with every rail wrong in several ways.
func TestReadable(t *testing.T) {
	t.Parallel()
	b := sixteen(t, testbed.PerRail)
	b.set("ipv4/conf/IFNAME/arp_ignore", "0")
	b.sh("iptables-nft -P INPUT DROP; ip rule add priority 55 from 10.61.3.11 lookup 7; ip route add 10.61.0.0/16 dev net9 table 7")
	for _, brief := range []bool{false, true} {
		var out bytes.Buffer
		report := b.look()
		render.Table(&out, report, brief)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > render.Width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		for _, want := range []string{"setting-missing", "firewall-drops", "foreign-rule-wins", "net16", "sysctl -w net.ipv4.conf.net1.arp_ignore=1"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the table lacks %s", want)
			}
		}
		t.Logf("brief %v:\n%s", brief, out.String())
	}
}

// TestJSON: the fields that scripts rely on.
func TestJSON(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "multus")
	b.sh("echo 0 > /proc/sys/net/ipv4/conf/net2/arp_ignore")
	var out bytes.Buffer
	if err := render.JSON(&out, b.look()); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Namespace struct {
			Path  string
			Rails []struct {
				Name, Because, Driver, MAC string
				Addresses                  []struct{ Address, State string }
				Settings                   []struct{ Name, File, Effective, Verdict string }
				Lookups                    []struct{ From, To, Purpose, Dev string }
			}
			NotLookedAt []string
		}
		Findings []struct {
			Code, Severity, Rail, Summary string
			Evidence, Remedy              []string
		}
	}
	d := json.NewDecoder(&out)
	if err := d.Decode(&report); err != nil {
		t.Fatal(err)
	}
	n := report.Namespace
	if n.Path != b.pod.Path() || len(n.Rails) != rails || n.Rails[1].Name != "net2" || n.Rails[1].Because != "railtune's rules" ||
		n.Rails[1].Driver != "veth" || len(n.NotLookedAt) == 0 {
		t.Errorf("the rails are %+v", n)
	}
	if s := n.Rails[1].Settings[0]; s.Name != "net.ipv4.conf.net2.arp_ignore" || s.File != "0" || s.Effective != "0" || s.Verdict != "wrong" {
		t.Errorf("the first setting of net2 is %+v", s)
	}
	if s := n.Rails[0].Settings[0]; s.Verdict != "ok" {
		t.Errorf("the first setting of net1 is %+v", s)
	}
	if l := n.Rails[0].Lookups; len(l) == 0 || l[0].Dev != "net1" || l[0].Purpose != "own subnet" {
		t.Errorf("the lookups of net1 are %+v", l)
	}
	if len(report.Findings) != 1 || report.Findings[0].Code != "setting-missing" || report.Findings[0].Rail != "net2" {
		t.Errorf("the findings are %+v", report.Findings)
	}
}

// TestChangesNothing: a pod is byte-identical after doctor looked, also with --probe, and
// with an entry that the proof contradicts and would remove in an ADD.
func TestChangesNothing(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "multus")
	b.peerAnswers(99)
	// The kernel itself would correct the entry by the answer, but for this (net/ipv4/arp.c, arp_process).
	b.sh("echo 1000000 > /proc/sys/net/ipv4/neigh/net2/locktime")
	b.neighbour("net2", 99, "02:00:00:00:00:99", "stale")
	before := testbed.MustSnapshot(t, b.pod.Namespace)
	tables := b.iptables()
	report := b.look()
	if got := codes(report); fmt.Sprint(got) != "[neighbour-stale]" {
		t.Errorf("found %v", got)
	}
	if changes := testbed.Diff(before, testbed.MustSnapshot(t, b.pod.Namespace)); len(changes) > 0 {
		t.Errorf("looking changed:\n%s", changes)
	}
	if after := b.iptables(); after != tables {
		t.Errorf("looking changed the tables from %q to %q", tables, after)
	}
	if out, err := b.pod.Run(t.Context(), "ip", "neigh", "show", "to", "10.61.0.99", "dev", "net2"); err != nil || !strings.Contains(out, "02:00:00:00:00:99") {
		t.Errorf("the neighbour entry is gone: %q %v", out, err)
	}
}

// iptables is what tables there are, of both kinds.
func (b *bed) iptables() string {
	b.Helper()
	out, err := b.pod.Run(b.Context(), "sh", "-c", "nft list tables; cat /proc/net/ip_tables_names /proc/net/ip6_tables_names")
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// TestIgnore: a known finding is left out, and said to be.
func TestIgnore(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "host")
	b.sh(noRules)
	b.options.Ignore = []string{"source-rule-missing"}
	r := b.look()
	if len(r.Findings) != 0 || len(r.Ignored) != 1 {
		t.Errorf("found %v, ignored %v", codes(r), r.Ignored)
	}
}
