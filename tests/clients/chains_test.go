//go:build clients

package clients

import (
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/evidence"
)

// around are the plugins people have in the chain already.
var around = map[string]testbed.Object{
	"tuning":   {"type": "tuning", "sysctl": testbed.Object{"net.ipv4.conf.IFNAME.rp_filter": "2"}},
	"sbr":      {"type": "sbr"},
	"railtune": railtune,
}

// TestChains puts railtune, tuning and sbr into every order. Whatever the others
// do, packets of a rail leave by it, and DEL takes everything away. With sbr in the
// chain macvlan's CHECK fails, with or without railtune, as sbr moves the routes that
// macvlan looks for out of main. An sbr that comes after railtune moves railtune's
// supernet as well, and railtune's CHECK says so: sbr belongs before it, or away. Its
// rules have no priority, so the kernel puts them before every rule there is, and
// from the second rail on they win over railtune's in either order.
func TestChains(t *testing.T) {
	for _, order := range []string{
		"tuning railtune", "railtune tuning", "sbr railtune", "railtune sbr",
		"tuning sbr railtune", "tuning railtune sbr", "sbr tuning railtune",
		"sbr railtune tuning", "railtune tuning sbr", "railtune sbr tuning",
	} {
		for _, version := range evidence.Versions {
			t.Run(order+"/"+version, func(t *testing.T) { inOrder(t, strings.Fields(order), version) })
		}
	}
}

func inOrder(t *testing.T, order []string, version string) {
	t.Parallel()
	pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 2}).Pods[0]
	before := testbed.MustSnapshot(t, pod.Namespace)
	var chain []testbed.Object
	for _, name := range order {
		chain = append(chain, around[name])
	}
	var nets []*network
	for _, r := range pod.Rails {
		n := write(t, pod, r.Name, conflist(pod, r, version, macvlan(t, pod, r), chain...))
		nets = append(nets, n)
		n.must(t, "add")
	}
	sbr := slices.Contains(order, "sbr")
	stolen := slices.Index(order, "sbr") > slices.Index(order, "railtune")
	names := "macvlan + static → " + strings.Join(order, " → ")
	for i, r := range pod.Rails {
		mustTuned(t, pod, r, sbr)
		if got, err := pod.Sysctl("ipv4/conf/" + r.Name + "/rp_filter"); slices.Contains(order, "tuning") && got != "2" {
			t.Errorf("rp_filter of %s is %q, and tuning has set 2 (%v)", r.Name, got, err)
		}
		_, err := pod.Chain(t.Context(), "CHECK", r, railtune)
		if want := "route missing or changed: ip route add " + testbed.Supernet.String(); stolen != (err != nil) || stolen && !strings.Contains(err.Error(), want) {
			t.Errorf("CHECK of railtune in %s: %v", names, err)
		}
		if version == "0.3.1" { // has no CHECK
			continue
		}
		if sbr {
			nets[i].mustFail(t, "check", "Failed to find Gateway "+r.Gateway.String()+" for interface "+r.Name)
			continue
		}
		nets[i].must(t, "check")
	}
	verbs := []string{"ADD", "DEL"}
	if !sbr && version != "0.3.1" {
		verbs = append(verbs, "CHECK")
	}
	for _, n := range nets { // the first first: the other rail must not notice
		n.must(t, "del")
		if n == nets[0] {
			mustTuned(t, pod, pod.Rails[1], sbr)
		}
	}
	mustBeAsBefore(t, pod, before)
	if !t.Failed() {
		table.Passed(cnitool, names, version, verbs...)
	}
}
