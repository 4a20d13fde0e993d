//go:build clients

package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/evidence"
	"github.com/railtune/railtune/tests/recorder"
)

// TestCNITool runs every verb that cnitool has, at each version of the
// specification, over each interface plugin and IPAM, with two rails that have a
// subnet and a gateway each.
func TestCNITool(t *testing.T) {
	for _, kind := range []string{"macvlan", "host-device", "bridge"} {
		for _, ipam := range []string{"static", "host-local"} {
			for _, version := range evidence.Versions {
				t.Run(kind+"/"+ipam+"/"+version, func(t *testing.T) { everyVerb(t, kind, ipam, version) })
			}
		}
	}
}

func everyVerb(t *testing.T, kind, ipam, version string) {
	t.Parallel()
	pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 2}).Pods[0]
	before := testbed.MustSnapshot(t, pod.Namespace)
	passed := func(verb string) {
		if !t.Failed() {
			table.Passed(cnitool, kind+" + "+ipam+" → railtune", version, verb)
		}
	}
	var nets []*network
	for _, r := range pod.Rails {
		first := interfaces[kind](t, pod, r)
		first["ipam"] = ipams[ipam](r)
		n := write(t, pod, r.Name, conflist(pod, r, version, first, railtune))
		nets = append(nets, n)
		n.must(t, "status") // nothing is sent before 1.1.0
		mustResult(t, n.must(t, "add"), version, r)
		mustTuned(t, pod, r)
	}
	passed("ADD")
	if version == "1.1.0" {
		passed("STATUS")
	}
	for _, n := range nets {
		if version == "0.3.1" {
			n.mustFail(t, "check", "does not support the CHECK command")
			continue
		}
		n.must(t, "check")
		passed("CHECK")
	}
	// cnitool knows of no attachment that is valid, so libcni first deletes what its
	// cache has of this network, at any version, and then sends GC, from 1.1.0 on.
	nets[0].must(t, "gc")
	mustTuned(t, pod, pod.Rails[1])
	if version == "1.1.0" {
		passed("GC")
	}
	nets[1].must(t, "del")
	for _, n := range nets {
		if kind != "host-device" { // fails when its device is back on the node
			n.must(t, "del")
		}
	}
	mustBeAsBefore(t, pod, before)
	passed("DEL")
}

// mustResult asserts that an ADD's result has the form of its version, the rail's
// address and gateway, and the supernet that went into main.
func mustResult(t *testing.T, stdout, version string, r testbed.Rail) {
	t.Helper()
	var result struct {
		CNIVersion string
		Interfaces []struct{ Name, Sandbox string }
		IPs        []struct{ Version, Address, Gateway string }
		Routes     []struct{ Dst, GW string }
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v in the result %s", err, stdout)
	}
	family := "" // the field is gone since 1.0.0
	if version < "1.0.0" {
		family = "4"
	}
	inPod := slices.ContainsFunc(result.Interfaces, func(i struct{ Name, Sandbox string }) bool { return i.Name == r.Name && i.Sandbox != "" })
	supernet := slices.Contains(result.Routes, struct{ Dst, GW string }{testbed.Supernet.String(), r.Gateway.String()})
	if result.CNIVersion != version || !inPod || !supernet || len(result.IPs) != 1 ||
		result.IPs[0].Version != family || result.IPs[0].Address != r.Addr.String() || result.IPs[0].Gateway != r.Gateway.String() {
		t.Errorf("the result at %s is\n%s", version, stdout)
	}
}

// TestCheckNamesTheDrift is what a CI author sees when somebody changed a rail.
func TestCheckNamesTheDrift(t *testing.T) {
	pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 1}).Pods[0]
	r := pod.Rails[0]
	n := write(t, pod, r.Name, conflist(pod, r, "1.0.0", macvlan(t, pod, r), railtune))
	n.must(t, "add")
	n.must(t, "check")
	if err := pod.SetSysctl("ipv4/conf/"+r.Name+"/arp_announce", "0"); err != nil {
		t.Fatal(err)
	}
	if _, err := pod.Run(t.Context(), "ip", "rule", "del", "priority", "722"); err != nil {
		t.Fatal(err)
	}
	n.mustFail(t, "check", "arp_announce", "unreachable")
	n.must(t, "del")
}

// TestNewestVersion gives cnitool a list of versions (since 1.1.0), of which it
// uses the newest it knows, and the chained plugin in a file of its own.
func TestNewestVersion(t *testing.T) {
	pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 1}).Pods[0]
	before := testbed.MustSnapshot(t, pod.Namespace)
	r := pod.Rails[0]
	list := conflist(pod, r, "0.4.0", macvlan(t, pod, r))
	list["cniVersions"] = []string{"0.3.1", "1.1.0", "9.9.9"}
	n := write(t, pod, r.Name, list)
	folder := filepath.Join(n.dir, n.name)
	b, err := json.Marshal(railtune)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "50-railtune.conf"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	n.must(t, "status")
	mustResult(t, n.must(t, "add"), "1.1.0", r)
	mustTuned(t, pod, r)
	n.must(t, "check")
	n.must(t, "del")
	mustBeAsBefore(t, pod, before)
	if !t.Failed() {
		table.Passed(cnitool, "railtune from a file beside the list, `cniVersions`", "1.1.0", "ADD", "CHECK", "STATUS", "DEL")
	}
}

// TestArgsTwice gives CNI_ARGS each key twice, as Multus does, and capability
// arguments, and looks at what reaches railtune.
func TestArgsTwice(t *testing.T) {
	const args = "IgnoreUnknown=true;K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;IgnoreUnknown=1;K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;MAC=02:00:00:00:00:01"
	for _, version := range evidence.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 1}).Pods[0]
			before := testbed.MustSnapshot(t, pod.Namespace)
			r := pod.Rails[0]
			first, last := macvlan(t, pod, r), testbed.Object{"capabilities": testbed.Object{"deviceID": true, "mac": true}}
			first["capabilities"] = testbed.Object{"mac": true}
			for k, v := range railtune {
				last[k] = v
			}
			n := write(t, pod, r.Name, conflist(pod, r, version, first, last))
			n.env = []string{"CNI_ARGS=" + args, `CAP_ARGS={"deviceID":"0000:3b:00.1","mac":"02:00:00:00:00:07"}`}
			rec := record(t, n)
			mustResult(t, n.must(t, "add"), version, r)
			mustTuned(t, pod, r)
			n.must(t, "del")
			mustBeAsBefore(t, pod, before)
			seen := rec.MustCalls(t)
			if len(seen) != 2 {
				t.Fatalf("%d calls, want ADD and DEL", len(seen))
			}
			for _, c := range seen {
				if c.Args != args || !strings.Contains(c.Stdin, `"runtimeConfig":{"deviceID":"0000:3b:00.1","mac":"02:00:00:00:00:07"}`) {
					t.Errorf("%s got CNI_ARGS %s and %s", c.Command, c.Args, c.Stdin)
				}
			}
			if !t.Failed() {
				table.Passed(cnitool, "CNI_ARGS with duplicate keys, capability arguments", version, "ADD", "DEL")
			}
		})
	}
}

// record puts a recorder before railtune.
func record(t *testing.T, n *network) *recorder.Recorder {
	t.Helper()
	rec, err := recorder.New(t.TempDir(), bin.Railtune)
	if err != nil {
		t.Fatal(err)
	}
	n.path = rec.Dir + ":" + n.path
	return rec
}
