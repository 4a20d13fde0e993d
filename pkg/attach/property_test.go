package attach_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/testbed"
)

var (
	propertySeed  = flag.Uint64("property.seed", 0, "seed of TestAnyInput; 0 takes one from the clock")
	propertyTries = flag.Int("property.tries", 150, "inputs TestAnyInput tries")
)

// TestAnyInput is the property that everything else is an example of: whatever
// configuration and prevResult can be decoded, a failed ADD changes nothing, a good one
// repeats without a change and passes CHECK, and DEL takes it all back.
func TestAnyInput(t *testing.T) {
	pod := newPod(t)
	for _, line := range []string{
		"addr add 10.65.5.10/24 dev net1", "addr add 10.68.0.14/32 dev net1", "addr add 10.61.40.1/31 dev net1",
		"addr add fd5a:40::1/127 dev net1 nodad",
		"link add net2 type veth peer name net2p", "link set net2 addrgenmode none", "link set net2p addrgenmode none",
		"link set net2 up", "link set net2p up", "addr add 10.61.2.11/24 dev net2",
		"rule add priority 900 from all lookup 500", "route add 10.200.0.0/16 dev eth0 table 600",
	} {
		mustRun(t, pod, strings.Fields(line)...)
	}
	mustSettle(t, pod, "fd5a:40::1")
	seed := *propertySeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	random := &inputs{rand.New(rand.NewPCG(seed, 0))}
	before := testbed.MustSnapshot(t, pod)
	added, refused := 0, 0
	for try := range *propertyTries {
		conf, prev := random.config(), random.prevResult()
		fail := func(format string, args ...any) {
			t.Fatalf("seed %d, try %d: %s\nconfig %s\nprevResult %s", seed, try, fmt.Sprintf(format, args...), conf, prev)
		}
		cfg, err := config.Parse([]byte(conf))
		if err != nil {
			fail("does not decode: %v", err)
		}
		res, err := prevresult.Parse(json.RawMessage(prev), "1.0.0", nil)
		if err != nil {
			fail("does not decode: %v", err)
		}
		addIt := func(r *attach.Rail) error { _, err := r.Add(context.Background(), cfg, res); return err }
		if err := with(t, pod, addIt); err != nil {
			refused++
			if cnierr.CodeOf(err, 0) == 0 {
				fail("an error without a code: %v", err)
			}
			if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 {
				fail("a failed ADD (%v) changed:\n%s", err, d)
			}
			continue
		}
		added++
		after := testbed.MustSnapshot(t, pod)
		if err := with(t, pod, addIt); err != nil {
			fail("a repeated ADD: %v", err)
		}
		if err := with(t, pod, func(r *attach.Rail) error { return r.Check(cfg, res) }); err != nil {
			fail("CHECK: %v", err)
		}
		if d := testbed.Diff(after, testbed.MustSnapshot(t, pod)); len(d) > 0 {
			fail("a repeated ADD or CHECK changed:\n%s", d)
		}
		mustRestore(t, pod, before)
	}
	t.Logf("seed %d: %d inputs were carried out, %d refused", seed, added, refused)
	if added < *propertyTries/10 || refused < *propertyTries/10 {
		t.Errorf("%d carried out and %d refused: the inputs are too much of one kind to prove anything", added, refused)
	}
}

// inputs makes configurations and prevResults that decode: some fit the pod, some do not.
type inputs struct{ *rand.Rand }

func (in *inputs) chance(percent int) bool { return in.IntN(100) < percent }

func pick[T any](in *inputs, from ...T) T { return from[in.IntN(len(from))] }

func (in *inputs) config() string {
	c := map[string]any{
		"cniVersion": "1.0.0", "name": "rail", "type": "railtune", "announce": false,
		"verify": map[string]any{"mode": "off"},
	}
	if in.chance(30) {
		c["table"] = pick(in, 300, 500, 600, 7199999) // 500 and 600 are in use by others
	}
	if in.chance(30) {
		c["rulePriority"] = pick(in, 1, 700, 1000, 32763) // behind 900 another rule wins
	}
	c["mainTable"] = in.chance(70)
	var supernets []any
	for _, dst := range []string{"10.61.0.0/16", "10.60.0.0/13", "10.61.1.0/24", "172.16.0.0/12", "fd5a::/16", "10.61.1.64/26"} {
		if !in.chance(25) {
			continue
		}
		s := map[string]any{"dst": dst}
		if in.chance(40) {
			s["gw"] = pick(in, "10.61.1.254", "10.61.1.11", "10.65.5.1", "10.61.2.11", "192.0.2.1")
			if strings.Contains(dst, ":") {
				s["gw"] = pick(in, "fd5a:1::1", "fe80::1", "fd5a:99::1")
			}
		}
		supernets = append(supernets, s)
	}
	if supernets != nil {
		c["supernets"] = supernets
	}
	sysctl := map[string]any{}
	for key, values := range map[string][]any{
		"net.ipv4.conf.IFNAME.arp_ignore": {"0", 1, "2", nil}, "net.ipv4.conf.IFNAME.rp_filter": {0, "1", 2},
		"net.ipv4.conf.IFNAME.arp_filter": {1, "0"}, "net.ipv6.conf.IFNAME.accept_ra": {"auto", "1", 2},
		"net.ipv4.neigh.IFNAME.delay_first_probe_time": {3}, "net.ipv6.conf.IFNAME.disable_ipv6": {"0"},
	} {
		if in.chance(25) {
			sysctl[key] = pick(in, values...)
		}
	}
	c["sysctl"] = sysctl
	return mustJSON(c)
}

func (in *inputs) prevResult() string {
	var ips, routes []any
	for _, addr := range []string{"10.61.1.11/24", "10.65.5.10/24", "10.68.0.14/32", "10.61.40.1/31", "fd5a:1::11/64", "fd5a:40::1/127", "10.61.2.11/24", "10.9.9.9/24"} {
		percent := 40
		if addr == "10.61.2.11/24" || addr == "10.9.9.9/24" { // on net2, nowhere
			percent = 4
		}
		if !in.chance(percent) {
			continue
		}
		ip := map[string]any{"address": addr}
		if in.chance(70) {
			ip["interface"] = pick(in, 0, 0, 0, 1)
		}
		if in.chance(50) {
			ip["gateway"] = gatewayOf(in, addr)
		}
		ips = append(ips, ip)
	}
	for _, dst := range []string{"0.0.0.0/0", "10.70.0.0/16", "10.61.0.0/16", "::/0", "fd5a::/16", "10.61.1.0/24"} {
		if !in.chance(20) {
			continue
		}
		r := map[string]any{"dst": dst}
		if in.chance(60) {
			r["gw"] = pick(in, "10.61.1.254", "10.65.5.1", "169.254.1.1")
			if strings.Contains(dst, ":") {
				r["gw"] = pick(in, "fd5a:1::1", "fe80::9")
			}
		}
		routes = append(routes, r)
	}
	return mustJSON(map[string]any{
		"cniVersion": "1.0.0", "ips": ips, "routes": routes,
		"interfaces": []any{map[string]any{"name": "net1", "sandbox": "/x"}, map[string]any{"name": "br0"}},
	})
}

// gatewayOf is mostly one that fits the address.
func gatewayOf(in *inputs, addr string) string {
	if in.chance(10) {
		return pick(in, "10.61.1.254", "fd5a:1::1", "198.51.100.1", "0.0.0.0")
	}
	return map[string]string{
		"10.61.1.11/24": "10.61.1.254", "10.65.5.10/24": "10.65.5.1", "10.68.0.14/32": "10.68.0.1", "10.61.40.1/31": "10.61.40.0",
		"fd5a:1::11/64": "fd5a:1::1", "fd5a:40::1/127": "fd5a:40::", "10.61.2.11/24": "10.61.2.254", "10.9.9.9/24": "10.9.9.1",
	}[addr]
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
