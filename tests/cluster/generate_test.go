//go:build cluster

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// Where the API server keeps the generated kinds that the other tests do not make.
const (
	sriovNetworks = "/apis/sriovnetwork.openshift.io/v1/namespaces/sriov-network-operator/sriovnetworks"
	claims        = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
)

// generated runs railtune generate and returns the documents it printed.
func generated(t *testing.T, args ...string) (documents []string) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), bin.Railtune, append([]string{"generate"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("generate %v: %v: %s", args, err, errs.String())
	}
	return strings.Split(out.String(), "\n---\n")
}

// apply sends a document as kubectl apply --server-side does, with the API server's
// own reading of the YAML and unknown fields refused. It returns the object's name and
// version, which is another one after every change.
func apply(t *testing.T, list, document string) (name, version string) {
	t.Helper()
	for line := range strings.Lines(document) {
		if rest, found := strings.CutPrefix(line, "  name: "); found {
			name = strings.TrimSpace(rest)
			break
		}
	}
	var object struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	path := list + "/" + name + "?fieldManager=generate&fieldValidation=Strict"
	if err := node.call(http.MethodPatch, path, "application/apply-patch+yaml", []byte(document), &object); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return object.Metadata.Name, object.Metadata.ResourceVersion
}

// mustApply applies documents twice, for the time of the test: the second time changes
// nothing.
func mustApply(t *testing.T, list string, documents []string) {
	t.Helper()
	for _, d := range documents {
		name, version := apply(t, list, d)
		t.Cleanup(func() {
			if err := node.call(http.MethodDelete, list+"/"+name, "application/json", []byte(`{"gracePeriodSeconds":0}`), nil); err != nil {
				t.Errorf("removing what the test made: %v", err)
			}
		})
		if _, again := apply(t, list, d); again != version {
			t.Errorf("%s changes when it is applied again: version %s, then %s", name, version, again)
		}
	}
}

// TestGenerateDefinitions attaches two rails of printed definitions through Multus.
func TestGenerateDefinitions(t *testing.T) {
	for _, version := range []string{"0.3.1", "1.0.0"} {
		t.Run(version, func(t *testing.T) {
			docs := generated(t, "nad", "--rails", "2", "--first", "1", "--plugin", "macvlan", "--parent", "rail%d", "--cni-version", version,
				"--ipam", "host-local", "--subnet", "10.61.%d.0/24", "--gateway", "10.61.%d.254", "--supernets", testbed.Supernet.String(),
				"--railtune", `{"verify":{"timeout":"300ms"}}`)
			mustApply(t, nads, docs)
			attachRails(t, version, "rail-1,rail-2")
		})
	}
}

// attachRails attaches networks, checks railtune's promise for each, and removes them.
func attachRails(t *testing.T, version, networks string) {
	t.Helper()
	p := newPod(t, thinClient(t), version, networks)
	before := testbed.MustSnapshot(t, p.Namespace)
	p.must(t, "add")
	got := p.statuses(t)
	for i := range strings.Split(networks, ",") {
		s := got[fmt.Sprintf("net%d", i+1)]
		if len(s.IPs) != 1 {
			t.Fatalf("network-status of net%d is %+v", i+1, s)
		}
		p.mustKeep(t, s)
	}
	p.must(t, "del")
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
}

// TestGenerateFromTuning takes a definition with tuning and sbr out of the API server as
// kubectl would, and puts it back with railtune: it works, and is the same object.
func TestGenerateFromTuning(t *testing.T) {
	r := node.rails[0]
	tuning := testbed.Object{"type": "tuning", "sysctl": testbed.Object{
		"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.IFNAME.arp_ignore": "1",
		"net.ipv4.conf.IFNAME.arp_announce": "2", "net.ipv4.conf.IFNAME.accept_local": "1",
	}}
	createNAD(t, "old", macvlan(r, "1.0.0", "old", hostLocal(r), tuning, testbed.Object{"type": "sbr"}), testbed.Object{"a": "b"})
	var object json.RawMessage
	if err := node.get(nads+"/old", &object); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(file, object, 0o600); err != nil {
		t.Fatal(err)
	}
	docs := generated(t, "from-tuning", file, "--supernets", testbed.Supernet.String())
	if err := node.call(http.MethodPut, nads+"/old?fieldValidation=Strict", "application/yaml", []byte(docs[0]), nil); err != nil {
		t.Fatalf("%v\n%s", err, docs[0])
	}
	var now struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct{ Config string }
	}
	if err := node.get(nads+"/old", &now); err != nil {
		t.Fatal(err)
	}
	if c := now.Spec.Config; strings.Contains(c, "tuning") || strings.Contains(c, "sbr") || !strings.Contains(c, "accept_local") || now.Metadata.Annotations["a"] != "b" {
		t.Errorf("the definition is now %+v", now)
	}
	attachRails(t, "1.0.0", "old")
}

// TestGenerateSriovNetwork defines the operator's own type, has the API server take the
// printed objects, and gives what it holds then to the operator's renderer; the
// definition that makes is attached with a stand-in for sriov.
func TestGenerateSriovNetwork(t *testing.T) {
	mustDefineSriov(t)
	docs := generated(t, "sriovnetwork", "--rails", "1", "--first", "3", "--name", "vf-%d", "--namespace", "default", "--resource", "example.com/vf-%d",
		"--interface", `{"spoofChk":"off","trust":"on","vlan":100,"linkState":"auto"}`,
		"--ipam", "static", "--address", "10.61.%d.11/24", "--gateway", "10.61.%d.254",
		"--chain", `{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.arp_notify":"1"}}`,
		"--supernets", testbed.Supernet.String(), "--railtune", `{"sysctl":{"net.ipv4.conf.IFNAME.rp_filter":"2"}}`)
	mustApply(t, sriovNetworks, docs)
	var held json.RawMessage
	if err := node.get(sriovNetworks+"/vf-3", &held); err != nil {
		t.Fatal(err)
	}
	nad, err := rendered(held)
	if err != nil {
		t.Fatal(err)
	}
	r := node.rails[2]
	create(t, nads, nad)
	p := newPod(t, thinClient(t), "1.0.0", "vf-3@rdma3")
	mustAllocate(t, p, "example.com/vf-3", vf(r))
	before := testbed.MustSnapshot(t, p.Namespace)
	p.must(t, "add")
	s := p.statuses(t)["rdma3"]
	if len(s.IPs) != 1 || s.IPs[0] != "10.61.3.11" {
		t.Fatalf("network-status of rdma3 is %+v", s)
	}
	p.mustKeep(t, s)
	p.must(t, "del")
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
}

// mustDefineSriov lets the API server take the operator's type, in a namespace of its
// own, from now on.
func mustDefineSriov(t *testing.T) {
	t.Helper()
	if node.get(sriovNetworks, nil) == nil {
		return
	}
	if err := node.call(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml", operatorCRD(t), nil); err != nil {
		t.Fatal(err)
	}
	if err := node.api.until(func() error { return node.get(sriovNetworks, nil) }); err != nil {
		t.Fatal(err)
	}
	space := testbed.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": testbed.Object{"name": "sriov-network-operator"}}
	b, err := json.Marshal(space)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.call(http.MethodPost, "/api/v1/namespaces", "application/json", b, nil); err != nil {
		t.Fatal(err)
	}
}

// operatorCRD is the type's definition of the operator's module that the renderer is
// built from.
func operatorCRD(t *testing.T) []byte {
	t.Helper()
	const module = "github.com/k8snetworkplumbingwg/sriov-network-operator"
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join("..", "..", "scripts", "clients", "operator")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(found.Dir, "config", "crd", "bases", "sriovnetwork.openshift.io_sriovnetworks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rendered is what the operator makes of a SriovNetwork.
func rendered(network []byte) (nad testbed.Object, err error) {
	cmd := exec.Command(filepath.Join(bin.clients, "operator", "operator"))
	cmd.Env = []string{"RESOURCE_PREFIX=example.com"}
	cmd.Stdin = bytes.NewReader(network)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	return nad, json.Unmarshal(out, &nad)
}

// TestGenerateBuiltIn applies what needs no definition: a claim of sixteen rails and the
// pod. That DRANET and the kubelet do what is asked is theirs, and not run here.
func TestGenerateBuiltIn(t *testing.T) {
	for _, c := range []struct {
		list string
		args []string
	}{
		{claims, []string{"dranet", "--railtune", `{"sysctl":{"net.ipv6.conf.IFNAME.accept_ra":2}}`, "--interface", `{"type":"IPVLAN"}`}},
		{claims, []string{"dranet", "--rails", "32", "--name", "claim-%d", "--address", "fd61:%x::11/64", "--mtu", "4220"}},
		{pods, []string{"pod", "--namespace", "default"}},
	} {
		docs := generated(t, c.args...)
		t.Run(c.args[0], func(t *testing.T) { mustApply(t, c.list, docs) })
	}
	// One more than a claim can have is refused by railtune; the API server has the last
	// word on how many that is.
	one := generated(t, "dranet", "--rails", "32", "--name", "many-%d")[0]
	more := strings.Replace(one, "      requests:\n", "      requests:\n      - name: many-32\n        exactly:\n          deviceClassName: dra.net\n", 1)
	err := node.call(http.MethodPatch, claims+"/many?fieldManager=generate", "application/apply-patch+yaml", []byte(more), nil)
	if err == nil || !strings.Contains(err.Error(), "32") {
		t.Errorf("a claim of 33 requests: %v", err)
	}
}
