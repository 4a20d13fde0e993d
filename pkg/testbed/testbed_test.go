package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestSandboxHidesTheHost(t *testing.T) {
	NeedRoot(t)
	n := MustNamespace(t, "hidden")
	for _, made := range []string{n.Path(), scratch, "/var/lib/cni"} {
		if _, err := os.Stat(made); err != nil {
			t.Error(err)
		}
		outside, err := os.Stat(host() + made)
		if inside, _ := os.Stat(made); err == nil && os.SameFile(inside, outside) {
			t.Errorf("%s is the host's", made)
		}
	}
	if _, err := os.Stat("/var/lib/dpkg"); err != nil {
		t.Errorf("the sandbox hides what it does not need to: %v", err)
	}
}

func TestDoAndRunAreInside(t *testing.T) {
	n := MustNamespace(t, "inside")
	here, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var inDo string
	if err := n.Do(func() (err error) { inDo, err = os.Readlink("/proc/thread-self/ns/net"); return err }); err != nil {
		t.Fatal(err)
	}
	inRun, err := n.Run(t.Context(), "readlink", "/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if inDo == here || strings.TrimSpace(inRun) != inDo {
		t.Errorf("outside %s, Do in %s, Run in %s", here, inDo, inRun)
	}
	if _, err := n.Run(t.Context(), "ip", "link", "show", "nothing"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the error of a failed command is %v, want its stderr", err)
	}
}

// TestNothingIsLeftByAnyEnd kills a process that has made a fabric, where no
// deferred call can run, and looks for what it made.
func TestNothingIsLeftByAnyEnd(t *testing.T) {
	NeedRoot(t)
	const role = "RAILTUNE_TESTBED_HOLD"
	if os.Getenv(role) != "" {
		if _, err := NewFabric(Options{Rails: 2}); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("made\n")
		select {} // until killed
	}
	before := hostNamespaces(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, sandboxed+"=") { // a sandbox of its own
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, role+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 5)
	if _, err := out.Read(said); err != nil || string(said) != "made\n" {
		t.Errorf("the holder said %q, %v", said, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if after := hostNamespaces(t); after != before {
		t.Errorf("left on the host: %s, before %s", after, before)
	}
}

// host is the root folder as the process that started this one sees it: go
// test, which is outside the sandbox.
func host() string { return fmt.Sprintf("/proc/%d/root", os.Getppid()) }

// hostNamespaces lists what a fabric could have left outside its sandbox.
func hostNamespaces(t *testing.T) string {
	t.Helper()
	var names []string
	for _, dir := range []string{host() + "/run/netns", host() + scratch, host() + "/var/lib/cni", "/run/netns", scratch} {
		found, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range found {
			if strings.HasPrefix(e.Name(), "pod") || strings.HasPrefix(e.Name(), "node") || strings.HasPrefix(e.Name(), "net.d-") {
				names = append(names, dir+"/"+e.Name())
			}
		}
	}
	return strings.Join(names, " ")
}

func run(t *testing.T, n *Namespace, line string) {
	t.Helper()
	args := strings.Fields(line)
	if _, err := n.Run(t.Context(), args[0], args[1:]...); err != nil {
		t.Fatal(err)
	}
}

func TestDiffShowsEachKindOfChange(t *testing.T) {
	f := MustFabric(t, Options{Rails: 2, Direct: true})
	pod := f.Pods[0].Namespace
	for _, c := range []struct{ do, undo, want string }{
		{"ip rule add from 10.61.10.1 lookup 7200002 priority 720 protocol 72", "ip rule del priority 720", "+ rule4 720: from 10.61.10.1 lookup 7200002 proto 72"},
		{"ip -6 rule add oif net1 lookup 7200002 priority 721", "ip -6 rule del priority 721", "+ rule6 721: from all oif net1 lookup 7200002"},
		{"ip rule add from 10.61.10.1 unreachable priority 722", "ip rule del priority 722", "+ rule4 722: from 10.61.10.1 unreachable"},
		{"ip route add 10.99.0.0/16 dev net1 table 7200002", "ip route flush table 7200002", "+ route4 unicast 10.99.0.0/16 dev net1 table 7200002"},
		{"ip -6 route add fd61::/64 dev net2 metric 7", "ip -6 route del fd61::/64", "+ route6 unicast fd61::/64 dev net2 table main proto boot scope global metric 7"},
		{"ip link set net2 mtu 1400", "ip link set net2 mtu 1500", "mtu 1400"},
		{"ip addr add 10.61.99.9/32 dev net2", "ip addr del 10.61.99.9/32 dev net2", "+ addr net2 inet 10.61.99.9/32"},
		{"sysctl -qw net.ipv4.conf.net2.arp_ignore=1", "sysctl -qw net.ipv4.conf.net2.arp_ignore=0", "+ sysctl net/ipv4/conf/net2/arp_ignore = 1"},
		{"sysctl -qw net.ipv6.conf.default.accept_ra=2", "sysctl -qw net.ipv6.conf.default.accept_ra=1", "+ sysctl net/ipv6/conf/default/accept_ra = 2"},
		{"sysctl -qw net.ipv4.neigh.net1.ucast_solicit=5", "sysctl -qw net.ipv4.neigh.net1.ucast_solicit=3", "+ sysctl net/ipv4/neigh/net1/ucast_solicit = 5"},
		{"sysctl -qw net.ipv6.neigh.net1.ucast_solicit=5", "sysctl -qw net.ipv6.neigh.net1.ucast_solicit=3", "+ sysctl net/ipv6/neigh/net1/ucast_solicit = 5"},
	} {
		before := MustSnapshot(t, pod)
		run(t, pod, c.do)
		if d := Diff(before, MustSnapshot(t, pod)).String(); !strings.Contains(d, c.want) {
			t.Errorf("%s: diff\n%s\nlacks %q", c.do, d, c.want)
		}
		run(t, pod, c.undo)
		if d := Diff(before, MustSnapshot(t, pod)); len(d) > 0 {
			t.Errorf("%s: left\n%s", c.undo, d)
		}
	}
}

func TestDiff(t *testing.T) {
	s := func(lines ...string) Snapshot { return Snapshot{lines} }
	for _, c := range []struct {
		name          string
		before, after Snapshot
		want          string
	}{
		{"equal", s("a", "b", "b"), s("a", "b", "b"), ""},
		{"one of two alike left", s("b", "b"), s("b"), "- b"},
		{"two of three alike left", s("b", "b", "b"), s("b"), "- b\n- b"},
		{"one more alike", s("b"), s("b", "b"), "+ b"},
		{"changed", s("x = 0"), s("x = 1"), "- x = 0\n+ x = 1"},
		{"order", s("a", "b"), s("b", "a"), "- a\n+ b (order)\n- b\n+ a (order)"},
	} {
		if got := Diff(c.before, c.after).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	changes := Changes{"- sysctl net/ipv4/conf/net1/x = 0", "+ rule4 1: from all"}
	if got := changes.Except("sysctl net/ipv4/conf/net1/"); len(got) != 1 || got[0] != changes[1] {
		t.Errorf("Except left %q", got)
	}
}

func TestNamespaceStartsFromTheKernelsOwnDefaults(t *testing.T) {
	n := MustNamespace(t, "fresh")
	for _, key := range []string{"all/rp_filter", "default/rp_filter", "all/arp_ignore", "default/arp_announce"} {
		if v, err := n.Sysctl("ipv4/conf/" + key); v != "0" || err != nil {
			t.Errorf("%s = %q, %v", key, v, err)
		}
	}
}

func TestOutcomeOfAPlugin(t *testing.T) {
	tools, err := FindTools()
	if err != nil {
		t.Fatal(err)
	}
	dir, _, _ := strings.Cut(tools.Path, ":")
	call := Call{Plugin: dir + "/static", Command: "VERSION", Config: Object{"cniVersion": "1.0.0"}}
	o, err := call.Run(context.Background())
	if err != nil || o.Err() != nil || !strings.Contains(o.Stdout, "supportedVersions") {
		t.Errorf("VERSION: %+v, %v", o, err)
	}
	call.Command = "ADD"
	o, err = call.Run(context.Background())
	if err != nil || o.Exit == 0 || !strings.Contains(o.Err().Error(), `"code"`) {
		t.Errorf("ADD without anything: %+v, %v; want the CNI error on stdout", o, err)
	}
}
