package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Neighbours is what attach needs of the wire. Wire is the real one.
type Neighbours interface {
	WaitCarrier(ctx context.Context, ifindex int) (bool, error)
	WaitDAD(ctx context.Context, ifindex int, addrs []netip.Addr) (pending []netip.Addr, err error)
	Prove(ctx context.Context, req neigh.Request) (neigh.Report, error)
	Announce(link neigh.Link, addrs []netip.Addr) error
	SolicitRouter(link neigh.Link) error
}

// Wire asks on the wire, through package neigh.
type Wire struct{}

// WaitCarrier is neigh.WaitCarrier.
func (Wire) WaitCarrier(ctx context.Context, ifindex int) (bool, error) {
	return neigh.WaitCarrier(ctx, ifindex)
}

// WaitDAD is neigh.WaitDAD.
func (Wire) WaitDAD(ctx context.Context, ifindex int, addrs []netip.Addr) ([]netip.Addr, error) {
	return neigh.WaitDAD(ctx, ifindex, addrs)
}

// Prove is neigh.Prove.
func (Wire) Prove(ctx context.Context, req neigh.Request) (neigh.Report, error) {
	return neigh.Prove(ctx, req)
}

// Announce is neigh.Announce.
func (Wire) Announce(link neigh.Link, addrs []netip.Addr) error { return neigh.Announce(link, addrs) }

// SolicitRouter is neigh.SolicitRouter.
func (Wire) SolicitRouter(link neigh.Link) error { return neigh.SolicitRouter(link) }

// checkStations finds, without asking on the wire, two rails that are one station to
// the switch.
func (r *Rail) checkStations(cfg *config.Config, o *observation) error {
	if cfg.Verify.Mode == config.Off {
		return nil
	}
	return r.judge(cfg.Verify.Mode, neigh.SameMAC(r.neighRail(&o.state.Rail), r.siblings(o)))
}

// judge turns a finding into an error or a warning, as the mode says.
func (r *Rail) judge(mode string, finding error) error {
	if finding != nil && mode == config.Warn {
		r.Log.Warnf("%v", finding)
		return nil
	}
	return finding
}

// proveNeighbours asks on the wire whether the rail's addresses and gateways are what
// they should be, and judges the answers by the configuration.
func (r *Rail) proveNeighbours(ctx context.Context, cfg *config.Config, p *plan.Plan, o *observation) error {
	if r.Neighbours == nil || cfg.Verify.Mode == config.Off || len(p.Addresses) == 0 {
		return nil
	}
	if err := r.waitForLink(ctx, cfg, p, o); err != nil {
		return err
	}
	report, err := r.Neighbours.Prove(ctx, r.request(cfg, p, o))
	if err != nil {
		return r.judge(cfg.Verify.Mode, fmt.Errorf("neighbour proof on %s: %w", r.IfName, err))
	}
	r.Log.Debugf("neighbour proof: %d questions in %v", report.Probes, report.Elapsed.Round(time.Microsecond))
	for _, e := range report.Removed {
		r.Log.Warnf("removed the neighbour entry of %s on %s: it had %s, which the proof contradicts", e.Addr, r.IfName, e.MAC)
	}
	return r.judgeReport(cfg, report)
}

// carrierWait bounds the wait for a carrier. A virtual function that was just moved and
// set up has one within milliseconds; a rail whose cable is out must not cost a pod of
// sixteen more than a moment each.
const carrierWait = 100 * time.Millisecond

// waitForLink waits for the carrier of an interface that was just moved, and, at most
// for the configured timeout, for duplicate address detection.
func (r *Rail) waitForLink(ctx context.Context, cfg *config.Config, p *plan.Plan, o *observation) error {
	l := &o.state.Rail
	if !l.Carrier {
		short, cancel := context.WithTimeout(ctx, min(carrierWait, cfg.Verify.Timeout))
		defer cancel()
		var err error
		if l.Carrier, err = r.Neighbours.WaitCarrier(short, l.Index); err != nil {
			return r.judge(cfg.Verify.Mode, err)
		}
	}
	if !anyTentative(l) || !l.Carrier {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Verify.Timeout)
	defer cancel()
	pending, err := r.Neighbours.WaitDAD(ctx, l.Index, p.Own())
	if err != nil {
		return r.judge(cfg.Verify.Mode, err)
	}
	if len(pending) > 0 {
		r.Log.Warnf("duplicate address detection of %v on %s has not ended after %v: the address is not usable yet, "+
			"and a later failure of the detection will not be seen here; raise verify.timeout", pending, r.IfName, cfg.Verify.Timeout)
	}
	return nil
}

func anyTentative(l *netstate.Link) bool {
	for _, a := range l.Addrs {
		if a.Tentative {
			return true
		}
	}
	return false
}

func (r *Rail) request(cfg *config.Config, p *plan.Plan, o *observation) neigh.Request {
	req := neigh.Request{
		Rail: r.neighRail(&o.state.Rail), Siblings: r.siblings(o),
		Gateways: p.Gateways, Peers: cfg.Verify.Peers, Anycast: cfg.Verify.AnycastMACs, Timeout: cfg.Verify.Timeout,
		EffectiveARPIgnore: r.effectiveARPIgnore,
	}
	if r.Parent != nil {
		req.Parent = r.Parent(&o.state.Rail)
	}
	// Only the addresses that the plan is about: one from a router advertisement is
	// the kernel's to defend.
	req.Rail.Addrs = p.Addresses
	return req
}

// siblings are the other links that can meet the rail on the wire.
func (r *Rail) siblings(o *observation) []neigh.Rail {
	var out []neigh.Rail
	for i := range o.state.Others {
		if l := &o.state.Others[i]; !l.Loopback && l.Up && len(l.Addrs) > 0 {
			out = append(out, r.neighRail(l))
		}
	}
	return out
}

// NeighLink is a link as package neigh sees it.
func NeighLink(l *netstate.Link) neigh.Link {
	return neigh.Link{
		Index: l.Index, Name: l.Name, MAC: l.MAC, Up: l.Up, Carrier: l.Carrier, NoARP: l.NoARP,
		ARPType: l.ARPHRD, Kind: l.Kind, ParentIndex: l.Parent, ParentNetns: l.ParentNSID,
	}
}

func (r *Rail) neighRail(l *netstate.Link) neigh.Rail {
	out := neigh.Rail{Link: NeighLink(l)}
	for _, a := range l.Addrs {
		out.Addrs = append(out.Addrs, a.Prefix)
	}
	return out
}

// effectiveARPIgnore reads a link's setting, "" where that cannot be. The link is looked
// up anew: it may have come after the observation.
func (r *Rail) effectiveARPIgnore(ifindex int) string {
	link, err := r.Kernel.Link(ifindex)
	if err != nil {
		return ""
	}
	v, err := sysctl.Effective(r.Files, sysctl.ARPIgnore, link.Name)
	if err != nil {
		return ""
	}
	return v.Effective
}

// judgeReport fails for what is surely wrong and enforced, and warns of the rest.
// What concerns this rail and its gateways goes by verify.mode, peers by peerMode.
func (r *Rail) judgeReport(cfg *config.Config, report neigh.Report) error {
	var failures []neigh.Result
	busy := false
	for _, res := range report.Results {
		switch {
		case r.fails(cfg, res):
			failures = append(failures, res)
			busy = busy || errors.Is(res.Cause, neigh.ErrBusy)
		case res.Verdict == neigh.OK:
			r.Log.Debugf("%s", res)
		default:
			r.Log.Warnf("%s", res)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	code := cnierr.Neighbour
	if busy {
		code = cnierr.TryAgain
	}
	more := ""
	if n := len(failures) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more, see details)", n)
	}
	return cnierr.New(code, "neighbour proof on %s: %s: %s%s",
		r.IfName, failures[0].Verdict, failures[0].Message, more).With(evidence(failures))
}

// fails decides whether a result fails the ADD. Silence does only where the
// configuration asks for answers; not being able to ask about the own address does,
// as retrying helps.
func (r *Rail) fails(cfg *config.Config, res neigh.Result) bool {
	mode := cfg.Verify.Mode
	if res.Verdict == neigh.Silent {
		return cfg.Verify.RequireReply && mode == config.Enforce
	}
	if res.Role == neigh.Peer {
		mode = cfg.Verify.PeerMode
	}
	unasked := res.Role == neigh.Own && errors.Is(res.Cause, neigh.ErrBusy)
	return mode == config.Enforce && (res.Severe() || unasked)
}

// evidence lists every MAC that answered, with its owner where that is known.
func evidence(results []neigh.Result) string {
	var lines []string
	for _, res := range results {
		line := fmt.Sprintf("%s (%s): %s:", res.Addr, res.Role, res.Verdict)
		for _, a := range res.Answers {
			line += " " + a.MAC.String()
			if a.Owner != "" {
				line += "=" + a.Owner
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// announce heals peers that learned a wrong MAC in the time between the interface
// coming up and its settings holding. It is a help to others, and nothing that can
// fail an ADD which is otherwise proven.
func (r *Rail) announce(cfg *config.Config, p *plan.Plan, o *observation) {
	if r.Neighbours == nil {
		return
	}
	link := NeighLink(&o.state.Rail)
	if cfg.Announce && len(p.Addresses) > 0 {
		if err := r.Neighbours.Announce(link, p.Own()); err != nil {
			r.Log.Warnf("announcing the addresses of %s: %v", r.IfName, err)
		}
	}
	// A rail that took advertisements before has had the kernel ask for them already.
	if r.raSwitchedOn && (o.state.Forwarding6 || !o.state.AcceptsRA) {
		if !link.Carrier { // nobody waited for it where nothing was to be proven
			ctx, cancel := context.WithTimeout(context.Background(), carrierWait)
			defer cancel()
			link.Carrier, _ = r.Neighbours.WaitCarrier(ctx, link.Index)
		}
		if err := r.Neighbours.SolicitRouter(link); err != nil {
			r.Log.Warnf("asking for a router advertisement on %s: %v", r.IfName, err)
		}
	}
}
