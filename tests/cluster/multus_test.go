//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/evidence"
)

// nodeName is the node all pods are on.
const nodeName = "node"

func mustPrefix(t *testing.T, ip string) netip.Prefix {
	t.Helper()
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		t.Fatal(err)
	}
	bits := 24
	if addr.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(addr, bits)
}

// TestMultusThin attaches two rails through definitions in the API server, at each
// version of the specification.
func TestMultusThin(t *testing.T) {
	for _, version := range evidence.Versions {
		t.Run(version, func(t *testing.T) { definitions(t, thinClient(t), version) })
	}
}

// TestMultusThick is the same through the shim and the daemon, which has its
// client from the environment, as in a pod of the cluster.
func TestMultusThick(t *testing.T) {
	c := thickClient(t)
	for _, version := range evidence.Versions {
		t.Run(version, func(t *testing.T) { definitions(t, c, version) })
	}
}

func definitions(t *testing.T, c client, version string) {
	for i, r := range node.rails[:2] {
		name := fmt.Sprintf("rail-%d", i+1)
		createNAD(t, name, macvlan(r, version, name, hostLocal(r), railtune), nil)
	}
	p := newPod(t, c, version, "rail-1, default/rail-2")
	before := testbed.MustSnapshot(t, p.Namespace)
	rec := p.record(t)
	p.must(t, "add")
	got := p.statuses(t)
	for i, net := range []string{"net1", "net2"} {
		s := got[net]
		link, err := p.Run(t.Context(), "ip", "-br", "link", "show", net)
		if err != nil || s.MAC == "" || !strings.Contains(link, s.MAC) || len(s.IPs) != 1 || s.Name != fmt.Sprintf("default/rail-%d", i+1) || s.Default {
			t.Errorf("network-status of %s is %+v; the link is %s (%v)", net, s, link, err)
		}
		p.mustKeep(t, s)
	}
	if !got["eth0"].Default {
		t.Errorf("network-status of eth0 is %+v", got["eth0"])
	}
	p.must(t, "del")
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
	var order []string
	for _, call := range rec.MustCalls(t) {
		order = append(order, call.Command+" "+call.IfName)
		if !strings.Contains(call.Args, "K8S_POD_UID="+p.uid) {
			t.Errorf("%s without the pod's uid: %s", call.Command, call.Args)
		}
	}
	if got := strings.Join(order, ", "); got != "ADD net1, ADD net2, DEL net2, DEL net1" {
		t.Errorf("the order of the calls is %s", got)
	}
	if t.Failed() && node.daemon != nil {
		t.Logf("the daemon said:\n%s", node.daemon.said())
	}
	if !t.Failed() {
		table.Passed(c.name, "2 NADs: macvlan + host-local → railtune, network-status", version, "ADD", "DEL")
	}
}

// TestDefaultRoute asks for the pod's default route on a rail, by annotation: Multus
// works on routes behind the plugins' back, and railtune's must not suffer. What it
// makes of main is its own affair (4.3.0 leaves eth0's default route and drops its own).
func TestDefaultRoute(t *testing.T) {
	var networks []testbed.Object
	for i, r := range node.rails[:2] {
		name := fmt.Sprintf("rail-%d", i+1)
		createNAD(t, name, macvlan(r, "1.0.0", name, hostLocal(r), railtune), nil)
		networks = append(networks, testbed.Object{"name": name, "interface": fmt.Sprintf("rdma%d", i)})
	}
	networks[1]["default-route"] = []string{node.rails[1].Gateway.String()}
	b, err := json.Marshal(networks)
	if err != nil {
		t.Fatal(err)
	}
	c := thinClient(t)
	p := newPod(t, c, "1.0.0", string(b))
	before := testbed.MustSnapshot(t, p.Namespace)
	p.must(t, "add")
	got := p.statuses(t)
	for _, name := range []string{"rdma0", "rdma1"} {
		if len(got[name].IPs) != 1 {
			t.Fatalf("network-status of %s is %+v", name, got[name])
		}
		p.mustKeep(t, got[name])
	}
	out, err := p.Run(t.Context(), "ip", "route", "show", "default")
	t.Logf("the default routes in main are %q (%v)", out, err)
	p.must(t, "del")
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
	if !t.Failed() {
		table.Passed(c.name, "named interfaces, default route asked for on a rail", "1.0.0", "ADD", "DEL")
	}
}

// TestNADWithoutVersion is a definition without cniVersion: the user has to be told.
// The address is static, as host-local cannot be deleted with what Multus keeps of
// such a definition.
func TestNADWithoutVersion(t *testing.T) {
	r := node.rails[0]
	createNAD(t, "versionless", macvlan(r, "", "versionless", static(r), railtune), nil)
	c := thinClient(t)
	p := newPod(t, c, "1.0.0", "versionless")
	before := testbed.MustSnapshot(t, p.Namespace)
	rec := p.record(t)
	p.mustFail(t, "add", "incompatible CNI versions")
	p.must(t, "del")
	rec.MustCalls(t)
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
}

// TestClusterNetworkFile has a rail as the pod's first interface, from a conflist that
// Multus is given by its path. Of that it keeps the types only, so DEL comes without
// railtune's configuration, and must not need it.
func TestClusterNetworkFile(t *testing.T) {
	r := node.rails[0]
	r.Name = "eth0"
	c := thinClient(t)
	file := filepath.Join(t.TempDir(), "10-rail.conflist")
	entry := testbed.Object{"type": "railtune", "rulePriority": 700, "supernets": railtune["supernets"]}
	if err := writeJSON(file, macvlan(r, "1.0.0", "first", static(r), entry)); err != nil {
		t.Fatal(err)
	}
	c.config["clusterNetwork"] = file
	p := newPod(t, c, "1.0.0", "")
	before := testbed.MustSnapshot(t, p.Namespace)
	rec := p.record(t)
	p.must(t, "add")
	p.mustKeep(t, status{Interface: r.Name, IPs: []string{r.Addr.Addr().String()}})
	p.must(t, "del")
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
	calls := rec.MustCalls(t)
	config, err := calls[len(calls)-1].Config()
	if _, whole := config["rulePriority"]; err != nil || whole || calls[len(calls)-1].Command != "DEL" {
		t.Errorf("the last call is not the DEL with a stripped configuration: %+v (%v)", calls[len(calls)-1], err)
	}
	if !t.Failed() {
		table.Passed(c.name, "railtune in a cluster network that is a file, stripped DEL", "1.0.0", "ADD", "DEL")
	}
}

// thickClient starts the daemon on first use; machine.close ends it.
func thickClient(t *testing.T) client {
	t.Helper()
	sockets := filepath.Join(node.dir, "multus")
	c := client{name: thick, version: daemonVersion, config: testbed.Object{
		"type": "multus-shim", "daemonSocketDir": sockets, "cniDir": t.TempDir(), "confDir": t.TempDir(), "logLevel": "error", "logToStderr": true,
	}}
	if node.daemon == nil {
		if err := node.startDaemon(sockets); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
