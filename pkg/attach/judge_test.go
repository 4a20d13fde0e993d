package attach_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/testbed"
)

// fakeWire is a wire on which one thing was found.
type fakeWire struct {
	attach.Wire
	found     neigh.Result
	announced int
	solicited int
}

func (f *fakeWire) Prove(context.Context, neigh.Request) (neigh.Report, error) {
	return neigh.Report{Results: []neigh.Result{f.found}}, nil
}

func (f *fakeWire) Announce(neigh.Link, []netip.Addr) error { f.announced++; return nil }
func (f *fakeWire) SolicitRouter(neigh.Link) error          { f.solicited++; return nil }

// TestJudge is the table of what fails an ADD, by role, verdict and configuration. A
// failed one has changed nothing and announced nothing.
func TestJudge(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	const (
		fine  = cnierr.Code(0)
		fails = cnierr.Neighbour
	)
	busy := neigh.Result{Role: neigh.Own, Verdict: neigh.Skipped, Cause: neigh.ErrBusy}
	for _, c := range []struct {
		name   string
		verify string
		found  neigh.Result
		want   cnierr.Code
	}{
		{"own duplicate", `{}`, neigh.Result{Role: neigh.Own, Verdict: neigh.Duplicate}, fails},
		{"own duplicate, warn", `{"mode":"warn"}`, neigh.Result{Role: neigh.Own, Verdict: neigh.Duplicate}, fine},
		{"own duplicate, off", `{"mode":"off"}`, neigh.Result{Role: neigh.Own, Verdict: neigh.Duplicate}, fine},
		{"own flux, peers only warn", `{"peerMode":"warn"}`, neigh.Result{Role: neigh.Own, Verdict: neigh.Flux}, fails},
		{"a sibling's trouble", `{}`, neigh.Result{Role: neigh.Sibling, Verdict: neigh.Flux}, fine},
		{"gateway flux", `{}`, neigh.Result{Role: neigh.Gateway, Verdict: neigh.Flux}, fails},
		{"gateway silent", `{}`, neigh.Result{Role: neigh.Gateway, Verdict: neigh.Silent}, fine},
		{"gateway silent, reply required", `{"requireReply":true}`, neigh.Result{Role: neigh.Gateway, Verdict: neigh.Silent}, fails},
		{"peer flux", `{}`, neigh.Result{Role: neigh.Peer, Verdict: neigh.Flux}, fine},
		{"peer flux, enforce", `{"peerMode":"enforce"}`, neigh.Result{Role: neigh.Peer, Verdict: neigh.Flux}, fails},
		{"peer flux, enforce, own only warn", `{"mode":"warn","peerMode":"enforce"}`, neigh.Result{Role: neigh.Peer, Verdict: neigh.Flux}, fails},
		{"peer proxied, enforce", `{"peerMode":"enforce"}`, neigh.Result{Role: neigh.Peer, Verdict: neigh.Proxied}, fine},
		{"peer silent", `{"peerMode":"enforce"}`, neigh.Result{Role: neigh.Peer, Verdict: neigh.Silent}, fine},
		{"peer silent, reply required", `{"requireReply":true}`, neigh.Result{Role: neigh.Peer, Verdict: neigh.Silent}, fails},
		{"could not ask, full queue", `{}`, busy, cnierr.TryAgain},
		{"could not ask, full queue, warn", `{"mode":"warn"}`, busy, fine},
		{"could not ask, ipvlan", `{}`, neigh.Result{Role: neigh.Own, Verdict: neigh.Skipped}, fine},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.found.Addr, c.found.Message = netip.MustParseAddr("10.61.1.11"), "what was found"
			c.found.Answers = []neigh.Answer{{MAC: hwaddr.MAC{2, 0, 0, 0, 0, 9}, Owner: "net9"}}
			wire := &fakeWire{found: c.found}
			err := addWith(t, pod, wire, c.verify)
			if cnierr.CodeOf(err, 0) != c.want {
				t.Fatalf("got %v, want code %d", err, c.want)
			}
			if err == nil {
				if wire.announced != 1 {
					t.Errorf("announced %d times", wire.announced)
				}
				mustRestore(t, pod, before)
				return
			}
			if e := err.(*cnierr.Error); !strings.Contains(e.Error(), "what was found") || !strings.Contains(e.Details, "02:00:00:00:00:09=net9") {
				t.Errorf("the error lacks the finding or its evidence: %v\n%s", e, e.Details)
			}
			if d := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(d) > 0 || wire.announced != 0 {
				t.Errorf("announced %d times, left:\n%s", wire.announced, d)
			}
		})
	}
}

func addWith(t *testing.T, pod *testbed.Namespace, wire *fakeWire, verify string) error {
	t.Helper()
	return with(t, pod, func(r *attach.Rail) error {
		r.Neighbours = wire
		return addAs(r, `{"cniVersion":"1.0.0","type":"railtune","verify":`+verify+`}`)
	})
}

// TestSolicitsOnce: a rail that starts to accept router advertisements asks for one, and
// does not when it accepted them before.
func TestSolicitsOnce(t *testing.T) {
	pod := newPod(t)
	if err := pod.SetSysctl("ipv6/conf/net1/forwarding", "1"); err != nil {
		t.Fatal(err)
	}
	wire := &fakeWire{found: neigh.Result{Role: neigh.Own, Verdict: neigh.OK}}
	for range 2 {
		if err := addWith(t, pod, wire, `{}`); err != nil {
			t.Fatal(err)
		}
		if wire.solicited != 1 {
			t.Fatalf("solicited %d times", wire.solicited)
		}
	}
}

// TestAcceptsAdvertisementsLater: a rail that lives by router advertisements and does not
// forward will take them when it does, and has no need to ask for one. A rail that takes none
// is left alone, and so is one with addresses of its own.
func TestAcceptsAdvertisementsLater(t *testing.T) {
	pod := newPod(t)
	const key = "ipv6/conf/net1/accept_ra"
	for _, c := range []struct{ prev, before, want string }{
		{noAddress, "0", "0"},
		{noAddress, "1", "2"},
		{noAddress, "2", "2"},
		{prev, "1", "1"},
	} {
		if err := pod.SetSysctl(key, c.before); err != nil {
			t.Fatal(err)
		}
		wire := &fakeWire{found: neigh.Result{Role: neigh.Own, Verdict: neigh.OK}}
		if err := with(t, pod, func(r *attach.Rail) error {
			r.Neighbours = wire
			return addAfter(r, `{"cniVersion":"1.0.0","type":"railtune"}`, c.prev)
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := pod.Sysctl(key); got != c.want || err != nil || wire.solicited != 0 {
			t.Errorf("accept_ra %s became %s, want %s (%v); solicited %d times; prevResult %s", c.before, got, c.want, err, wire.solicited, c.prev)
		}
	}
}

// noAddress is what an interface plugin without IPAM returns.
const noAddress = `{"cniVersion":"1.0.0","interfaces":[{"name":"net1","sandbox":"/x"}]}`

// lateWire is a wire whose carrier comes while it is waited for.
type lateWire struct {
	fakeWire
	carrier bool // there was one at the solicitation
}

func (l *lateWire) WaitCarrier(context.Context, int) (bool, error) { return true, nil }
func (l *lateWire) SolicitRouter(link neigh.Link) error            { l.carrier = link.Carrier; return nil }

// TestSolicitsWithCarrier: what is sent before the carrier is there is lost, and nothing else
// waits for it where nothing is proven.
func TestSolicitsWithCarrier(t *testing.T) {
	pod := newPod(t)
	if err := pod.SetSysctl("ipv6/conf/net1/forwarding", "1"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, pod, "link", "set", "net1p", "down")
	wire := &lateWire{}
	if err := with(t, pod, func(r *attach.Rail) error {
		r.Neighbours = wire
		return addAs(r, `{"cniVersion":"1.0.0","type":"railtune","announce":false,"verify":{"mode":"off"}}`)
	}); err != nil {
		t.Fatal(err)
	}
	if !wire.carrier {
		t.Error("solicited a router without a carrier")
	}
}
