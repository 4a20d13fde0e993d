package testbed

import (
	"strings"
	"testing"
	"time"
)

func measure(t *testing.T, paths []Path, probe Probe) int {
	t.Helper()
	m, err := Measure(t.Context(), paths, probe)
	if err != nil {
		t.Fatal(err)
	}
	return m.Answered()
}

func strict(t *testing.T, f *Fabric) {
	t.Helper()
	for _, p := range f.Pods {
		if err := p.Strict(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneSubnetShowsFluxAndItsCure measures the two ends of the published table
// (docs of the lab): the kernel's defaults, and the two ARP settings that cure it.
func TestOneSubnetShowsFluxAndItsCure(t *testing.T) {
	f := MustFabric(t, Options{Direct: true})
	if n := measure(t, f.SameRail(), Probe{BindAddress: true}); n != 32 {
		t.Errorf("%d of 32 paths without strict delivery: the fabric itself is broken", n)
	}
	strict(t, f)
	for _, probe := range []Probe{{Rounds: 2}, {BindAddress: true}} {
		if n := measure(t, f.SameRail(), probe); n > 4 {
			t.Errorf("%d of 32 paths with the kernel's defaults, want at most 4: %+v", n, probe)
		}
	}
	for _, p := range f.Pods {
		for key, v := range map[string]string{"arp_ignore": "1", "arp_announce": "2"} {
			if err := p.SetSysctl("ipv4/conf/all/"+key, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, err := Measure(t.Context(), f.SameRail(), Probe{Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	if m.Answered() != 32 || m.Arrived() != 32 {
		t.Errorf("%d answered and %d arrived of 32 paths with arp_ignore=1 arp_announce=2", m.Answered(), m.Arrived())
	}
}

func TestPerRailNeedsARouteAcrossRails(t *testing.T) {
	f := MustFabric(t, Options{Layout: PerRail, Rails: 3, Direct: true})
	strict(t, f)
	if n := measure(t, f.SameRail(), Probe{}); n != 6 {
		t.Errorf("%d of 6 paths inside the rails", n)
	}
	if n := measure(t, f.CrossRail(), Probe{}); n != 0 {
		t.Errorf("%d of 12 cross-rail paths without a route", n)
	}
	if n := measure(t, f.CrossRail(), Probe{BindAddress: true}); n != 12 {
		t.Errorf("%d of 12 paths bound to an address, want all: they leave by the wrong rail", n)
	}
	for _, p := range f.Pods {
		if err := p.StrictSource(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := measure(t, f.CrossRail(), Probe{BindAddress: true}); n != 0 {
		t.Errorf("%d of 12 paths bound to an address left by a rail that owns it, want 0", n)
	}
	for _, p := range f.Pods {
		for _, r := range p.Rails {
			run(t, p.Namespace, "ip route add 10.61.0.0/16 dev "+r.Name+" via "+r.Gateway.String()+" table 10"+r.Name[3:])
			run(t, p.Namespace, "ip route add "+r.Addr.Masked().String()+" dev "+r.Name+" table 10"+r.Name[3:])
			run(t, p.Namespace, "ip rule add oif "+r.Name+" lookup 10"+r.Name[3:])
			run(t, p.Namespace, "ip rule add from "+r.Addr.Addr().String()+" lookup 10"+r.Name[3:])
		}
	}
	for _, probe := range []Probe{{}, {BindAddress: true}} {
		if n := measure(t, f.CrossRail(), probe); n != 12 {
			t.Errorf("%d of 12 cross-rail paths with the supernet route, %+v", n, probe)
		}
	}
}

func TestFabricIsSettled(t *testing.T) {
	for _, o := range []Options{{}, {Direct: true}, {Layout: PerRail}} {
		f := MustFabric(t, o)
		spaces := []*Namespace{f.Switches}
		for _, p := range f.Pods {
			spaces = append(spaces, p.Node, p.Namespace)
		}
		for _, n := range spaces {
			out, err := n.Run(t.Context(), "ip", "-o", "link", "show")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out) {
				if !strings.Contains(line, ": lo:") && !strings.Contains(line, " state UP ") {
					t.Errorf("%+v: %s: %s", o, n.Name, line)
				}
			}
		}
	}
}

func TestSettleWaitsForTheCarrier(t *testing.T) {
	n, far := MustNamespace(t, "near"), MustNamespace(t, "far")
	if err := n.Do(func() error { return addCable("one", "", "other", far) }); err != nil {
		t.Fatal(err)
	}
	if err := n.settle(time.Millisecond); err == nil || !strings.Contains(err.Error(), "one") {
		t.Errorf("settled without a carrier: %v", err)
	}
	if err := far.Settle(); err != nil {
		t.Errorf("waits for a link that is down: %v", err)
	}
	if err := far.Do(func() error { return setUp("other") }); err != nil {
		t.Fatal(err)
	}
	if err := n.Settle(); err != nil {
		t.Error(err)
	}
}

// TestChainRoundTrip attaches through the real cnitool and plugins and expects
// the pods back as they were.
func TestChainRoundTrip(t *testing.T) {
	f := MustFabric(t, Options{Gateway: true})
	before := MustSnapshot(t, f.Pods[1].Namespace)
	if err := f.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	added := Diff(before, MustSnapshot(t, f.Pods[1].Namespace))
	for _, r := range f.Pods[1].Rails {
		if len(added.Except("link", "route", "sysctl", "addr "+r.Name+" inet "+r.Addr.String())) == len(added.Except("link", "route", "sysctl")) {
			t.Errorf("%s has not %s", r.Name, r.Addr)
		}
	}
	if n := measure(t, f.SameRail(), Probe{BindAddress: true}); n != 32 {
		t.Errorf("%d of 32 paths", n)
	}
	if _, err := f.Pods[0].Run(t.Context(), "ping", "-q", "-c1", "-W1", f.Pods[0].Rails[0].Gateway.String()); err != nil {
		t.Errorf("the gateway: %v", err)
	}
	if err := f.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := Diff(before, MustSnapshot(t, f.Pods[1].Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
}
