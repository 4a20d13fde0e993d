//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/promise"
	"github.com/railtune/railtune/tests/recorder"
)

// railtune is the documented entry for rails with a subnet each.
var railtune = testbed.Object{"type": "railtune", "supernets": []any{testbed.Object{"dst": testbed.Supernet.String()}}}

// client is how a runtime reaches Multus: the plugin's type and what its
// configuration has besides the cluster network.
type client struct {
	name    string
	config  testbed.Object
	version string // of the runtime's network, or "" for that of the definitions
}

func thinClient(t *testing.T) client {
	return client{name: thin + " thin", config: testbed.Object{
		"type": "multus", "kubeconfig": node.kubeconfig, "cniDir": t.TempDir(), "confDir": t.TempDir(), "logLevel": "error", "logToStderr": true,
	}}
}

// pod is a pod of the API server's and a namespace for it; cnitool stands for the
// kubelet and its runtime.
type pod struct {
	*testbed.Namespace
	name, uid string
	env       []string
	dir       string // NETCONFPATH
	bin       string // CNI_PATH, and Multus' binDir: its daemon looks nowhere else
}

var pod0 atomic.Int64

// newPod makes a pod with the annotation that asks Multus for networks.
func newPod(t *testing.T, c client, version, networks string) *pod {
	t.Helper()
	p := &pod{Namespace: testbed.MustNamespace(t, "pod"), name: fmt.Sprintf("pod-%d", pod0.Add(1)), dir: t.TempDir(), bin: t.TempDir()}
	p.uid = createPod(t, p.name, networks)
	if err := node.linkPlugins(p.bin); err != nil {
		t.Fatal(err)
	}
	list := testbed.Object{"clusterNetwork": node.clusterNetwork, "binDir": p.bin}
	if c.version != "" {
		version = c.version
	}
	for k, v := range c.config {
		list[k] = v
	}
	config := testbed.Object{"cniVersion": version, "name": "multus-cni-network", "plugins": []any{list}}
	if err := writeJSON(filepath.Join(p.dir, "00-multus.conflist"), config); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + p.name +
		";K8S_POD_INFRA_CONTAINER_ID=" + p.name + ";K8S_POD_UID=" + p.uid}
	return p
}

func createPod(t *testing.T, name, networks string) (uid string) {
	t.Helper()
	return create(t, pods, testbed.Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": testbed.Object{"name": name, "annotations": testbed.Object{"k8s.v1.cni.cncf.io/networks": networks}},
		"spec": testbed.Object{
			"nodeName": nodeName, "automountServiceAccountToken": false,
			"containers": []any{testbed.Object{"name": "c", "image": image}},
		},
	})
}

func (p *pod) try(t *testing.T, verb string) testbed.Outcome {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), bin.CNITool, verb, "multus-cni-network", p.Path())
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + p.bin, "NETCONFPATH=" + p.dir, "CNI_IFNAME=eth0"}, p.env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	if err := node.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit status says it
	return testbed.Outcome{Stdout: out.String(), Stderr: errs.String(), Exit: cmd.ProcessState.ExitCode(), Took: time.Since(start)}
}

func (p *pod) must(t *testing.T, verb string) string {
	t.Helper()
	o := p.try(t, verb)
	if err := o.Err(); err != nil {
		t.Fatalf("%s of %s: %v", verb, p.name, err)
	}
	return o.Stdout
}

// mustFail returns what the client said.
func (p *pod) mustFail(t *testing.T, verb string, want ...string) string {
	t.Helper()
	o := p.try(t, verb)
	for _, w := range want {
		if o.Exit == 0 || !strings.Contains(o.Stderr, w) {
			t.Fatalf("%s of %s: exit %d, want a failure with %q; it said %s%s", verb, p.name, o.Exit, w, o.Stdout, o.Stderr)
		}
	}
	return o.Stderr
}

// record puts a recorder in the place of railtune.
func (p *pod) record(t *testing.T) *recorder.Recorder {
	t.Helper()
	if err := os.Remove(filepath.Join(p.bin, "railtune")); err != nil {
		t.Fatal(err)
	}
	rec, err := recorder.New(p.bin, bin.Railtune)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// status is an entry of the network-status annotation.
type status struct {
	Name, Interface, MAC string
	IPs                  []string
	Default              bool
}

// statuses reads back what Multus wrote to the pod, by interface.
func (p *pod) statuses(t *testing.T) map[string]status {
	t.Helper()
	var got struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := node.get(pods+"/"+p.name, &got); err != nil {
		t.Fatal(err)
	}
	var list []status
	text := got.Metadata.Annotations["k8s.v1.cni.cncf.io/network-status"]
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in the network-status %q", err, text)
	}
	by := map[string]status{}
	for _, s := range list {
		by[s.Interface] = s
	}
	return by
}

// mustKeep asserts railtune's promise for an interface with what Multus says it has.
func (p *pod) mustKeep(t *testing.T, s status) {
	t.Helper()
	for _, ip := range s.IPs {
		r := promise.Rail{Name: s.Interface, Addr: mustPrefix(t, ip)}
		to := []string{r.Near(), "10.61.200.200"}
		if r.Addr.Addr().Is6() {
			to = to[:1]
		}
		if err := promise.Kept(t.Context(), p.Namespace, r, false, to...); err != nil {
			t.Error(err)
		}
	}
}

// macvlan is a network over one of the node's rails.
func macvlan(r testbed.Rail, version, name string, ipam testbed.Object, chain ...testbed.Object) testbed.Object {
	first := testbed.Object{"type": "macvlan", "master": r.Parent, "mode": "bridge", "ipam": ipam}
	list := testbed.Object{"name": name, "plugins": append([]testbed.Object{first}, chain...)}
	if version != "" {
		list["cniVersion"] = version
	}
	return list
}

// hostLocal gives addresses of the rail's subnet, from .50 on.
func hostLocal(r testbed.Rail) testbed.Object {
	return testbed.Object{"type": "host-local", "ranges": []any{[]any{testbed.Object{
		"subnet": r.Addr.Masked().String(), "gateway": r.Gateway.String(),
		"rangeStart": strings.TrimSuffix(r.Gateway.String(), "254") + "50",
	}}}}
}

// static gives the rail's planned address.
func static(r testbed.Rail) testbed.Object {
	return testbed.Object{"type": "static", "addresses": []any{testbed.Object{"address": r.Addr.String(), "gateway": r.Gateway.String()}}}
}
