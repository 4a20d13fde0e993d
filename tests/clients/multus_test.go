//go:build clients

package clients

import (
	"fmt"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/evidence"
)

// standalone is the network of a pod that Multus makes without an API server: its
// own cluster network first (eth0), then one delegate for each rail (net1, net2, …),
// in order and one after another.
func standalone(t *testing.T, pod *testbed.Pod, version string, delegates ...testbed.Object) *network {
	t.Helper()
	// The bed's pod has an eth0; here it is Multus that makes it.
	mustHaveNoEth0(t, pod)
	cluster := testbed.Object{
		"cniVersion": version, "name": pod.Name + "-cluster",
		"plugins": []testbed.Object{{
			"type": "bridge", "bridge": "cluster0", "isGateway": true,
			"ipam": testbed.Object{
				"type": "host-local", "routes": []testbed.Object{{"dst": "0.0.0.0/0"}},
				"ranges": []any{[]testbed.Object{{"subnet": "172.20.0.0/24"}}},
			},
		}},
	}
	return write(t, pod, "eth0", testbed.Object{
		"cniVersion": version, "name": pod.Name,
		"plugins": []testbed.Object{{
			"type": "multus", "cniDir": t.TempDir(), "binDir": bin.multus, "logLevel": "error", "logToStderr": true,
			"delegates": append([]testbed.Object{cluster}, delegates...),
		}},
	})
}

// delegates are the pod's rails, macvlan and static each, then the chain.
func delegates(t *testing.T, pod *testbed.Pod, version string, chain ...testbed.Object) (all []testbed.Object) {
	for _, r := range pod.Rails {
		all = append(all, conflist(pod, r, version, macvlan(t, pod, r), chain...))
	}
	return all
}

// TestMultus attaches pods of two and sixteen rails, in one subnet and with one
// each, with the real Multus.
func TestMultus(t *testing.T) {
	for _, c := range []struct {
		name     string
		layout   testbed.Layout
		rails    int
		versions []string
		entry    testbed.Object
	}{
		{"one subnet", testbed.OneSubnet, 2, evidence.Versions, testbed.Railtune},
		{"one subnet", testbed.OneSubnet, 16, []string{"1.0.0"}, testbed.Railtune},
		{"a subnet each", testbed.PerRail, 2, evidence.Versions, railtune},
		{"a subnet each", testbed.PerRail, 16, []string{"1.0.0"}, railtune},
	} {
		for _, version := range c.versions {
			name := fmt.Sprintf("%d rails, %s", c.rails, c.name)
			t.Run(name+"/"+version, func(t *testing.T) {
				if c.rails == 2 { // sixteen fill the machine as it is
					t.Parallel()
				}
				pod := testbed.MustFabric(t, testbed.Options{Layout: c.layout, Pods: 1, Rails: c.rails}).Pods[0]
				multusVerbs(t, pod, name, version, c.entry)
			})
		}
	}
}

func multusVerbs(t *testing.T, pod *testbed.Pod, name, version string, entry testbed.Object) {
	n := standalone(t, pod, version, delegates(t, pod, version, entry)...)
	before := testbed.MustSnapshot(t, pod.Namespace)
	passed := []string{"ADD", "DEL"}
	n.must(t, "add")
	for _, r := range pod.Rails {
		mustTuned(t, pod, r)
	}
	if version == "0.3.1" {
		n.mustFail(t, "check", "does not support the CHECK command")
	} else {
		n.must(t, "check")
		passed = append(passed, "CHECK")
	}
	n.must(t, "del")
	mustBeAsBefore(t, pod, before)
	n.must(t, "del") // Multus says yes: it has forgotten the pod
	if !t.Failed() {
		table.Passed(multus+", no API server", name+": macvlan + static → railtune", version, passed...)
	}
}

// TestMultusAsksItsFirstDelegate has railtune in the cluster network: STATUS and GC
// go to the first delegate only, and so never to a rail.
func TestMultusAsksItsFirstDelegate(t *testing.T) {
	pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 2}).Pods[0]
	n := standalone(t, pod, "1.1.0", delegates(t, pod, "1.1.0", railtune)...)
	rec := record(t, n)
	n.must(t, "status")
	n.must(t, "add")
	n.must(t, "del")
	for _, c := range rec.MustCalls(t) {
		if c.Command != "ADD" && c.Command != "DEL" {
			t.Errorf("%s reached a rail", c.Command)
		}
	}
	first := pod.Rails[0]
	first.Name = "eth0"
	n = standaloneFirst(t, pod, conflist(pod, first, "1.1.0", macvlan(t, pod, first), railtune))
	rec = record(t, n)
	n.must(t, "status")
	n.must(t, "add")
	mustTuned(t, pod, first)
	n.must(t, "check")
	n.must(t, "gc")
	var sent []string
	for _, c := range rec.MustCalls(t) {
		sent = append(sent, c.Command)
	}
	// cnitool's gc deletes what its cache has, and Multus then says GC.
	if got := strings.Join(sent, " "); got != "STATUS ADD CHECK DEL GC" {
		t.Errorf("railtune in the first delegate was sent %s", got)
	}
	mustHaveNothing(t, pod)
	if !t.Failed() {
		table.Passed(multus+", no API server", "railtune in the cluster network", "1.1.0", "STATUS", "ADD", "CHECK", "GC", "DEL")
	}
}

func mustHaveNoEth0(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	if _, err := pod.Run(t.Context(), "ip", "link", "show", "eth0"); err != nil {
		return // a test attaches more than once
	}
	if _, err := pod.Run(t.Context(), "ip", "link", "del", "eth0"); err != nil {
		t.Fatal(err)
	}
}

// standaloneFirst is a pod whose cluster network is the one given.
func standaloneFirst(t *testing.T, pod *testbed.Pod, cluster testbed.Object) *network {
	return write(t, pod, "eth0", testbed.Object{
		"cniVersion": "1.1.0", "name": pod.Name + "-first",
		"plugins": []testbed.Object{{
			"type": "multus", "cniDir": t.TempDir(), "binDir": bin.multus, "logLevel": "error", "logToStderr": true,
			"delegates": []testbed.Object{cluster},
		}},
	})
}

// TestWhatMultusSends pins what railtune gets from Multus: the arguments twice, one
// container ID for all rails, rails added in order and deleted in reverse, prevResult
// with DEL except at 0.3.1.
func TestWhatMultusSends(t *testing.T) {
	for _, version := range evidence.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 2}).Pods[0]
			n := standalone(t, pod, version, delegates(t, pod, version, railtune)...)
			n.env = []string{"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_INFRA_CONTAINER_ID=c;K8S_POD_UID=u"}
			rec := record(t, n)
			n.must(t, "add")
			n.must(t, "del")
			mustHaveNothing(t, pod)
			var order []string
			for _, c := range rec.MustCalls(t) {
				order = append(order, c.Command+" "+c.IfName)
				config, err := c.Config()
				if err != nil {
					t.Fatal(err)
				}
				_, prev := config["prevResult"]
				if want := c.Command == "ADD" || version != "0.3.1"; prev != want {
					t.Errorf("%s at %s: prevResult sent: %t, want %t", c.Command, version, prev, want)
				}
				if strings.Count(c.Args, "K8S_POD_NAME=pod") != 2 || strings.Count(c.Args, "IgnoreUnknown=") != 2 {
					t.Errorf("%s: CNI_ARGS %s, want each key twice", c.Command, c.Args)
				}
				if !strings.HasPrefix(c.ContainerID, "cnitool-") || c.NetNS != pod.Path() || config["cniVersion"] != version {
					t.Errorf("%s: container %s, namespace %s, cniVersion %s", c.Command, c.ContainerID, c.NetNS, config["cniVersion"])
				}
			}
			if got := strings.Join(order, ", "); got != "ADD net1, ADD net2, DEL net2, DEL net1" {
				t.Errorf("the order of the calls is %s", got)
			}
			if !t.Failed() {
				table.Passed(multus+", no API server", "CNI_ARGS with duplicate keys", version, "ADD", "DEL")
			}
		})
	}
}

// TestMultusWithoutVersion is a delegate that has no cniVersion of its own. An ADD
// is then one of 0.1.0, which no chained plugin can serve, and must say so; its DEL
// comes with the configuration stripped, and must not fail.
func TestMultusWithoutVersion(t *testing.T) {
	pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 1}).Pods[0]
	all := delegates(t, pod, "", railtune)
	delete(all[0], "cniVersion")
	n := standalone(t, pod, "1.0.0", all...)
	before := testbed.MustSnapshot(t, pod.Namespace)
	rec := record(t, n)
	n.mustFail(t, "add", "incompatible CNI versions")
	n.must(t, "del")
	mustBeAsBefore(t, pod, before)
	last := rec.MustCalls(t)
	name := all[0]["name"]
	if want := fmt.Sprintf(`{"cniVersion":"1.0.0","ipam":{},"name":%q,"type":"railtune"}`, name); last[len(last)-1].Stdin != want {
		t.Errorf("the last DEL came with %s, want the stripped configuration %s", last[len(last)-1].Stdin, want)
	}
	if !t.Failed() {
		table.Passed(multus+", no API server", "a delegate without cniVersion: refused, stripped DEL", "1.0.0", "ADD", "DEL")
	}
}

// TestStrippedDEL deletes rails that are attached with what Multus has left of the
// configuration when it lost it.
func TestStrippedDEL(t *testing.T) {
	for _, version := range []string{"", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		t.Run("cniVersion "+version, func(t *testing.T) {
			t.Parallel()
			pod := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 2}).Pods[0]
			var nets []*network
			for _, r := range pod.Rails {
				n := write(t, pod, r.Name, conflist(pod, r, "1.0.0", macvlan(t, pod, r), railtune))
				n.must(t, "add")
				nets = append(nets, n)
			}
			call := testbed.Call{
				Plugin: bin.Railtune, Command: "DEL", ContainerID: pod.Name, NetNS: pod.Path(), IfName: pod.Rails[0].Name,
				Args: "IgnoreUnknown=true;IgnoreUnknown=1", Host: pod.Node,
				Config: fmt.Sprintf(`{"cniVersion":%q,"ipam":{},"name":%q,"type":"railtune"}`, version, nets[0].name),
			}
			o, err := call.Run(t.Context())
			if err != nil || o.Exit != 0 || o.Stdout != "" {
				t.Fatalf("DEL: %v, exit %d, %s%s", err, o.Exit, o.Stdout, o.Stderr)
			}
			mustTuned(t, pod, pod.Rails[1])
			if out, err := pod.Run(t.Context(), "ip", "rule", "show"); err != nil || strings.Contains(out, pod.Rails[0].Addr.Addr().String()) || strings.Contains(out, "oif net1") {
				t.Errorf("net1's rules after DEL, %v:\n%s", err, out)
			}
			for _, n := range nets {
				n.must(t, "del")
			}
			mustHaveNothing(t, pod)
			if !t.Failed() && version != "" {
				table.Passed("as Multus", "DEL of an attached rail, configuration stripped", version, "DEL")
			}
		})
	}
}
