package firewall_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/firewall"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

var families = []policy.Family{policy.IPv4, policy.IPv6}

// wanted are the prefixes of a rail, by family.
var wanted = map[policy.Family][]netip.Prefix{
	policy.IPv4: prefixes("10.61.1.0/24 10.61.0.0/16"),
	policy.IPv6: prefixes("fd5a:1::/64 fd5a::/16"),
}

func prefixes(text string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range strings.Fields(text) {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// steps is a journal.
type steps []func() error

func (s *steps) did(_ string, back func() error) { *s = append(*s, back) }

func (s *steps) undo() error {
	var errs []error
	for _, back := range slices.Backward(*s) {
		errs = append(errs, back())
	}
	return errors.Join(errs...)
}

// accept makes a rail's chains in both families and returns how many steps that took.
func accept(n *testbed.Namespace, ifname string, from map[policy.Family][]netip.Prefix) (done steps, err error) {
	err = n.Do(func() error {
		for _, f := range families {
			if err := (firewall.IPTables{}).Accept(ifname, f, from[f], done.did); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

func mustAccept(t *testing.T, n *testbed.Namespace, ifname string) steps {
	t.Helper()
	done, err := accept(n, ifname, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func remove(n *testbed.Namespace, ifname string) error {
	return n.Do(func() error { return firewall.IPTables{}.Remove(ifname) })
}

func mustRun(t *testing.T, n *testbed.Namespace, line string) string {
	t.Helper()
	words := strings.Fields(line)
	out, err := n.Run(t.Context(), words[0], words[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// state is all that iptables keeps in a namespace.
func state(t *testing.T, n *testbed.Namespace) string {
	t.Helper()
	return mustRun(t, n, "iptables -S") + mustRun(t, n, "ip6tables -S")
}

// pair makes a pod whose rail net1 is connected to a peer, and drops all that comes in.
func pair(t *testing.T) (pod, peer *testbed.Namespace) {
	t.Helper()
	pod, peer = testbed.MustNamespace(t, "pod"), testbed.MustNamespace(t, "peer")
	mustRun(t, pod, "ip link add net1 type veth peer name net1 netns "+peer.Name)
	mustRun(t, pod, "ip link add net2 type veth peer name net2 netns "+peer.Name)
	for i, n := range []*testbed.Namespace{pod, peer} {
		for _, link := range []string{"net1", "net2"} {
			if err := n.SetSysctl("ipv6/conf/"+link+"/accept_dad", "0"); err != nil {
				t.Fatal(err)
			}
			mustRun(t, n, "ip link set "+link+" up")
		}
		mustRun(t, n, fmt.Sprintf("ip addr add 10.61.1.%d/24 dev net1", i+1))
		mustRun(t, n, fmt.Sprintf("ip addr add fd5a:1::%d/64 dev net1 nodad", i+1))
		mustRun(t, n, fmt.Sprintf("ip addr add 192.168.7.%d/24 dev net1", i+1))
		mustRun(t, n, fmt.Sprintf("ip addr add 10.61.2.%d/24 dev net2", i+1))
	}
	for _, n := range []*testbed.Namespace{pod, peer} {
		if err := errors.Join(n.Settle(), n.SettleAddresses("net1")); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, pod, "iptables -P INPUT DROP")
	mustRun(t, pod, "ip6tables -P INPUT DROP")
	return pod, peer
}

// answers reports whether the pod answers the peer's echo requests: one, or, where an
// answer is wanted, one of many, as the peer may just be giving up on the neighbour that it
// could not find before. ping itself ends then, whatever time it is given.
func answers(t *testing.T, peer *testbed.Namespace, to string, wanted bool) bool {
	t.Helper()
	tries := 1
	if wanted {
		tries = 20
	}
	for range tries {
		if _, err := peer.Run(t.Context(), "ping", "-W", "1", "-n", "-q", "-c", "1", to); err == nil {
			return true
		}
	}
	return false
}

// TestTraffic: what everything is for. With INPUT closed a rail is deaf, in IPv6 to its
// neighbours' discovery as well; accepted it hears what its prefixes send, and nothing
// else: not other sources, and not the same prefixes on another interface.
func TestTraffic(t *testing.T) {
	t.Parallel()
	pod, peer := pair(t)
	const v4, v6, elsewhere, other = "10.61.1.1", "fd5a:1::1", "192.168.7.1", "10.61.2.1"
	look := func(when string, want map[string]bool) {
		t.Helper()
		for to, ok := range want {
			if got := answers(t, peer, to, ok); got != ok {
				t.Errorf("%s: %s answers: %v, want %v", when, to, got, ok)
			}
		}
	}
	look("closed", map[string]bool{v4: false, v6: false})
	mustAccept(t, pod, "net1")
	look("accepted", map[string]bool{v4: true, v6: true, elsewhere: false, other: false})
	mustRun(t, pod, "iptables -P INPUT ACCEPT")
	mustRun(t, pod, "iptables -A INPUT -i net1 -j DROP")
	look("dropped by a later rule", map[string]bool{v4: true, elsewhere: false})
	if err := remove(pod, "net1"); err != nil {
		t.Fatal(err)
	}
	look("removed", map[string]bool{v4: false, v6: false})
}

// TestAcceptAgain: the second time there is nothing to do, and undone there is nothing.
func TestAcceptAgain(t *testing.T) {
	t.Parallel()
	pod := testbed.MustNamespace(t, "pod")
	mustRun(t, pod, "iptables -A INPUT -i lo -j ACCEPT")
	mustRun(t, pod, "ip6tables -A INPUT -i lo -j ACCEPT")
	before := state(t, pod)
	done := mustAccept(t, pod, "net1")
	accepted := state(t, pod)
	for _, want := range []string{
		"-A INPUT -i net1 -m comment --comment railtune -j RAILTUNE-net1\n-A INPUT -i lo -j ACCEPT",
		"-A RAILTUNE-net1 -s 10.61.0.0/16 -m comment --comment railtune -j ACCEPT",
		"-A RAILTUNE-net1 -s fe80::/10 -p ipv6-icmp",
	} {
		if !strings.Contains(accepted, want) {
			t.Errorf("there is no %q in\n%s", want, accepted)
		}
	}
	if again := mustAccept(t, pod, "net1"); len(again) > 0 || state(t, pod) != accepted {
		t.Errorf("again: %d steps:\n%s", len(again), state(t, pod))
	}
	if err := pod.Do(done.undo); err != nil || state(t, pod) != before {
		t.Errorf("undone (%v):\n%s", err, state(t, pod))
	}
}

// TestAcceptOther: another configuration's prefixes replace the chain's, and undone they
// are back.
func TestAcceptOther(t *testing.T) {
	t.Parallel()
	pod := testbed.MustNamespace(t, "pod")
	mustAccept(t, pod, "net1")
	before := state(t, pod)
	done, err := accept(pod, "net1", map[policy.Family][]netip.Prefix{
		policy.IPv4: prefixes("10.61.1.0/24 10.99.0.0/16"), policy.IPv6: prefixes("fd5b::/16"),
	})
	if err != nil {
		t.Fatal(err)
	}
	now := state(t, pod)
	if strings.Contains(now, "10.61.0.0/16") || strings.Contains(now, "fd5a") || !strings.Contains(now, "10.99.0.0/16") || !strings.Contains(now, "fd5b::/16") {
		t.Errorf("it holds\n%s", now)
	}
	if strings.Count(now, "-j RAILTUNE-net1") != 2 {
		t.Errorf("more jumps than one in each family:\n%s", now)
	}
	if err := pod.Do(done.undo); err != nil {
		t.Fatal(err)
	}
	if sorted(state(t, pod)) != sorted(before) {
		t.Errorf("undone:\n%s\nwant\n%s", state(t, pod), before)
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestMissing names what is not there, and takes no offence at what others put in.
func TestMissing(t *testing.T) {
	missing := func(n *testbed.Namespace) (lines []string) {
		t.Helper()
		if err := n.Do(func() error {
			for _, f := range families {
				l, err := firewall.IPTables{}.Missing("net1", f, wanted[f])
				if err != nil {
					return err
				}
				lines = append(lines, l...)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	pod := testbed.MustNamespace(t, "pod")
	if got := missing(pod); len(got) != 4+6 {
		t.Errorf("nothing was made, and missing are\n%s", strings.Join(got, "\n"))
	}
	mustAccept(t, pod, "net1")
	mustRun(t, pod, "iptables -I INPUT 1 -p tcp --dport 22 -j ACCEPT")
	mustRun(t, pod, "iptables -A RAILTUNE-net1 -s 10.98.0.0/16 -j ACCEPT")
	if got := missing(pod); len(got) > 0 {
		t.Errorf("missing after Accept:\n%s", strings.Join(got, "\n"))
	}
	for _, c := range []struct{ line, want string }{
		{"iptables -D RAILTUNE-net1 -s 10.61.0.0/16 -m comment --comment railtune -j ACCEPT", "iptables -t filter -A RAILTUNE-net1 -s 10.61.0.0/16 -j ACCEPT"},
		{"iptables -D INPUT -i net1 -m comment --comment railtune -j RAILTUNE-net1", "iptables -t filter -I INPUT 1 -i net1 -j RAILTUNE-net1"},
		{"ip6tables -F RAILTUNE-net1", "ip6tables -t filter -A RAILTUNE-net1 -s fe80::/10 -p ipv6-icmp -j ACCEPT"},
	} {
		mustRun(t, pod, c.line)
		if got := missing(pod); !slices.Contains(got, c.want) {
			t.Errorf("%s: missing are\n%s", c.line, strings.Join(got, "\n"))
		}
	}
}

// TestRemove takes the chains out of both backends, and nothing else. The second jump is
// what two ADDs at once could make.
func TestRemove(t *testing.T) {
	t.Parallel()
	pod := testbed.MustNamespace(t, "pod")
	mustAccept(t, pod, "net2")
	for _, tool := range []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"} {
		mustRun(t, pod, tool+" -A INPUT -i lo -j ACCEPT")
	}
	all := func() string {
		return state(t, pod) + mustRun(t, pod, "iptables-legacy -S") + mustRun(t, pod, "ip6tables-legacy -S")
	}
	before := all()
	for _, tool := range []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"} {
		mustRun(t, pod, tool+" -N RAILTUNE-net3") // of an ADD that was killed here
		mustRun(t, pod, tool+" -N RAILTUNE-net1")
		mustRun(t, pod, tool+" -A RAILTUNE-net1 -j ACCEPT")
		mustRun(t, pod, tool+" -I INPUT 1 -i net1 -j RAILTUNE-net1")
		mustRun(t, pod, tool+" -I INPUT 1 -i net1 -m comment --comment railtune -j RAILTUNE-net1")
	}
	if got := chains(t, pod, "net1"); len(got) != 4 {
		t.Errorf("found %q, want all four", got)
	}
	for range 2 {
		for _, ifname := range []string{"net1", "net3"} {
			if err := remove(pod, ifname); err != nil {
				t.Fatal(err)
			}
		}
		if now := all(); now != before {
			t.Fatalf("left:\n%s\nwant:\n%s", now, before)
		}
	}
}
