//go:build vm

package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// rocePod is a pod whose rails are virtual functions with a Soft-RoCE device each.
type rocePod struct {
	*testbed.Namespace
	role      string // A or B
	addresses []string
	macs      []string
	devices   []string // of RDMA
	gids      []string // the index of the rail's address in its device's table
	chains    []*chain
}

func ifName(rail int) string { return fmt.Sprintf("net%d", rail+1) }

// roceBed attaches a function of each NIC to each of two pods, as chains do: pod by pod,
// rail by rail, the interface plugin and what follows it. All addresses are in one
// subnet.
func roceBed(t *testing.T, nics []functions, ph phase) [2]*rocePod {
	t.Helper()
	var pods [2]*rocePod
	for k := range pods {
		pods[k] = &rocePod{Namespace: namespace(t, "pod"), role: string(rune('A' + k))}
	}
	managed(t, pods[0].Namespace, pods[1].Namespace)
	for k, p := range pods {
		if ph.stray {
			p.strayRules(t)
		}
		for i, nic := range nics {
			address := fmt.Sprintf("10.71.%d.%d", 10*(k+1), i+1)
			c := newChain(t, nil, p.Namespace, ifName(i), append([]object{hostDevice(nic[k], address+"/16")}, ph.follow...)...)
			c.must(t, "add")
			p.chains = append(p.chains, c)
			p.addresses = append(p.addresses, address)
			p.macs = append(p.macs, macOf(t, p.Namespace, ifName(i)))
			p.devices = append(p.devices, softRoCE(t, p.Namespace, ifName(i)))
			// A wrong entry is to stay until it has been looked at: no probes from the
			// kernel that could mend it meanwhile.
			set(t, p.Namespace, "ipv4/neigh/"+ifName(i)+"/delay_first_probe_time", "300")
		}
	}
	for _, p := range pods {
		if ph.stray {
			p.strayRoutes(t)
		}
		for i := range nics {
			p.chains[i].must(t, "check")
			p.gids = append(p.gids, gidIndex(t, p.devices[i], p.addresses[i]))
		}
	}
	return pods
}

// strayRules are what is left in a pod of a host's policy rules, one for each rail,
// when the device they were for is not there: each catches everything.
func (p *rocePod) strayRules(t *testing.T) {
	t.Helper()
	for _, table := range []int{3, 1, 4, 2} {
		run(t, p.Namespace, fmt.Sprintf("ip rule add from all lookup %d", 100+table))
	}
}

// strayRoutes fill the tables of strayRules: for each rail the subnet.
func (p *rocePod) strayRoutes(t *testing.T) {
	t.Helper()
	for i := range p.macs {
		run(t, p.Namespace, fmt.Sprintf("ip route add 10.71.0.0/16 dev %s table %d", ifName(i), 101+i))
	}
}

// gidIndex waits until the kernel has put an IPv4 address into a device's GID table,
// which it does from a work queue, and returns where.
func gidIndex(t *testing.T, device, address string) string {
	t.Helper()
	var a, b, c, d byte
	if _, err := fmt.Sscanf(address, "%d.%d.%d.%d", &a, &b, &c, &d); err != nil {
		t.Fatal(err)
	}
	gid := fmt.Sprintf("0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x", a, b, c, d)
	dir, index := "/sys/class/infiniband/"+device+"/ports/1/gids/", ""
	await(t, "GID "+gid+" of "+device, func() bool {
		for i := range 16 {
			at := fmt.Sprint(i)
			if found, err := os.ReadFile(dir + at); err == nil && strings.TrimSpace(string(found)) == gid {
				index = at
			}
		}
		return index != ""
	})
	return index
}

// path is a rail in one direction.
type path struct {
	from, to *rocePod
	rail     int
}

func (p path) String() string {
	return fmt.Sprintf("%s.%s→%s.%[2]s", p.from.role, ifName(p.rail), p.to.role)
}

// neighbour is the MAC the sender has for the receiver's rail, or "".
func (p path) neighbour(t *testing.T) string {
	t.Helper()
	var entries []struct{ LLAddr string }
	out := run(t, p.from.Namespace, "ip -j neigh show to "+p.to.addresses[p.rail]+" dev "+ifName(p.rail))
	if err := json.Unmarshal([]byte(out), &entries); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(entries) == 0 {
		return ""
	}
	return entries[0].LLAddr
}

// learn lets the sender ask for the receiver's MAC. Under flux the echo may never come
// back, and is not waited for.
func (p path) learn(t *testing.T) {
	t.Helper()
	line := fmt.Sprintf("ping -q -c 1 -W 0.1 -I %s %s", ifName(p.rail), p.to.addresses[p.rail])
	_, _ = try(t.Context(), p.from.Namespace, line)
	await(t, p.String()+" to have a neighbour entry", func() bool { return p.neighbour(t) != "" })
}

// pair is the command line of a server, in the receiving pod, and of a client, in the
// sending one.
type pair struct {
	server, client string
	listens        func() bool
	longest        time.Duration // for the client, from when the server listens
}

// passes runs a pair. Its error is nil when both ended well.
func (p path) passes(ctx context.Context, run pair) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said strings.Builder
	args := strings.Fields(run.server)
	server := exec.CommandContext(ctx, args[0], args[1:]...)
	server.Stdout, server.Stderr = &said, &said
	if err := p.to.Start(server); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for end := time.Now().Add(patience); !run.listens(); {
		select {
		case err := <-ended:
			return fmt.Errorf("%w: the server ended before the client began: %v: %s", errServer, err, said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %s does not listen after %v", errServer, run.server, patience)
		}
	}
	limited, done := context.WithTimeout(ctx, run.longest)
	defer done()
	if out, err := try(limited, p.from.Namespace, run.client); err != nil {
		return fmt.Errorf("%w: %s", err, lastWords(out))
	}
	defer time.AfterFunc(patience, cancel).Stop()
	return <-ended // it has nothing left to do
}

// errServer marks what no tuning could have made pass or fail.
var errServer = errors.New("the test's own server")

// lastWords are the lines of a program's output that are about an error.
func lastWords(out string) string {
	lines := slices.DeleteFunc(strings.Split(out, "\n"), func(l string) bool {
		l = strings.ToLower(l)
		return !strings.Contains(l, "error") && !strings.Contains(l, "fail") && !strings.Contains(l, "couldn't")
	})
	return strings.Join(lines, "; ")
}

// write4K writes 20 messages of 4 KiB with RDMA from rail to rail.
func (p path) write4K(port int, longest time.Duration) pair {
	line := func(pod *rocePod) string {
		return fmt.Sprintf("ib_write_bw -d %s -x %s -F -s 4096 -n 20 -p %d", pod.devices[p.rail], pod.gids[p.rail], port)
	}
	management := "10.72.0.1"
	if p.to.role == "B" {
		management = "10.72.0.2"
	}
	return pair{line(p.to), line(p.from) + " " + management, func() bool { return p.to.listensTCP(port) }, longest}
}

// rping connects by RDMA-CM from a rail's address to the other's, which asks the kernel
// for the way, and pings once.
func (p path) rping(port int, longest time.Duration) pair {
	line := fmt.Sprintf("rping -C 1 -v -p %d -a %s", port, p.to.addresses[p.rail])
	return pair{line + " -s", line + " -c -I " + p.from.addresses[p.rail], func() bool { return p.to.listensCM(port) }, longest}
}

// listensTCP looks for a listening TCP socket.
func (p *rocePod) listensTCP(port int) bool {
	found := false
	_ = p.Do(func() error {
		for _, table := range []string{"tcp", "tcp6"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + table)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(b)) {
				const listening = "0A"
				f := strings.Fields(line)
				found = found || strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == listening
			}
		}
		return nil
	})
	return found
}

// listensCM looks for a listening identifier of RDMA-CM's.
func (p *rocePod) listensCM(port int) bool {
	out, err := try(context.Background(), p.Namespace, "rdma resource show cm_id")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "state LISTEN") && strings.Contains(line, fmt.Sprintf(":%d ", port)) {
			return err == nil
		}
	}
	return false
}
