package attach_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
	}
	testbed.Main(m)
}

// conf is a rail with a bit of everything: both families, supernets in both, settings
// in both trees.
const conf = `{"cniVersion":"1.0.0","name":"rail","type":"railtune",
 "sysctl":{"net.ipv4.conf.IFNAME.accept_local":"1","net.ipv4.neigh.IFNAME.delay_first_probe_time":7},
 "supernets":[{"dst":"10.61.0.0/16"},{"dst":"fd5a::/16"}],"announce":false,"verify":{"mode":"off"}}`

const prev = `{"cniVersion":"1.0.0","interfaces":[{"name":"net1","sandbox":"/x"}],"ips":[
 {"interface":0,"address":"10.61.1.11/24","gateway":"10.61.1.254"},
 {"interface":0,"address":"fd5a:1::11/64","gateway":"fd5a:1::1"}]}`

// newPod makes a namespace with an eth0 and an untuned net1.
func newPod(t *testing.T) *testbed.Namespace {
	t.Helper()
	pod := testbed.MustNamespace(t, "pod")
	for _, line := range []string{
		"link add eth0 type veth peer name eth0p",
		// Link-local addresses would come and change state whenever they like.
		"link set eth0 addrgenmode none", "link set eth0p addrgenmode none",
		"link set eth0 up", "link set eth0p up",
		"addr add 172.20.0.5/32 dev eth0",
		"route add 169.254.1.1 dev eth0",
		"route add default via 169.254.1.1 dev eth0",
		"link add net1 type veth peer name net1p",
		"link set net1 addrgenmode none", "link set net1p addrgenmode none",
		"link set net1 up", "link set net1p up",
		"addr add 10.61.1.11/24 dev net1",
		"addr add fd5a:1::11/64 dev net1 nodad",
	} {
		mustRun(t, pod, strings.Fields(line)...)
	}
	mustSettle(t, pod, "fd5a:1::11")
	return pod
}

// mustSettle waits until the links and the IPv6 address of net1 are final.
func mustSettle(t *testing.T, pod *testbed.Namespace, addr string) {
	t.Helper()
	if err := errors.Join(pod.Settle(), pod.SettleAddresses("net1", netip.MustParseAddr(addr))); err != nil {
		t.Fatal(err)
	}
}

func mustRun(t *testing.T, n *testbed.Namespace, args ...string) {
	t.Helper()
	if _, err := n.Run(t.Context(), "ip", args...); err != nil {
		t.Fatal(err)
	}
}

// rail opens the rail net1 in the calling thread's namespace.
func openRail(netns string, log attach.Log) (*attach.Rail, *kernel.Netlink, error) {
	k, err := kernel.Open()
	return &attach.Rail{IfName: "net1", NetNS: netns, Kernel: k, Files: sysctl.Proc{}, Log: log}, k, err
}

// with calls f with the rail in the pod's namespace.
func with(t *testing.T, pod *testbed.Namespace, f func(r *attach.Rail) error) error {
	t.Helper()
	return pod.Do(func() error {
		r, k, err := openRail(pod.Path(), testLog{t})
		if err != nil {
			return err
		}
		defer k.Close()
		return f(r)
	})
}

func add(r *attach.Rail) error { return addAs(r, conf) }

// addAs adds the rail with another configuration.
func addAs(r *attach.Rail, conf string) error { return addAfter(r, conf, prev) }

// addAfter is addAs with another prevResult.
func addAfter(r *attach.Rail, conf, prev string) error {
	cfg, err := config.Parse([]byte(conf))
	if err != nil {
		return err
	}
	res, err := prevresult.Parse(json.RawMessage(prev), cfg.CNIVersion, nil)
	if err != nil {
		return err
	}
	_, err = r.Add(context.Background(), cfg, res)
	return err
}

func del(r *attach.Rail) error { return r.Del() }

// mustRestore deletes the rail's rules and routes, puts its settings back, and asserts
// that nothing else is different from before.
func mustRestore(t *testing.T, pod *testbed.Namespace, before testbed.Snapshot) {
	t.Helper()
	if err := with(t, pod, del); err != nil {
		t.Fatalf("DEL: %v", err)
	}
	changes := testbed.Diff(before, testbed.MustSnapshot(t, pod))
	own := []string{"sysctl net/ipv4/conf/net1/", "sysctl net/ipv4/neigh/net1/", "sysctl net/ipv6/conf/net1/", "sysctl net/ipv6/neigh/net1/"}
	if left := changes.Except(own...); len(left) > 0 {
		t.Fatalf("DEL left:\n%s", left)
	}
	for _, c := range changes {
		if line, ok := strings.CutPrefix(c, "- sysctl net/"); ok {
			key, value, _ := strings.Cut(line, " = ")
			if err := pod.SetSysctl(key, value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Warnf(format string, args ...any)  { l.t.Logf("warning: "+format, args...) }
func (l testLog) Debugf(format string, args ...any) { l.t.Logf("debug: "+format, args...) }

// stderrLog is for the processes that are killed.
type stderrLog struct{}

func (stderrLog) Warnf(format string, args ...any)  { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (stderrLog) Debugf(format string, args ...any) {}

// containsMark reports whether a snapshot's line is about an object of railtune's.
func containsMark(line string) bool { return strings.Contains(line, "proto 72") }
