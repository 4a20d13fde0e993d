package paths

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

const rails = 3

// newLab makes two pods whose rails have a subnet each, and a router between. It attaches the pods' rails with railtune's entry, and the gateway in IPAM, unless
// prepare changes the rail or the entry.
func newLab(t *testing.T, prepare func(pod string, r *testbed.Rail, entry testbed.Object)) *testbed.Fabric {
	t.Helper()
	testbed.NeedRoot(t)
	testbed.MustRailtune(t)
	t.Parallel() // they wait for silence, mostly
	f := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Rails: rails})
	if err := f.EachPod(func(p *testbed.Pod) error {
		for _, r := range p.Rails {
			entry := testbed.Object{"type": "railtune", "supernets": []any{testbed.Object{"dst": testbed.Supernet.String()}}}
			if prepare != nil {
				prepare(p.Role, &r, entry)
			}
			if err := p.Configure(r, r.Conflist(entry)); err != nil {
				return err
			}
			o, err := p.CNITool(t.Context(), "add", r)
			if err == nil {
				err = o.Err()
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

// peersOf are a pod's rails as peers.
func peersOf(p *testbed.Pod) (peers []Peer) {
	for _, r := range p.Rails {
		peers = append(peers, Peer{Rail: r.Name, Addr: r.Addr.Addr()})
	}
	return peers
}

// try runs from pod A to pod B, and logs what people would read.
func try(t *testing.T, f *testbed.Fabric, o Options) *Report {
	t.Helper()
	if o.Peers == nil {
		o.Peers = peersOf(f.Pods[1])
	}
	if o.Count == 0 {
		o.Count = DefaultCount
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	o.MaxHops = DefaultMaxHops
	var r *Report
	start := time.Now()
	if err := f.Pods[0].Do(func() (err error) {
		r, err = Run(t.Context(), o)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", time.Since(start).Round(time.Millisecond), b.String())
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	return r
}

// codes is a line for each rail, with the code of each of its paths.
func codes(r *Report) string {
	var lines []string
	from := ""
	for _, p := range r.Pairs {
		if p.From != from {
			lines, from = append(lines, p.From+":"), p.From
		}
		lines[len(lines)-1] += " " + string(p.Code)
	}
	return strings.Join(lines, "\n")
}

func expect(t *testing.T, r *Report, want ...string) {
	t.Helper()
	if got := codes(r); got != strings.Join(want, "\n") {
		t.Errorf("the codes are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// at is the path between two rails, by their numbers.
func (r *Report) at(from, to int) Pair { return r.Pairs[(from-1)*rails+to-1] }

// noWayOut takes the gateway and the supernets from a pod's rail 2.
func noWayOut(of string) func(string, *testbed.Rail, testbed.Object) {
	return func(pod string, r *testbed.Rail, entry testbed.Object) {
		if pod == of && r.Index == 2 {
			r.Gateway = netip.Addr{}
			delete(entry, "supernets")
		}
	}
}

// TestCauses: one thing is wrong at a time, and it is told what.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(pod string, r *testbed.Rail, entry testbed.Object)
		router  []string // what happens to the switch
		want    []string
		hops    string // from rail 1 to rail 2
	}{
		{name: "nothing", want: []string{"net1: ok ok ok", "net2: ok ok ok", "net3: ok ok ok"}, hops: "10.61.1.254 → 10.61.2.12"},
		{
			name: "the switch has no route", router: []string{"ip addr del 10.61.2.254/24 dev br2"},
			want: []string{"net1: ok switch-no-route ok", "net2: gateway-silent ok gateway-silent", "net3: ok switch-no-route ok"},
			hops: "10.61.1.254",
		},
		{
			name: "the switch has lost a VLAN and does not say so", router: []string{"ip addr del 10.61.2.254/24 dev br2", "ip route add blackhole 10.61.2.0/24"},
			want: []string{"net1: ok black-hole ok", "net2: gateway-silent ok gateway-silent", "net3: ok black-hole ok"},
			hops: "10.61.1.254 → * → *",
		},
		{
			name: "the switch filters", router: []string{"ip route add prohibit 10.61.2.12/32"},
			want: []string{"net1: ok filtered ok", "net2: ok ok ok", "net3: ok filtered ok"}, hops: "10.61.1.254",
		},
		{
			name: "the peer's rail has no way back", prepare: noWayOut("B"),
			want: []string{"net1: ok no-way-back ok", "net2: ok ok ok", "net3: ok no-way-back ok"}, hops: "10.61.1.254 → * → *",
		},
		{
			name: "the pod's rail has no route", prepare: noWayOut("A"),
			want: []string{"net1: ok ok ok", "net2: no-route ok no-route", "net3: ok ok ok"}, hops: "10.61.1.254 → 10.61.2.12",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newLab(t, c.prepare)
			do(t, f.Switches, c.router...)
			r := try(t, f, Options{})
			expect(t, r, c.want...)
			if r.Good() != (c.name == "nothing") {
				t.Error("it is taken for good, or nothing for bad")
			}
			if p := r.at(1, 2); p.path() != c.hops {
				t.Errorf("the hops are %s, want %s", p.path(), c.hops)
			}
		})
	}
}

// The switch has the route, and nobody answers there: the peer's end of rail 2 is gone.
func TestPeerRailDown(t *testing.T) {
	f := newLab(t, nil)
	if _, err := f.Pods[1].Run(t.Context(), "ip", "link", "set", "net2", "down"); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*testbed.Namespace{f.Switches, f.Pods[0].Namespace} {
		if _, err := n.Run(t.Context(), "ip", "neigh", "flush", "all"); err != nil {
			t.Fatal(err)
		}
	}
	r := try(t, f, Options{Timeout: 40 * time.Second}) // it ends once both kernels have given up
	expect(t, r, "net1: ok switch-no-host ok", "net2: ok peer-silent ok", "net3: ok switch-no-host ok")
}

// Behind the first switch is another: the hops show both, the sentence names the one
// that has no route, and a circle is one.
func TestFurtherSwitch(t *testing.T) {
	f := newLab(t, nil)
	spine := testbed.MustNamespace(t, "spine")
	do(t, f.Switches, "ip link add up0 type veth peer name down0 netns "+spine.Name,
		"ip addr add 10.255.0.1/30 dev up0", "ip link set up0 up",
		"ip route add default via 10.255.0.2 dev up0 table 900", "ip rule add iif br1 to 10.61.2.0/24 lookup 900 pref 900")
	do(t, spine, "ip addr add 10.255.0.2/30 dev down0", "ip link set down0 up", "sysctl -qw net.ipv4.ip_forward=1",
		"ip route add 10.61.0.0/16 via 10.255.0.1")
	for _, n := range []*testbed.Namespace{f.Switches, spine} {
		if err := n.Settle(); err != nil {
			t.Fatal(err)
		}
	}
	const both = "10.61.1.254 → 10.255.0.2"
	r := try(t, f, Options{})
	expect(t, r, "net1: ok ok ok", "net2: ok ok ok", "net3: ok ok ok")
	if got := r.at(1, 2).path(); got != both+" → 10.61.1.254 → 10.61.2.12" {
		t.Errorf("the hops are %s", got)
	}
	do(t, spine, "ip route del 10.61.0.0/16", "ip route add 10.61.1.0/24 via 10.255.0.1")
	r = try(t, f, Options{})
	// The replies of the other direction take the same way.
	expect(t, r, "net1: ok switch-no-route ok", "net2: no-way-back ok ok", "net3: ok ok ok")
	if p := r.at(2, 1); !strings.Contains(p.Why, "from rail net1 to rail net2, and on that way 10.255.0.2 says of 10.61.2.12: no route") {
		t.Errorf("the other direction: %s", p.Why)
	}
	if p := r.at(1, 2); p.path() != both || !strings.Contains(p.Why, "10.255.0.2 says that it has no route to 10.61.2.12") {
		t.Errorf("the hops are %s: %s", p.path(), p.Why)
	}
	do(t, spine, "ip route add 10.61.2.0/24 via 10.255.0.1")
	do(t, f.Switches, "ip rule add iif up0 to 10.61.2.0/24 lookup 900 pref 901")
	expect(t, try(t, f, Options{}), "net1: ok loop ok", "net2: no-way-back ok ok", "net3: ok ok ok")
}

// The run is over before the kernel has given up: that it still asks is enough.
func TestPeerRailDownInAHurry(t *testing.T) {
	f := newLab(t, nil)
	if _, err := f.Pods[1].Run(t.Context(), "ip", "link", "set", "net2", "down"); err != nil {
		t.Fatal(err)
	}
	if err := f.Pods[0].ForgetNeighbours(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := try(t, f, Options{SameRail: true, Timeout: time.Second})
	expect(t, r, "net1: ok", "net2: peer-silent", "net3: ok")
}

// Sixteen rails, and a switch that leads from no subnet to another. It says so for a few
// of the 240 paths only, as routers limit what they say; its own addresses answer.
func TestSwitchWithoutAnyRoute(t *testing.T) {
	testbed.NeedRoot(t)
	testbed.MustRailtune(t)
	t.Parallel()
	f := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail})
	if err := f.Attach(t.Context(), testbed.Object{"type": "railtune", "supernets": []any{testbed.Object{"dst": testbed.Supernet.String()}}}); err != nil {
		t.Fatal(err)
	}
	do(t, f.Switches, "ip route add unreachable default table 900")
	for _, r := range f.Pods[0].Rails {
		do(t, f.Switches, fmt.Sprintf("ip rule add pref 10 lookup 900 iif br%d", r.Index))
	}
	counts := map[Code]int{}
	for _, p := range try(t, f, Options{}).Pairs {
		counts[p.Code]++
	}
	if counts[OK] != 16 || counts[SwitchNoRoute] != 240 {
		t.Errorf("the paths are %v, want 16 ok and 240 %s", counts, SwitchNoRoute)
	}
}
