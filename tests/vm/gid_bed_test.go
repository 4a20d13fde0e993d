//go:build vm

package vm

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/rdma"
	"github.com/railtune/railtune/pkg/testbed"
)

// railAddrs are the addresses of a rail in these tests, one of each family. The second
// one goes through duplicate address detection.
var railAddrs = []string{"10.61.1.11/24", "fd5a:1::11/64"}

const symptom = "ibv_modify_qp failed with 61 No data available"

var softMade atomic.Int64

// softRoCE puts a Soft-RoCE device on a link, in the namespace of the link, and removes
// it at the end of the test, if the link did not take it along.
func softRoCE(t *testing.T, where *testbed.Namespace, link string) string {
	t.Helper()
	name := fmt.Sprintf("rxe%d", softMade.Add(1))
	run(t, where, "rdma link add "+name+" type rxe netdev "+link)
	t.Cleanup(func() { _, _ = try(context.Background(), where, "rdma link del "+name) })
	return name
}

// cable makes a link with addresses in a namespace; its other end is in one of its own.
func cable(t *testing.T, where *testbed.Namespace, link string, addrs ...string) {
	t.Helper()
	far := namespace(t, "far")
	run(t, where, "ip link add "+link+" type veth peer name far0 netns "+far.Name)
	run(t, far, "ip link set far0 up")
	run(t, where, "ip link set "+link+" up")
	for _, a := range addrs {
		run(t, where, "ip addr add "+a+" dev "+link)
	}
}

// tune runs railtune for net1 of a pod, as a runtime that is in the namespace host would.
func tune(t *testing.T, host, pod *testbed.Namespace, verb string, verify object) testbed.Outcome {
	t.Helper()
	out, err := call(t.Context(), host, pod, verb, verify)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func call(ctx context.Context, host, pod *testbed.Namespace, verb string, verify object) (testbed.Outcome, error) {
	plugin, err := testbed.FindRailtune()
	if err != nil {
		return testbed.Outcome{}, err
	}
	var ips []object
	for _, a := range railAddrs {
		ips = append(ips, object{"interface": 0, "address": a})
	}
	return testbed.Call{
		Plugin: plugin, Command: verb, ContainerID: pod.Name, NetNS: pod.Path(), IfName: "net1", Host: host,
		Config: object{
			"cniVersion": "1.0.0", "name": "rail", "type": "railtune", "verify": verify,
			"prevResult": object{"cniVersion": "1.0.0", "ips": ips, "interfaces": []object{{"name": "net1", "sandbox": pod.Path()}}},
		},
	}.Run(ctx)
}

// mustPass asserts that a verb succeeded without a word about RDMA.
func mustPass(t *testing.T, out testbed.Outcome) {
	t.Helper()
	if out.Exit != 0 || strings.Contains(out.Stderr, "RDMA") {
		t.Fatalf("exit %d: %s%s", out.Exit, out.Stdout, out.Stderr)
	}
}

// mustSay asserts that text holds all of want.
func mustSay(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("lacks %q: %s", w, text)
		}
	}
}

// ports returns what pkg/rdma finds for net1 without a way to the link below it, and
// what lacks a GID there.
func ports(t *testing.T, pod *testbed.Namespace) (found []rdma.Port, absent []rdma.Absent) {
	t.Helper()
	err := pod.Do(func() error {
		rail, err := linkState("net1")
		if err != nil {
			return err
		}
		l, err := rdma.ForLink(rail, nil)
		if err != nil {
			return err
		}
		defer l.Close()
		found = l.Ports
		var addrs []netip.Addr
		for _, a := range railAddrs {
			addrs = append(addrs, netip.MustParsePrefix(a).Addr())
		}
		absent, err = l.Missing(addrs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, absent
}

// linkState is a link of the calling thread's namespace.
func linkState(name string) (*netstate.Link, error) {
	k, err := kernel.Open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	links, err := k.Links()
	for i := range links {
		if links[i].Name == name {
			return &links[i], nil
		}
	}
	return nil, fmt.Errorf("no link %s: %v", name, err)
}

// restored asserts that a pod is as it was, but for what an IPv6 address becomes by
// itself and settings that DEL leaves.
func restored(t *testing.T, pod *testbed.Namespace, before testbed.Snapshot) {
	t.Helper()
	for _, c := range testbed.Diff(before, testbed.MustSnapshot(t, pod)) {
		if strings.Contains(c, "proto 72") || strings.Contains(c, "rule") {
			t.Errorf("left: %s", c)
		}
	}
}

// tableSize is the size of a Soft-RoCE GID table (drivers/infiniband/sw/rxe/rxe_param.h,
// RXE_PORT_GID_TBL_LEN).
const tableSize = 1024

// fillTable gives a link more addresses than its GID table has entries. What it returns
// takes most of them away again.
func fillTable(t *testing.T, where *testbed.Namespace, link string) (empty func()) {
	t.Helper()
	var add, del strings.Builder
	for i := range tableSize {
		a := fmt.Sprintf("10.99.%d.%d/32 dev %s\n", i/250, i%250, link)
		add.WriteString("addr add " + a)
		del.WriteString("addr del " + a)
	}
	batch := func(lines string) {
		file := filepath.Join(t.TempDir(), "batch")
		if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, where, "ip -batch "+file)
	}
	batch(add.String())
	// The kernel makes them later: the last entry is the last to come.
	await(t, "the GID table to be full", func() bool {
		_, err := try(t.Context(), where, "rdma link")
		return err == nil && entry(t, tableSize-1) != ""
	})
	return func() { batch(del.String()) }
}

// entry returns a GID of the newest Soft-RoCE device, "" where there is none.
func entry(t *testing.T, index int) string {
	t.Helper()
	v, err := rdma.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for g, err := range v.GIDs(rdma.Port{Device: fmt.Sprintf("rxe%d", softMade.Load()), Number: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if g.Index == index {
			return g.Addr.String()
		}
	}
	return ""
}

// await waits for what the kernel does without telling anyone.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// exclusive switches RDMA to exclusive mode for the time of a test. The kernel does that
// only while there is one network namespace, and namespaces go some time after they were
// deleted.
func exclusive(t *testing.T) {
	t.Helper()
	set := func(mode string) {
		await(t, "RDMA netns mode "+mode, func() bool {
			_, err := try(context.Background(), nil, "rdma system set netns "+mode)
			return err == nil
		})
	}
	t.Cleanup(func() { set("shared") })
	defer func() {
		if t.Failed() {
			t.Logf("in other namespaces than the first:\n%s", strangers())
		}
	}()
	set("exclusive")
}

// strangers are the threads that keep a namespace, and what the kernel says of links it
// waits for.
func strangers() string {
	var b strings.Builder
	first, _ := os.Readlink("/proc/1/ns/net")
	spaces, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/net")
	for _, path := range spaces {
		name, err := os.Readlink(path)
		if task := filepath.Dir(filepath.Dir(path)); err == nil && name != first {
			comm, _ := os.ReadFile(task + "/comm")
			fmt.Fprintf(&b, "%s %s %s\n", task, name, strings.TrimSpace(string(comm)))
		}
	}
	said, _ := try(context.Background(), nil, "dmesg")
	for line := range strings.Lines(said) {
		if strings.Contains(line, "waiting for") || strings.Contains(line, "blocked for") {
			b.WriteString(line)
		}
	}
	return b.String()
}
