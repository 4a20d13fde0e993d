//go:build vm

package vm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
	"github.com/railtune/railtune/tests/promise"
)

// attached is a rail that a chain ending in railtune has attached.
type attached struct {
	*chain
	addr  netip.Prefix // the one that is asserted about
	entry object       // railtune's of the chain
	prev  object       // what the plugins before it returned
	said  string       // all that cnitool printed at ADD
}

// rail is the network of one rail: an interface plugin with static addresses, of which the
// first is asserted about, then the chain, which ends in railtune. Addresses in the lab's
// subnets have its gateways.
func rail(t *testing.T, node, pod *testbed.Namespace, ifName string, plugin object, chain []object, addresses ...string) *attached {
	t.Helper()
	first := maps.Clone(plugin)
	a := &attached{entry: chain[len(chain)-1]}
	if len(addresses) > 0 {
		a.addr = netip.MustParsePrefix(addresses[0])
		first["ipam"] = object{"type": "static", "addresses": withGateways(addresses)}
	}
	a.chain = newChain(t, node, pod, ifName, append([]object{first}, chain...)...)
	return a
}

func withGateways(addresses []string) (list []object) {
	for _, a := range addresses {
		o := object{"address": a}
		for _, gw := range []string{gateway4, gateway6} {
			if netip.MustParsePrefix(a).Contains(netip.MustParseAddr(gw)) {
				o["gateway"] = gw
			}
		}
		list = append(list, o)
	}
	return list
}

// with is a chain of railtune alone, with these fields besides a timeout that suits an
// emulated machine.
func with(fields object) []object {
	e := object{"type": "railtune", "verify": object{"timeout": "5s"}}
	maps.Copy(e, fields)
	return []object{e}
}

// add attaches the rail through cnitool. Nothing deletes it but the end of its
// namespaces: a process of the chain takes a while to start on an emulated machine.
func (a *attached) add(t *testing.T) *attached {
	t.Helper()
	out, err := a.call(t, "add")
	if err != nil {
		t.Fatalf("cnitool add %s in %s: %v: %s", a.ifName, a.pod.Name, err, out)
	}
	a.said = out
	a.learn(t, out)
	return a
}

// learn takes prevResult from what cnitool printed, warnings before it.
func (a *attached) learn(t *testing.T, said string) {
	t.Helper()
	at := strings.Index("\n"+said, "\n{")
	if at < 0 {
		t.Fatalf("cnitool printed no result: %s", said)
	}
	if err := json.NewDecoder(strings.NewReader(said[at:])).Decode(&a.prev); err != nil {
		t.Fatalf("%v in %s", err, said)
	}
	delete(a.prev, "routes") // these IPAMs give none: they are railtune's
}

// alone calls railtune by itself, from a namespace of the plugins' choosing.
func (a *attached) alone(t *testing.T, host *testbed.Namespace, verb string) testbed.Outcome {
	t.Helper()
	config := object{"cniVersion": "1.1.0", "name": a.ifName}
	maps.Copy(config, a.entry)
	if verb != "DEL" {
		config["prevResult"] = a.prev
	}
	o, err := testbed.Call{
		Plugin: testbed.MustRailtune(t), Command: verb, ContainerID: "alone", NetNS: a.pod.Path(), IfName: a.ifName,
		Config: config, Host: host,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// again calls railtune's verb, which has to succeed, and returns its warnings.
func (a *attached) again(t *testing.T, verb string) (warnings string) {
	t.Helper()
	o := a.alone(t, a.node, verb)
	if err := o.Err(); err != nil {
		t.Fatalf("%s of %s in %s: %v", verb, a.ifName, a.pod.Name, err)
	}
	if verb != "ADD" {
		if o.Stdout != "" {
			t.Errorf("%s of %s printed %q", verb, a.ifName, o.Stdout)
		}
		return o.Stderr
	}
	var result object
	if err := json.Unmarshal([]byte(o.Stdout), &result); err != nil { // I1: one result and nothing else
		t.Fatalf("ADD of %s printed %q: %v", a.ifName, o.Stdout, err)
	}
	delete(result, "routes")
	if got, want := fmt.Sprint(result), fmt.Sprint(a.prev); got != want {
		t.Errorf("I1: prevResult of %s became\n%s, not\n%s", a.ifName, got, want)
	}
	return o.Stderr
}

// mustHold puts all rails of a pod through what holds in every case (I1 to I8 of the
// field cases), by calls of railtune alone: those of the plugins before it change more.
// near is an address on the link of all of them.
func mustHold(t *testing.T, near string, rails ...*attached) {
	t.Helper()
	pod := rails[0].pod
	mustKeep(t, near, rails...)
	attached := testbed.MustSnapshot(t, pod)
	for _, r := range rails {
		r.again(t, "DEL")
	}
	rails[0].again(t, "DEL")
	if err := promise.Gone(t.Context(), pod); err != nil {
		t.Errorf("I6: %v", err)
	}
	bare := testbed.MustSnapshot(t, pod)
	var settings []string
	for _, r := range slices.Backward(rails) {
		// Only now: an untuned rail would make the others' ADD fail.
		set(t, pod, "ipv4/conf/"+r.ifName+"/arp_ignore", "0")
		set(t, pod, "ipv4/conf/"+r.ifName+"/arp_announce", "0")
		r.again(t, "ADD")
		settings = append(settings, "sysctl net/ipv4/conf/"+r.ifName+"/", "sysctl net/ipv6/conf/"+r.ifName+"/")
	}
	after := testbed.MustSnapshot(t, pod)
	for _, c := range testbed.Diff(bare, after).Except(settings...) {
		if !strings.Contains(c, "proto 72") {
			t.Errorf("I2, I3: ADD changed what is not its own: %s", c)
		}
	}
	// Rules of one priority stand in the order in which they were made.
	if d := testbed.Diff(inOrder(attached), inOrder(after)); len(d) > 0 {
		t.Errorf("I8: attached in another order, the pod is another:\n%s", d)
	}
	rails[0].again(t, "ADD")
	rails[0].again(t, "CHECK")
	mustBe(t, pod, after, "I5, I7: a second ADD and CHECK changed the pod")
}

// mustKeep asserts the promise to each of the rails.
func mustKeep(t *testing.T, near string, rails ...*attached) {
	t.Helper()
	for _, r := range rails {
		to := near
		if r.addr.Addr().Is6() {
			to = gateway6
		}
		if err := promise.Kept(t.Context(), r.pod, promise.Rail{Name: r.ifName, Addr: r.addr}, false, to); err != nil {
			t.Error(err)
		}
	}
}

func inOrder(s testbed.Snapshot) testbed.Snapshot {
	lines := slices.Clone(s.Lines)
	slices.Sort(lines)
	return testbed.Snapshot{Lines: lines}
}

// mustBe compares a namespace with an earlier snapshot.
func mustBe(t *testing.T, n *testbed.Namespace, before testbed.Snapshot, what string) {
	t.Helper()
	if d := testbed.Diff(before, testbed.MustSnapshot(t, n)); len(d) > 0 {
		t.Errorf("%s:\n%s", what, d)
	}
}

// mustFind asserts that a text holds each of want.
func mustFind(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in: %s", w, text)
		}
	}
}

// mustRefuse asserts that railtune's ADD fails with one CNI error of the code (I4), whose
// message holds each of want, and leaves the pod as it was.
func (a *attached) mustRefuse(t *testing.T, code int, want ...string) {
	t.Helper()
	before := testbed.MustSnapshot(t, a.pod)
	o := a.alone(t, a.node, "ADD")
	var e struct {
		Code         int
		Msg, Details string
	}
	if err := json.Unmarshal([]byte(o.Stdout), &e); o.Exit == 0 || err != nil || e.Code != code {
		t.Fatalf("ADD of %s: exit %d, want error %d (%v): %s%s", a.ifName, o.Exit, code, err, o.Stdout, o.Stderr)
	}
	mustFind(t, e.Msg+e.Details, want...)
	mustBe(t, a.pod, before, "I4: a failed ADD changed the pod")
}

// mustNotLeave asserts that a packet from the rail's address goes nowhere, rather than
// by another interface.
func (a *attached) mustNotLeave(t *testing.T, to string) {
	t.Helper()
	out, err := try(t.Context(), a.pod, "ip route get "+to+" from "+a.addr.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("to %s from %s in %s: %q, want unreachable (%v)", to, a.addr.Addr(), a.pod.Name, strings.TrimSpace(out), err)
	}
}
