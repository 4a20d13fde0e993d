//go:build clients

package clients

import (
	"fmt"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// railtune is the documented entry for rails with a subnet each.
var railtune = testbed.Object{"type": "railtune", "supernets": []any{testbed.Object{"dst": testbed.Supernet.String()}}}

// An interface plugin, and how it takes its rail.
var interfaces = map[string]func(*testing.T, *testbed.Pod, testbed.Rail) testbed.Object{
	"macvlan": func(_ *testing.T, _ *testbed.Pod, r testbed.Rail) testbed.Object {
		return testbed.Object{"type": "macvlan", "master": r.Parent, "mode": "bridge"}
	},
	"host-device": func(_ *testing.T, _ *testbed.Pod, r testbed.Rail) testbed.Object {
		return testbed.Object{"type": "host-device", "device": r.Parent}
	},
	// The bridge plugin uses a bridge that is there, so this one has the rail in it.
	"bridge": func(t *testing.T, p *testbed.Pod, r testbed.Rail) testbed.Object {
		name := fmt.Sprintf("cni%d", r.Index)
		for _, line := range [][]string{
			{"link", "add", name, "type", "bridge"},
			{"link", "set", r.Parent, "master", name},
			{"link", "set", name, "up"},
		} {
			if _, err := p.Node.Run(t.Context(), "ip", line...); err != nil {
				t.Fatal(err)
			}
		}
		return testbed.Object{"type": "bridge", "bridge": name}
	},
}

// An IPAM plugin that gives a rail its planned address and gateway.
var ipams = map[string]func(testbed.Rail) testbed.Object{
	"static": func(r testbed.Rail) testbed.Object {
		addr := testbed.Object{"address": r.Addr.String()}
		if r.Gateway.IsValid() {
			addr["gateway"] = r.Gateway.String()
		}
		return testbed.Object{"type": "static", "addresses": []any{addr}}
	},
	"host-local": func(r testbed.Rail) testbed.Object {
		only := r.Addr.Addr().String()
		pool := testbed.Object{"subnet": r.Addr.Masked().String(), "rangeStart": only, "rangeEnd": only}
		if r.Gateway.IsValid() {
			pool["gateway"] = r.Gateway.String()
		}
		return testbed.Object{"type": "host-local", "ranges": []any{[]any{pool}}}
	},
}

// conflist is the network of one rail of one test: the interface plugin with its
// IPAM, then the chain. Its name is unique, as libcni's cache goes by it.
func conflist(pod *testbed.Pod, r testbed.Rail, version string, first testbed.Object, chain ...testbed.Object) testbed.Object {
	return testbed.Object{
		"cniVersion": version, "name": fmt.Sprintf("%s-rail-%d", pod.Name, r.Index),
		"plugins": append([]testbed.Object{first}, chain...),
	}
}

// macvlan is the most common network: macvlan and static.
func macvlan(t *testing.T, pod *testbed.Pod, r testbed.Rail) testbed.Object {
	first := interfaces["macvlan"](t, pod, r)
	first["ipam"] = ipams["static"](r)
	return first
}
