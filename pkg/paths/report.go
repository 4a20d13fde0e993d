// Package paths tries the paths between the rails of this pod and those of its peers:
// from each rail to each rail, bound to the device and bound to the address, whether an
// echo request is answered and the reply comes in on the same rail. Where it does not,
// it says how far packets get and, as far as this can be told from one end, why.
//
// What one end cannot see: by which of its rails the peer was reached. A peer whose
// settings are wrong may take a request on the wrong rail and answer it all the same;
// its own run shows that, so run it from both ends.
package paths

import (
	"net/netip"
	"time"
)

// Options say what to try.
type Options struct {
	Peers []Peer
	// SameRail leaves out the paths to other rails than the own one.
	SameRail bool
	// Count is how many requests go over each path in each of the two ways.
	Count int
	// Timeout is for the whole run: half for the echo requests, half for following the
	// paths that do not work. It ends early when all is known.
	Timeout time.Duration
	// MaxHops ends the following of a path.
	MaxHops int
}

// Defaults of the command line.
const (
	DefaultCount   = 3
	DefaultTimeout = 8 * time.Second
	DefaultMaxHops = 8
)

// Code says what is the matter with a path.
type Code string

// The codes. What they mean stands with the sentences (why.go).
const (
	OK            Code = "ok"
	RailDown      Code = "rail-down"
	NoAddress     Code = "no-address"
	NoRoute       Code = "no-route"        // in this pod
	WrongWay      Code = "wrong-way"       // this pod's route leaves by another interface
	NotSent       Code = "not-sent"        // the kernel refused to send
	OtherRail     Code = "other-rail"      // the reply came in on another interface
	Lossy         Code = "lossy"           // some came back
	GatewaySilent Code = "gateway-silent"  // the gateway does not answer ARP or ND
	PeerSilent    Code = "peer-silent"     // the peer does not, on its own rail
	SwitchNoRoute Code = "switch-no-route" // a router says that it has no route
	SwitchNoHost  Code = "switch-no-host"  // a router says that the address does not answer
	Filtered      Code = "filtered"        // a router says that it must not pass this on
	Loop          Code = "loop"            // the hop limit ran out
	BlackHole     Code = "black-hole"      // nothing comes back from behind the gateway, nor from the other rail's
	NoWayBack     Code = "no-way-back"     // the switch leads there, and the peer does not answer
	Silent        Code = "silent"          // no more than that is known
)

// Outcome is what became of the requests of one path sent in one way.
type Outcome struct {
	Sent int `json:"sent"`
	// Back counts the replies that came in on the rail.
	Back int `json:"back"`
	// Leaves is the interface by which the kernel sends the requests, where it is not the
	// rail: a reply that comes back all the same proves nothing, as RoCE would not be sent.
	Leaves string `json:"leaves,omitempty"`
	// Elsewhere is the interface on which others came in.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Error is why the kernel did not send.
	Error string `json:"error,omitempty"`
	// From is who sent an ICMP error, and Says which.
	From netip.Addr `json:"from,omitzero"`
	Says string     `json:"says,omitempty"`
}

// good tells whether every request left by the rail and came back on it.
func (o Outcome) good() bool { return o.Sent > 0 && o.Back == o.Sent && o.Leaves == "" }

// Pair is a path from a rail to a peer's rail.
type Pair struct {
	From string `json:"from"`
	Peer
	// Via is the gateway, where the pod has a route with one.
	Via netip.Addr `json:"via,omitzero"`
	// Device is bound to the rail's device, Source to its address.
	Device Outcome `json:"device"`
	Source Outcome `json:"source"`
	Code   Code    `json:"code"`
	Why    string  `json:"why,omitempty"`
	// Hops are the routers that answered, in their order, the invalid address for one
	// that did not. The peer is the last where it was reached. Not every path is
	// followed: routers limit such answers.
	Hops []netip.Addr `json:"hops,omitempty"`
}

// Report is the outcome of a run.
type Report struct {
	Rails []Rail `json:"rails"`
	Pairs []Pair `json:"pairs"`
}

// Good tells whether every path works.
func (r *Report) Good() bool { return r.Failing() == 0 }

// Failing counts the paths that do not work.
func (r *Report) Failing() int {
	n := 0
	for _, p := range r.Pairs {
		if p.Code != OK {
			n++
		}
	}
	return n
}
