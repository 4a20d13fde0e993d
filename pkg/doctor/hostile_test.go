package doctor_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/railtune/railtune/pkg/doctor"
	"github.com/railtune/railtune/pkg/doctor/gather"
	"github.com/railtune/railtune/pkg/doctor/render"
	"github.com/railtune/railtune/pkg/sysctl"
	"github.com/railtune/railtune/pkg/testbed"
)

// TestTenThousandRules: others' rules and routes in any number neither hide a finding nor
// make one up.
func TestTenThousandRules(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "multus")
	var batch strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&batch, "rule add priority %d from 10.%d.%d.%d lookup %d\n", 1000+i, 100+i/65536, i/256%256, i%256, 5000+i%100)
		if i%10 == 0 {
			fmt.Fprintf(&batch, "rule add priority %d fwmark %d lookup 77\n", 20+i%500, i+1)
			fmt.Fprintf(&batch, "route add 10.%d.%d.0/24 dev eth0 table 5000\n", 110+i/2560, i/10%256)
		}
	}
	if _, err := b.pod.Feed(t.Context(), batch.String(), "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
	b.mustBeClean()
	b.sh("echo 0 > /proc/sys/net/ipv4/conf/net2/arp_ignore")
	b.mustFind("setting-missing")
	var out bytes.Buffer
	report := b.look()
	t.Logf("%d rules, looked at in %d ms", report.Namespace.RuleCount, report.Milliseconds)
	render.Table(&out, report, false)
	if n := strings.Count(out.String(), "\n"); n > 400 {
		t.Errorf("the table has %d lines", n)
	}
}

// TestThousandsOfFirewallRules: a node's firewall, in which nothing is about rails.
func TestThousandsOfFirewallRules(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "multus")
	var restore strings.Builder
	restore.WriteString("*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:PODS - [0:0]\n-A INPUT -j PODS\n-A OUTPUT -j PODS\n")
	for i := range 5000 {
		fmt.Fprintf(&restore, "-A PODS -s 10.%d.%d.%d/32 -p tcp -m tcp --dport %d -m comment --comment \"pod %d\" -j DROP\n", 100+i/65536, i/256%256, i%256, 1+i, i)
	}
	restore.WriteString("COMMIT\n")
	if _, err := b.pod.Feed(t.Context(), restore.String(), "iptables-nft-restore"); err != nil {
		t.Fatal(err)
	}
	b.mustBeClean()
	t.Logf("looked at in %d ms", b.look().Milliseconds)
	b.sh("iptables-nft -A PODS -o net2 -j DROP")
	b.mend(b.mustFind("firewall-drops"))
	b.mustBeClean()
}

// fakeNoIPv6 is a kernel's settings without its IPv6 half.
type fakeNoIPv6 struct{ sysctl.Proc }

func (f fakeNoIPv6) Read(path string) (string, error) {
	if strings.Contains(path, "ipv6") {
		return "", os.ErrNotExist
	}
	return f.Proc.Read(path)
}

func (f fakeNoIPv6) Exists(path string) bool {
	return !strings.Contains(path, "ipv6") && f.Proc.Exists(path)
}

// TestKernelWithoutIPv6: what is not there is not missed.
func TestKernelWithoutIPv6(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "multus")
	b.options.Files = fakeNoIPv6{}
	b.mustBeClean()
	for _, s := range b.look().Namespace.Rails[0].Settings {
		if s.Key.Family == sysctl.IPv6 {
			t.Errorf("reports %s", s.Name)
		}
	}
}

// TestOddNames: interface names as the kernel lets people choose them. Nothing in a name
// is run by a pasted remedy, and dots stay in the name.
func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rail0.100", "gpu-rail-15-vf1", "bond12-mcast-dp", "a;false", "$(kill$$)", "net'1", "a*b[", "-i", "ünï"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupNamed(t, "host-subnets")
			if _, err := b.pod.Run(t.Context(), "ip", "link", "set", "dev", "net2", "down"); err != nil {
				t.Fatal(err)
			}
			if _, err := b.pod.Run(t.Context(), "ip", "link", "set", "dev", "net2", "name", name); err != nil {
				t.Fatal(err)
			}
			if _, err := b.pod.Run(t.Context(), "ip", "link", "set", "dev", name, "up"); err != nil {
				t.Fatal(err)
			}
			if err := b.pod.Settle(); err != nil {
				t.Fatal(err)
			}
			b.options.Rails = []string{"net*", name}
			b.mustBeClean()
			if err := b.pod.SetSysctl("ipv4/conf/"+name+"/arp_ignore", "0"); err != nil {
				t.Fatal(err)
			}
			report := b.mustFind("setting-missing")
			b.mend(report)
			b.mustBeClean()
		})
	}
}

// TestNoRail: what is no rail is never guessed to be one.
func TestNoRail(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "host")
	for _, pattern := range []string{"", "rdma*"} {
		b.options.Rails = nil
		if pattern != "" {
			b.options.Rails = []string{pattern}
		}
		err := b.pod.Do(func() error { _, err := doctor.Look(t.Context(), b.options); return err })
		if !errors.Is(err, gather.ErrNoRail) || !strings.Contains(err.Error(), "net1") {
			t.Errorf("--rail %q: %v", pattern, err)
		}
	}
}

// TestOrphansWithoutRails: rules whose interfaces have all left are found all the same.
func TestOrphansWithoutRails(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "multus")
	b.sh("for i in 1 2 3; do ip link del net$i; done")
	var report *doctor.Report
	err := b.pod.Do(func() (err error) { report, err = doctor.Look(t.Context(), b.options); return err })
	if !errors.Is(err, gather.ErrNoRail) || fmt.Sprint(codes(report)) != "[orphan]" {
		t.Fatalf("%v: %v", err, codes(report))
	}
	b.mend(report)
	if out, err := b.pod.Run(t.Context(), "ip", "rule", "show"); err != nil || strings.Count(out, "\n") != 3 {
		t.Errorf("left: %s %v", out, err)
	}
}

// TestEmptyNamespace: nothing there is nothing to look at, and no crash.
func TestEmptyNamespace(t *testing.T) {
	t.Parallel()
	n := testbed.MustNamespace(t, "empty")
	err := n.Do(func() error { _, err := doctor.Look(t.Context(), doctor.Options{}); return err })
	if !errors.Is(err, gather.ErrNoRail) {
		t.Error(err)
	}
}

// TestNarrow: long addresses and evidence do not make a line wider than the table is.
func TestNarrow(t *testing.T) {
	t.Parallel()
	b := setupNamed(t, "host-ra")
	b.sh("echo 0 > /proc/sys/net/ipv6/conf/net2/accept_ra; ip6tables-nft -P INPUT DROP")
	var out bytes.Buffer
	render.Table(&out, b.look(), false)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > render.Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
