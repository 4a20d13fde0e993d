//go:build clients

package clients

import (
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestDuplicateAddress gives the second rail of a pod the address of another pod.
// cnitool's user sees who has it; with Multus the whole pod is taken back, and the
// same pod starts once the address is right.
func TestDuplicateAddress(t *testing.T) {
	fabric := testbed.MustFabric(t, testbed.Options{Pods: 2, Rails: 2})
	pod, other := fabric.Pods[0], fabric.Pods[1]
	for _, r := range other.Rails {
		write(t, other, r.Name, conflist(other, r, "1.0.0", macvlan(t, other, r), testbed.Railtune)).must(t, "add")
	}
	holder := other.Rails[1]
	mac, err := other.PrevResult(holder)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"duplicate: " + holder.Addr.Addr().String() + " of net2 is also answered by",
		mac["interfaces"].([]testbed.Object)[0]["mac"].(string),
	}
	right := pod.Rails[1]
	wrong := right
	wrong.Addr = holder.Addr

	t.Run("cnitool", func(t *testing.T) {
		before := testbed.MustSnapshot(t, pod.Namespace)
		n := write(t, pod, wrong.Name, conflist(pod, wrong, "1.0.0", macvlan(t, pod, wrong), testbed.Railtune))
		n.mustFail(t, "add", want...)
		mustHaveNothing(t, pod)
		n.must(t, "del") // cnitool leaves what the plugins before railtune have made
		mustBeAsBefore(t, pod, before)
	})
	t.Run("Multus", func(t *testing.T) {
		pod.Rails[1] = wrong
		n := standalone(t, pod, "1.0.0", delegates(t, pod, "1.0.0", testbed.Railtune)...)
		before := testbed.MustSnapshot(t, pod.Namespace)
		rec := record(t, n)
		n.mustFail(t, "add", append(want, "error adding container to network")...)
		mustBeAsBefore(t, pod, before)
		calls := rec.MustCalls(t)
		for _, c := range calls {
			if c.Command == "DEL" && c.Exit != 0 {
				t.Errorf("DEL of %s after the failure: %s", c.IfName, c.Stdout)
			}
		}
		if len(calls) != 4 {
			t.Errorf("%d calls, want ADD of both rails and DEL of both", len(calls))
		}
		n.must(t, "del")

		pod.Rails[1] = right
		n = standalone(t, pod, "1.0.0", delegates(t, pod, "1.0.0", testbed.Railtune)...)
		n.must(t, "add")
		for _, r := range pod.Rails {
			mustTuned(t, pod, r)
		}
		n.must(t, "del")
		mustBeAsBefore(t, pod, before)
	})
	if !t.Failed() {
		table.Passed(cnitool, "an address that another pod has: refused, taken back", "1.0.0", "ADD", "DEL")
		table.Passed(multus+", no API server", "an address that another pod has: refused, taken back", "1.0.0", "ADD", "DEL")
	}
}
