//go:build cluster

package cluster

import (
	"path/filepath"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestWhereabouts takes the rails' addresses from whereabouts, in both families. It
// puts its one gateway on both, so the IPv6 address gets an IPv4 gateway.
func TestWhereabouts(t *testing.T) {
	// It insists on a file beside the network's own configuration, as its daemon set
	// installs one.
	flat := filepath.Join(t.TempDir(), "whereabouts.conf")
	if err := writeJSON(flat, testbed.Object{"kubernetes": testbed.Object{"kubeconfig": node.kubeconfig}}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"0.3.1", "1.0.0"} {
		t.Run(version, func(t *testing.T) {
			r := node.rails[0]
			ipam := testbed.Object{
				"type": "whereabouts", "gateway": r.Gateway.String(), "configuration_path": flat,
				"ipRanges": []any{
					testbed.Object{"range": r.Addr.Masked().String(), "range_start": "10.61.1.100"},
					testbed.Object{"range": "fd61:1::/64", "range_start": "fd61:1::100"},
				},
			}
			createNAD(t, "dual", macvlan(r, version, "dual", ipam, railtune), nil)
			c := thinClient(t)
			p := newPod(t, c, version, "dual")
			before := testbed.MustSnapshot(t, p.Namespace)
			p.must(t, "add")
			got := p.statuses(t)["net1"]
			if len(got.IPs) != 2 {
				t.Fatalf("network-status of net1 is %+v, want two addresses", got)
			}
			p.mustKeep(t, got)
			p.must(t, "del")
			if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
				t.Errorf("left in the pod:\n%s", d)
			}
			mustHaveNoAllocation(t)
			if !t.Failed() {
				table.Passed(c.name, "macvlan + "+whereabouts+", dual stack → railtune", version, "ADD", "DEL")
			}
		})
	}
}

func mustHaveNoAllocation(t *testing.T) {
	t.Helper()
	var pools struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Allocations map[string]any }
		}
	}
	if err := node.get(ippools, &pools); err != nil {
		t.Fatal(err)
	}
	if len(pools.Items) == 0 {
		t.Error("whereabouts has made no pools")
	}
	for _, pool := range pools.Items {
		if len(pool.Spec.Allocations) > 0 {
			t.Errorf("whereabouts' pool %s still has %v", pool.Metadata.Name, pool.Spec.Allocations)
		}
	}
}
