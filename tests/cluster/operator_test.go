//go:build cluster

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// render gives a SriovNetwork to the operator's own code.
func render(name, ipam, metaPlugins string) (nad testbed.Object, err error) {
	network, err := json.Marshal(testbed.Object{
		"apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork",
		"metadata": testbed.Object{"name": name, "namespace": "sriov-network-operator"},
		"spec": testbed.Object{
			"resourceName": name, "networkNamespace": "default", "ipam": ipam, "metaPlugins": metaPlugins,
			"spoofChk": "off", "trust": "on", "logLevel": "info",
		},
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(bin.clients, "operator", "operator"))
	cmd.Env = []string{"RESOURCE_PREFIX=example.com"}
	cmd.Stdin = strings.NewReader(string(network))
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return nil, fmt.Errorf("%w: %s", err, ended.Stderr)
	}
	if err != nil {
		return nil, err
	}
	return nad, json.Unmarshal(out, &nad)
}

// blocks are the fenced and the inline pieces of code of the documentation.
var blocks = regexp.MustCompile("(?s)```json\n(.*?)```|`({[^`]*})`")

// documented returns railtune's entries in README and docs as they are written,
// several lines and all.
func documented(t *testing.T) (entries []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, filepath.Join("..", "..", "README.md")) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range blocks.FindAllStringSubmatch(string(b), -1) {
			text := found[1] + found[2]
			if !strings.Contains(text, `"railtune"`) {
				continue
			}
			var list struct {
				Type    string
				Plugins []json.RawMessage
			}
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				t.Errorf("%s has an example that is no JSON: %v\n%s", file, err, text)
				continue
			}
			if list.Type == "railtune" {
				entries = append(entries, text)
			}
			for _, plugin := range list.Plugins {
				if strings.Contains(string(plugin), `"railtune"`) {
					entries = append(entries, string(plugin))
				}
			}
		}
	}
	return entries
}

// TestOperator renders every documented entry, alone and among others, and attaches
// what comes out through Multus, with a stand-in for sriov.
func TestOperator(t *testing.T) {
	entries := documented(t)
	if len(entries) < 2 {
		t.Fatalf("README and docs have %d entries of railtune's: %q", len(entries), entries)
	}
	const tuning = `{"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.rp_filter": "2"}}`
	examples := map[string]string{
		"tuning before, several lines": "{\n  \"type\": \"tuning\",\n  \"sysctl\": {\n    \"net.ipv4.conf.IFNAME.rp_filter\": \"2\"\n  }\n},\n{\n  \"type\": \"railtune\",\n  \"supernets\": [\n    {\"dst\": \"10.61.0.0/16\"}\n  ]\n}\n",
		"tuning after":                 entries[len(entries)-1] + ", " + tuning,
		"every field": `{"type": "railtune", "sysctl": {"net.ipv4.conf.IFNAME.rp_filter": 2, "net.ipv6.conf.IFNAME.accept_ra": "auto"}, "table": 700, "rulePriority": 600,
  "supernets": [{"dst": "10.61.0.0/16", "gw": "10.61.3.254"}], "mainTable": false, "announce": false,
  "verify": {"mode": "enforce", "peers": ["10.61.3.99"], "peerMode": "warn", "anycastMACs": [], "requireReply": false, "timeout": "200ms"}}`,
	}
	for i, entry := range entries {
		examples[fmt.Sprintf("documented %d", i+1)] = entry
	}
	for name, metaPlugins := range examples {
		t.Run(name, func(t *testing.T) { attachRendered(t, metaPlugins) })
	}
}

func attachRendered(t *testing.T, metaPlugins string) {
	r := node.rails[2]
	ipam, err := json.Marshal(static(r))
	if err != nil {
		t.Fatal(err)
	}
	nad, err := render("vf", string(ipam), metaPlugins)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("rendered: %v", nad)
	create(t, nads, nad)
	c := thinClient(t)
	p := newPod(t, c, "1.0.0", "vf@rdma0")
	mustAllocate(t, p, "example.com/vf", vf(r))
	before := testbed.MustSnapshot(t, p.Namespace)
	rec := p.record(t)
	p.must(t, "add")
	got := p.statuses(t)["rdma0"]
	if len(got.IPs) != 1 {
		t.Fatalf("network-status of rdma0 is %+v", got)
	}
	out, err := p.Run(t.Context(), "ip", "route", "get", "10.61.3.99", "from", got.IPs[0])
	if err != nil || !strings.Contains(out, "dev rdma0 table 7") {
		t.Errorf("from the rail: %s (%v)", out, err)
	}
	p.must(t, "del")
	for _, call := range rec.MustCalls(t) {
		config, err := call.Config()
		if err != nil || config["deviceID"] != vf(r) || config["pciBusID"] != vf(r) {
			t.Errorf("%s of railtune has no deviceID and pciBusID of the VF: %s (%v)", call.Command, call.Stdin, err)
		}
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, p.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
	if !t.Failed() {
		table.Passed(c.name, "NAD by "+operator+", stand-in for sriov → railtune", "1.0.0", "ADD", "DEL")
	}
}

// mustAllocate writes what the kubelet's device manager would have: the pod's
// container has this device. Multus finds it there by the definition's resourceName.
func mustAllocate(t *testing.T, p *pod, resource, device string) {
	t.Helper()
	file := "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint" // below the sandbox's own /var/lib
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(file, testbed.Object{"Checksum": 0, "Data": testbed.Object{
		"RegisteredDevices": testbed.Object{resource: []string{device}},
		"PodDeviceEntries": []any{testbed.Object{
			"PodUID": p.uid, "ContainerName": "c", "ResourceName": resource, "DeviceIDs": testbed.Object{"0": []string{device}}, "AllocResp": "",
		}},
	}}); err != nil {
		t.Fatal(err)
	}
}

// TestOperatorApostrophe shows why railtune's configuration never needs one.
func TestOperatorApostrophe(t *testing.T) {
	if nad, err := render("vf", "{}", `{"type": "railtune", "logFile": "/var/log/it's.log"}`); err == nil {
		t.Errorf("an apostrophe in metaPlugins now renders: %v", nad)
	}
}
