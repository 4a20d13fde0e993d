package main_test

import (
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestPeers is RT-59 at full size: a rail that declares the other pod's sixteen rails as
// peers. While that pod is untuned each of its addresses is answered by sixteen MACs,
// and ADD fails with all of them, or warns; once it is tuned ADD passes.
func TestPeers(t *testing.T) {
	testbed.MustRailtune(t)
	fabric := testbed.MustFabric(t, testbed.Options{Direct: true})
	us, them := fabric.Pods[0], fabric.Pods[1]
	attachAll(t, us)
	before := testbed.MustSnapshot(t, us.Namespace)
	rail := us.Rails[0]

	o, err := us.Chained(t.Context(), "ADD", rail, withPeers(them, "enforce"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Exit == 0 || !strings.Contains(o.Stdout, `"code": 103`) || !strings.Contains(o.Stdout, "flux") {
		t.Errorf("peers untuned: exit %d: %s", o.Exit, o.Stdout)
	}
	for _, r := range them.Rails {
		prev, err := them.PrevResult(r)
		if err != nil {
			t.Fatal(err)
		}
		if mac := prev["interfaces"].([]testbed.Object)[0]["mac"].(string); !mentions(t, us, rail, them, mac) {
			t.Errorf("the error does not list %s, which is %s's", mac, r.Name)
		}
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, us.Namespace)); len(d) > 0 {
		t.Errorf("the failed ADD changed:\n%s", d)
	}
	if o, err := us.Chain(t.Context(), "ADD", rail, withPeers(them, "warn")); err != nil || !strings.Contains(o.Stderr, "flux") {
		t.Errorf("peers untuned, warn: %v: %s", err, o.Stderr)
	}

	attachAll(t, them)
	if o, err := us.Chain(t.Context(), "ADD", rail, withPeers(them, "enforce")); err != nil || strings.Contains(o.Stderr, "warning") {
		t.Errorf("peers tuned: %v: %s", err, o.Stderr)
	}
}

// mentions asks again and reports whether the error lists the MAC: with sixteen answers
// to each of sixteen questions single frames can be lost.
func mentions(t *testing.T, us *testbed.Pod, rail testbed.Rail, them *testbed.Pod, mac string) bool {
	t.Helper()
	for range 3 {
		o, err := us.Chained(t.Context(), "ADD", rail, withPeers(them, "enforce"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(o.Stdout, mac) {
			return true
		}
	}
	return false
}

func withPeers(them *testbed.Pod, mode string) testbed.Object {
	var peers []string
	for _, r := range them.Rails {
		peers = append(peers, r.Addr.Addr().String())
	}
	return testbed.Object{"type": "railtune", "verify": testbed.Object{"peers": peers, "peerMode": mode}}
}
