package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/doctor"
	"github.com/railtune/railtune/pkg/doctor/check"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

// rails is how many rails a bed has: enough that one is wrong and others are not.
const rails = 3

// bed is a namespace with rails, and what doctor is asked about it.
type bed struct {
	testing.TB
	fabric *testbed.Fabric
	pod    *testbed.Pod
	// options are what a user of this setup types.
	options doctor.Options
	// ra are the routers of rails that live on router advertisements.
	ra []*router
}

func newBed(t *testing.T, layout testbed.Layout) *bed {
	t.Helper()
	f := testbed.MustFabric(t, testbed.Options{Direct: true, Rails: rails, Pods: 1, Layout: layout})
	b := &bed{TB: t, fabric: f, pod: f.Pods[0]}
	b.options.Firewall = true
	b.options.EnterCommand = "ip netns exec " + b.pod.Name + " "
	b.options.Path = b.pod.Path()
	b.options.Enter = func(f func() error) error { return b.pod.Do(f) }
	for _, r := range b.pod.Rails {
		if err := b.pod.SettleAddresses(r.Name); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// sh runs lines as a shell script in the pod. Words of the form {net1.mac}, {net1.ll} are
// replaced by what the pod has.
func (b *bed) sh(script string) {
	b.Helper()
	b.shIn(b.pod.Namespace, script)
}

func (b *bed) shIn(n *testbed.Namespace, script string) {
	b.Helper()
	if out, err := n.Run(b.Context(), "sh", "-ec", script); err != nil {
		b.Fatalf("%s\n%s%v", script, out, err)
	}
}

// look runs doctor in the pod.
func (b *bed) look() *doctor.Report {
	b.Helper()
	var report *doctor.Report
	if err := b.pod.Do(func() (err error) {
		report, err = doctor.Look(context.Background(), b.options)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return report
}

// codes are the distinct codes of a report.
func codes(r *doctor.Report) []string {
	var out []string
	for _, f := range r.Findings {
		if !slices.Contains(out, string(f.Code)) {
			out = append(out, string(f.Code))
		}
	}
	slices.Sort(out)
	return out
}

// mustFind looks, and wants findings of exactly one code, with evidence and remedy.
func (b *bed) mustFind(code check.Code) *doctor.Report {
	b.Helper()
	r := b.look()
	if got := codes(r); len(got) != 1 || got[0] != string(code) {
		b.Fatalf("found %v, want %s:\n%s", got, code, text(r))
	}
	for _, f := range r.Findings {
		if f.Summary == "" || len(f.Evidence) == 0 && f.Code != check.NoCarrier && f.Code != check.RailDown || len(f.Remedy) == 0 {
			b.Errorf("finding without summary, evidence or remedy: %+v", f)
		}
	}
	return r
}

func (b *bed) mustBeClean() {
	b.Helper()
	if r := b.look(); len(r.Findings) > 0 {
		b.Fatalf("want no findings:\n%s", text(r))
	}
}

// mend pastes the remedies into a shell.
func (b *bed) mend(r *doctor.Report) {
	b.Helper()
	var lines []string
	for _, f := range r.Findings {
		for _, line := range f.Remedy {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	script := strings.Join(lines, "\n")
	b.Logf("remedy:\n%s", script)
	if out, err := exec.CommandContext(b.Context(), "sh", "-ec", script).CombinedOutput(); err != nil {
		b.Fatalf("the remedy fails: %v\n%s\n%s", err, script, out)
	}
	for i := range b.ra { // what the remedy solicits takes a moment
		b.awaitRA(b.pod.Rails[i].Name, func() error { return nil })
	}
}

func text(r *doctor.Report) string {
	b, err := json.MarshalIndent(r.Findings, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// addRailtune runs railtune's ADD on each rail, as the last of a chain.
func (b *bed) addRailtune(supernets ...string) {
	b.Helper()
	for _, r := range b.pod.Rails {
		ip := fmt.Sprintf(`{"interface":0,"address":%q}`, r.Addr)
		if r.Gateway.IsValid() {
			ip = fmt.Sprintf(`{"interface":0,"address":%q,"gateway":%q}`, r.Addr, r.Gateway)
		}
		b.add(r.Name, ip, supernets...)
	}
}

// add runs railtune's ADD on one rail, with prevResult's ips and supernets.
func (b *bed) add(ifname, ips string, supernets ...string) {
	b.Helper()
	cfg := config.Default()
	cfg.CNIVersion, cfg.Announce, cfg.Verify.Mode = "1.0.0", false, config.Off
	for _, s := range supernets {
		cfg.Supernets = append(cfg.Supernets, config.Supernet{Dst: netip.MustParsePrefix(s)})
	}
	prev := fmt.Sprintf(`{"cniVersion":"1.0.0","interfaces":[{"name":%q,"sandbox":"/x"}],"ips":[%s]}`, ifname, ips)
	err := b.pod.Do(func() error {
		before, err := prevresult.Parse(json.RawMessage(prev), "1.0.0", nil)
		if err != nil {
			return err
		}
		k, err := kernel.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		r := &attach.Rail{IfName: ifname, NetNS: "test", Kernel: k, Files: sysctl.Proc{}, Log: b}
		_, err = r.Add(context.Background(), cfg, before)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// Warnf and Debugf make a bed an attach.Log.
func (b *bed) Warnf(format string, args ...any)  { b.Logf("warning: "+format, args...) }
func (b *bed) Debugf(format string, args ...any) {}

// table gives each rail source rules of another tool's, which is how a node's network
// configuration tells rails of one subnet apart.
func (b *bed) sourceRules() {
	b.Helper()
	for i, r := range b.pod.Rails {
		b.sh(fmt.Sprintf("ip route add %s dev %s table %d scope link src %s; ip rule add priority %d from %s lookup %d",
			r.Addr.Masked(), r.Name, 101+i, r.Addr.Addr(), 1000+i, r.Addr.Addr(), 101+i))
	}
}

// set writes a setting of every rail.
func (b *bed) set(key, value string) {
	b.Helper()
	for _, r := range b.pod.Rails {
		if err := b.pod.SetSysctl(strings.ReplaceAll(key, "IFNAME", r.Name), value); err != nil {
			b.Fatal(err)
		}
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }
