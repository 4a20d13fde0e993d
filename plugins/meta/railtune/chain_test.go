package main_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestChain runs the chain of the field, interface plugin and railtune, through the
// real cnitool and the real macvlan and static plugins: one and sixteen rails, in one
// subnet and with a subnet and a supernet per rail. macvlan's own CHECK has to pass
// after railtune, and DEL in any order leaves nothing, with some links gone already.
func TestChain(t *testing.T) {
	testbed.MustRailtune(t)
	supernet := testbed.Object{
		"type": "railtune", "supernets": []any{testbed.Object{"dst": testbed.Supernet.String()}},
	}
	for _, c := range []struct {
		name   string
		layout testbed.Layout
		rails  int
		entry  testbed.Object
	}{
		{"OneRail", testbed.OneSubnet, 1, testbed.Railtune},
		{"OneSubnet", testbed.OneSubnet, 16, testbed.Railtune},
		{"PerRail", testbed.PerRail, 16, supernet},
	} {
		t.Run(c.name, func(t *testing.T) {
			fabric := testbed.MustFabric(t, testbed.Options{Layout: c.layout, Pods: 1, Rails: c.rails})
			pod := fabric.Pods[0]
			before := testbed.MustSnapshot(t, pod.Namespace)
			if err := fabric.Attach(t.Context(), c.entry); err != nil {
				t.Fatal(err)
			}
			for _, r := range pod.Rails {
				mustLeaveByItself(t, pod, r)
				mustCNITool(t, pod, "check", r)
			}
			mustHaveAll(t, pod)
			detachShuffled(t, pod)
			if d := testbed.Diff(before, testbed.MustSnapshot(t, pod.Namespace)); len(d) > 0 {
				t.Errorf("left:\n%s", d)
			}
		})
	}
}

// mustLeaveByItself asserts that packets from a rail's address leave by it, to a
// neighbour of its own and to one behind the supernet.
func mustLeaveByItself(t *testing.T, pod *testbed.Pod, r testbed.Rail) {
	t.Helper()
	for _, to := range []string{"10.61.77.7", "10.61.200.200"} {
		out, err := pod.Run(t.Context(), "ip", "route", "get", to, "from", r.Addr.Addr().String())
		if err != nil || !strings.Contains(out, " dev "+r.Name+" table 72") {
			t.Errorf("%s from %s: %v: %s", to, r.Addr.Addr(), err, out)
		}
	}
}

func mustCNITool(t *testing.T, pod *testbed.Pod, verb string, r testbed.Rail) {
	t.Helper()
	o, err := pod.CNITool(t.Context(), verb, r)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		t.Fatalf("cnitool %s %s: %v", verb, r.Name, err)
	}
}

// detachShuffled deletes the rails in any order; every third one has lost its link,
// and the plugins have to cope.
func detachShuffled(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("order by seed %d", seed)
	for i, k := range rand.New(rand.NewPCG(seed, 0)).Perm(len(pod.Rails)) {
		r := pod.Rails[k]
		if i%3 == 1 {
			if _, err := pod.Run(t.Context(), "ip", "link", "del", r.Name); err != nil {
				t.Fatal(err)
			}
		}
		mustCNITool(t, pod, "del", r)
		out, err := pod.Run(t.Context(), "ip", "rule", "show")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, fmt.Sprintf("from %s ", r.Addr.Addr())) || strings.Contains(out, "oif "+r.Name+" ") {
			t.Errorf("DEL of %s left:\n%s", r.Name, out)
		}
	}
}
