package generate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

// TestConflistIsRun attaches, checks and removes rails with the conflists as they are
// printed, through the real cnitool, macvlan and static.
func TestConflistIsRun(t *testing.T) {
	testbed.NeedRoot(t)
	testbed.MustRailtune(t)
	f := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 2})
	r := Default()
	r.Count, r.First, r.Parent, r.Plugin, r.IPAM = 2, 1, "rail%d", MACVLAN, "static"
	r.Address, r.Gateway, r.Supernets = "10.61.%d.11/24", "10.61.%d.254", testbed.Supernet.String()
	made, err := r.Generate("conflist")
	if err != nil {
		t.Fatal(err)
	}
	pod := f.Pods[0]
	before := testbed.MustSnapshot(t, pod.Namespace)
	for i, rail := range pod.Rails {
		var list testbed.Object
		if err := json.Unmarshal([]byte(made.Files[i].Text), &list); err != nil {
			t.Fatal(err)
		}
		if err := pod.Configure(rail, list); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"add", "check"} {
			if o, err := pod.CNITool(t.Context(), verb, rail); err != nil || o.Err() != nil {
				t.Fatalf("%s of %s: %v %v", verb, rail.Name, err, o.Err())
			}
		}
		out, err := pod.Run(t.Context(), "ip", "route", "get", "10.61.200.1", "from", rail.Addr.Addr().String())
		if err != nil || !strings.Contains(out, "via "+rail.Gateway.String()+" dev "+rail.Name+" table 7") {
			t.Errorf("the supernet from %s: %s (%v)", rail.Name, out, err)
		}
	}
	for _, rail := range pod.Rails {
		if o, err := pod.CNITool(t.Context(), "del", rail); err != nil || o.Err() != nil {
			t.Fatalf("del of %s: %v %v", rail.Name, err, o.Err())
		}
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod.Namespace)); len(d) > 0 {
		t.Errorf("left in the pod:\n%s", d)
	}
}

// TestSysctlDIsApplied has systemd apply the file, as at boot and as udev asks for one
// interface that has appeared. A name with a dot, and one that the pattern does not
// mean, are there too.
func TestSysctlDIsApplied(t *testing.T) {
	const systemd = "/lib/systemd/systemd-sysctl"
	if _, err := os.Stat(systemd); err != nil {
		t.Skipf("the file is not applied here: %v", err)
	}
	for _, c := range []struct{ parent, other string }{{"rdma%d", "xrdma0"}, {"rdma%d.100", "rdma7"}} {
		t.Run(c.parent, func(t *testing.T) {
			n := testbed.MustNamespace(t, "host")
			r := Default()
			r.Parent = c.parent
			made, err := r.Generate("sysctl.d")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), made.Files[0].Name)
			if err := os.WriteFile(file, []byte(made.Files[0].Text), 0o644); err != nil {
				t.Fatal(err)
			}
			add := func(number int) (name string) {
				name = c.other
				if number >= 0 {
					name, _ = expand(c.parent, number)
				}
				if _, err := n.Run(t.Context(), "ip", "link", "add", name, "type", "bridge"); err != nil {
					t.Fatal(err)
				}
				return name
			}
			have := func(name string) string {
				var values []string
				for _, key := range []string{"ipv4/conf/%/arp_ignore", "ipv4/conf/%/arp_announce", "ipv6/conf/%/accept_ra"} {
					v, err := n.Sysctl(strings.Replace(key, "%", name, 1))
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, v)
				}
				return strings.Join(values, " ")
			}
			first, other := add(0), add(-1)
			if _, err := n.Run(t.Context(), systemd, file); err != nil {
				t.Fatal(err)
			}
			if got := have(first); got != "1 2 2" {
				t.Errorf("%s has %s", first, got)
			}
			if got := have(other); got != "0 0 1" {
				t.Errorf("%s, which the pattern does not mean, has %s", other, got)
			}
			later := add(15)
			if got := have(later); got != "0 0 1" {
				t.Errorf("%s has %s already", later, got)
			}
			udev := []string{file}
			for _, tree := range []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"} {
				udev = append(udev, "--prefix=/net/"+tree+"/"+later) // as 99-systemd.rules has it
			}
			if _, err := n.Run(t.Context(), systemd, udev...); err != nil {
				t.Fatal(err)
			}
			if got := have(later); got != "1 2 2" {
				t.Errorf("%s, which came later, has %s", later, got)
			}
			for _, scope := range []string{"all", "default"} {
				if got := have(scope); got != "0 0 1" {
					t.Errorf("%s has %s", scope, got)
				}
			}
		})
	}
}
