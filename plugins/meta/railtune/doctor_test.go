package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// doctor runs "railtune doctor" from a node, and returns its output and exit status.
func doctor(t *testing.T, in *testbed.Namespace, args ...string) (out string, status int) {
	t.Helper()
	out, err := in.Run(t.Context(), testbed.MustRailtune(t), append([]string{"doctor"}, args...)...)
	if err == nil {
		return out, 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out + err.Error(), exit.ExitCode()
}

// diagnose runs doctor on a pod's rails and returns the codes it finds.
func diagnose(t *testing.T, pod *testbed.Pod) string {
	t.Helper()
	out, status := doctor(t, pod.Node, "--netns", pod.Path(), "--rail", "net*", "-o", "json")
	var report struct {
		Findings []struct{ Code string }
		Apply    string
	}
	out = out[:strings.LastIndexByte(out, '}')+1]
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var codes []string
	for _, f := range report.Findings {
		if len(codes) == 0 || codes[len(codes)-1] != f.Code {
			codes = append(codes, f.Code)
		}
	}
	if (len(codes) > 0) != (status == 1) || len(codes) == 0 && status != 0 {
		t.Errorf("exit status %d with findings %v", status, codes)
	}
	return strings.Join(codes, " ")
}

// TestDoctorAfterApply: rails as DRANET or a node's agent leaves them, broken in the ways
// that apply mends at once: doctor finds it, apply mends it, doctor finds nothing.
func TestDoctorAfterApply(t *testing.T) {
	const deviceless = "for i in 1 2 3; do ip route add default dev net$i table 10$i; ip rule add priority $((2000-i)) lookup 10$i; done; "
	const values = "for i in 1 2 3; do echo 1 > /proc/sys/net/ipv4/conf/net$i/arp_ignore; echo 2 > /proc/sys/net/ipv4/conf/net$i/arp_announce; done; "
	const filter = "for i in 1 2 3; do echo 1 > /proc/sys/net/ipv4/conf/net$i/arp_filter; done; "
	for _, c := range []struct {
		name, script, code string
		layout             testbed.Layout
	}{
		{"nothing set", "", "settings-reset source-rule-missing", testbed.OneSubnet},
		{"nothing set, a subnet each", "", "settings-reset", testbed.PerRail},
		{"a value missing", "echo 1 > /proc/sys/net/ipv4/conf/net2/arp_ignore", "settings-reset setting-missing settings-reset", testbed.PerRail},
		{"no rules", values, "source-rule-missing", testbed.OneSubnet},
		{"rules without device", values + filter + deviceless, "rule-without-device", testbed.OneSubnet},
		{"arp_filter without rules", values + filter, "arp-depends-on-routes", testbed.OneSubnet},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := testbed.MustFabric(t, testbed.Options{Direct: true, Rails: 3, Pods: 1, Layout: c.layout})
			pod := f.Pods[0]
			if _, err := pod.Run(t.Context(), "sh", "-ec", c.script); err != nil {
				t.Fatal(err)
			}
			if got := diagnose(t, pod); got != c.code {
				t.Fatalf("found %q, want %q", got, c.code)
			}
			applyIn(t, pod.Node, 0, "--netns", pod.Path(), "--rail", "net1,net2,net3")
			if got := diagnose(t, pod); got != "" {
				t.Errorf("after apply: %q", got)
			}
		})
	}
}

// TestDoctorCommand: the command line, in words and exit statuses.
func TestDoctorCommand(t *testing.T) {
	f := testbed.MustFabric(t, testbed.Options{Direct: true, Rails: 2, Pods: 1, Layout: testbed.PerRail})
	pod := f.Pods[0]
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"--help", 0, "usage: railtune doctor [--netns PATH"},
		{"--netns " + pod.Path(), 2, "no rail recognised"},
		{"--netns " + pod.Path() + " --rail rdma*", 2, `no interface is called "rdma*"`},
		{"--netns " + pod.Path() + " --rail net1,net2", 1, "settings-reset"},
		{"--netns " + pod.Path() + " --rail net1 --rail net2 --brief", 1, "ip netns exec " + pod.Name + " sysctl -w net.ipv4.conf.net2.arp_ignore=1"},
		{"--netns " + pod.Path() + " --rail net*", 1, "railtune apply --netns " + pod.Path() + " --rail net1 --rail net2"},
		{"--netns " + pod.Path() + " --rail net* --ignore settings-reset", 0, "no findings"},
		{"--netns " + pod.Path() + " --rail net* --ignore settings", 2, "no such finding"},
		{"--netns " + pod.Path() + " --rail [", 2, "no pattern"},
		{"--netns " + pod.Path() + " --peer rail7", 2, "no address"},
		{"--netns " + pod.Path() + " -o yaml", 2, "give table or json"},
		{"--netns /run/netns/none-such --rail net*", 2, "cannot be entered"},
		{"--netns " + pod.Path() + " --host", 2, "exclude each other"},
		{"net1", 2, "unexpected argument"},
		{"--explain ibv_modify_qp", 0, "gid-missing"},
		{"--explain nothing-like-it", 1, "nothing is known"},
	} {
		out, status := doctor(t, pod.Node, strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(strings.Join(strings.Fields(out), " "), c.says) {
			t.Errorf("doctor %s: exit %d, want %d and %q: %s", c.args, status, c.status, c.says, out)
		}
	}
	// From inside, as kubectl exec calls it, commands need nothing in front.
	out, status := doctor(t, pod.Namespace, "--rail", "net1", "--brief")
	if status != 1 || !strings.Contains(out, "\n    sysctl -w net.ipv4.conf.net1.arp_ignore=1\n") {
		t.Errorf("from inside: exit %d: %s", status, out)
	}
	if _, err := pod.Run(t.Context(), "sh", "-ec", fmt.Sprintf("%s doctor --rail net1 -o json > /dev/full || test $? = 2", testbed.MustRailtune(t))); err != nil {
		t.Errorf("output that cannot be written: %v", err)
	}
}

// TestDoctorWithoutRights: in an ordinary pod, without capabilities and as nobody, doctor
// sees what there is to see, and says what it could not look at.
func TestDoctorWithoutRights(t *testing.T) {
	f := testbed.MustFabric(t, testbed.Options{Direct: true, Rails: 2, Pods: 1, Layout: testbed.PerRail})
	pod := f.Pods[0]
	if _, err := pod.Run(t.Context(), "iptables-nft", "-P", "INPUT", "DROP"); err != nil {
		t.Fatal(err)
	}
	script := "cp " + testbed.MustRailtune(t) + " $1/railtune; chmod 755 $1 $1/railtune; " +
		"exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all $1/railtune doctor --rail 'net*' --brief"
	out, err := pod.Run(t.Context(), "sh", "-ec", script, "sh", t.TempDir())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, "settings-reset") ||
		!strings.Contains(out, "nftables cannot be listed") || strings.Contains(out, "firewall-drops") {
		t.Errorf("as nobody: %v: %s", err, out)
	}
	// The rules are there, and no tool to list them.
	out, status := doctorEnv(t, pod.Node, "PATH=/none", "--netns", pod.Path(), "--rail", "net*", "--brief")
	if status != 1 || !strings.Contains(out, "iptables-nft has rules here (filter), which cannot be listed") {
		t.Errorf("without iptables: exit %d: %s", status, out)
	}
}

// doctorEnv is doctor with an environment variable.
func doctorEnv(t *testing.T, in *testbed.Namespace, variable string, args ...string) (out string, status int) {
	t.Helper()
	out, err := in.Run(t.Context(), "env", append([]string{variable, testbed.MustRailtune(t), "doctor"}, args...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out, status
}

// BenchmarkDoctor is the whole command on a healthy pod of sixteen rails with a subnet
// each, the dearest of the layouts (docs/doctor.md).
func BenchmarkDoctor(b *testing.B) {
	f := testbed.MustFabric(b, testbed.Options{Direct: true, Pods: 1, Layout: testbed.PerRail})
	pod := f.Pods[0]
	var names []string
	for _, r := range pod.Rails {
		names = append(names, r.Name)
	}
	binary := testbed.MustRailtune(b)
	if _, err := pod.Node.Run(b.Context(), binary, "apply", "--netns", pod.Path(), "--rail", strings.Join(names, ",")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if out, err := pod.Node.Run(b.Context(), binary, "doctor", "--netns", pod.Path()); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
