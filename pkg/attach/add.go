package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Add carries out the plan for the rail and proves it. On error the namespace is as
// it was before, settings included. Where everything is there already nothing is
// written.
func (r *Rail) Add(ctx context.Context, cfg *config.Config, res *prevresult.Result) (*plan.Plan, error) {
	p, o, err := r.plan(cfg, res, priorities(cfg))
	if err != nil {
		return nil, err
	}
	for _, w := range p.Warnings {
		r.Log.Warnf("%s", w)
	}
	if err := r.checkSettings(p); err != nil {
		return nil, err
	}
	if err := r.checkFirewall(cfg, p, o); err != nil {
		return nil, err
	}
	d, err := r.compare(p, o)
	if err != nil {
		return nil, err
	}
	if err := r.checkStations(cfg, o); err != nil {
		return nil, err
	}
	j := &journal{}
	if err := r.addAndProve(ctx, cfg, p, o, d, j); err != nil {
		return nil, withUndo(err, j.undo())
	}
	r.announce(cfg, p, o)
	return p, nil
}

// ErrNotRestored is in the error of a verb that failed and could not take back all it did.
var ErrNotRestored = errors.New("the namespace could not be restored")

func withUndo(err, undone error) error {
	if undone == nil {
		return err
	}
	return cnierr.New(cnierr.CodeOf(err, cnierr.Routing), "%w; and %w: %w", err, ErrNotRestored, undone)
}

// priorities is the last priority whose rules a first ADD has to see: those that are
// tried before railtune's, and those an earlier ADD with this configuration or the default
// one made. A table that was given by number can be anyone's, by any rule.
func priorities(cfg *config.Config) uint32 {
	if cfg.Table != 0 {
		return everything
	}
	return uint32(max(cfg.RulePriority, config.DefaultRulePriority)) + 2
}

// plan observes the namespace, with rules up to a priority, and has the plan computed.
func (r *Rail) plan(cfg *config.Config, res *prevresult.Result, last uint32) (*plan.Plan, *observation, error) {
	o, err := r.observe(scope{cfg.Table, last, plan.AsksDefaults(cfg, res.Routes)})
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Build(plan.Input{Config: cfg, IPs: res.Addresses(r.IfName), Routes: res.Routes, State: &o.state})
	return p, o, err
}

// checkSettings finds keys that this kernel does not have, before anything is
// written: a typing error must not become half an ADD.
func (r *Rail) checkSettings(p *plan.Plan) error {
	for _, s := range p.Settings {
		if !r.Files.Exists(s.Key.Path(r.IfName)) {
			return sysctl.Missing(s.Key, r.IfName, nil)
		}
	}
	return nil
}

func (r *Rail) addAndProve(
	ctx context.Context, cfg *config.Config, p *plan.Plan, o *observation, d *difference, j *journal,
) error {
	if err := r.change(cfg, p, o, d, j); err != nil {
		return err
	}
	return r.prove(ctx, cfg, p, o)
}

// change makes everything of the plan that is not there yet. The packet filter comes
// last, and before the proof: what it drops cannot be proven.
func (r *Rail) change(cfg *config.Config, p *plan.Plan, o *observation, d *difference, j *journal) error {
	if err := r.applySettings(p, j); err != nil {
		return err
	}
	if err := r.applyRouting(cfg, p, d, j); err != nil {
		return err
	}
	return r.acceptRails(cfg, p, o, j)
}

// prove asks the kernel and the wire whether the plan holds.
func (r *Rail) prove(ctx context.Context, cfg *config.Config, p *plan.Plan, o *observation) error {
	if err := r.proveSettings(p); err != nil {
		return err
	}
	if err := r.proveLookups(p, o); err != nil {
		return err
	}
	if err := r.proveNeighbours(ctx, cfg, p, o); err != nil {
		return err
	}
	return r.proveGIDs(ctx, cfg, p, &o.state.Rail)
}

func (r *Rail) applySettings(p *plan.Plan, j *journal) error {
	for _, s := range p.Settings {
		old, changed, err := sysctl.Set(r.Files, s.Key, r.IfName, s.Value)
		if changed {
			r.raSwitchedOn = r.raSwitchedOn || s.Key == sysctl.AcceptRA && s.Value != "0"
			j.did(s.Key.For(r.IfName), func() error {
				_, _, err := sysctl.Set(r.Files, s.Key, r.IfName, old)
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyRouting removes what an earlier plan left, then makes what is missing in the
// order that the package comment explains.
func (r *Rail) applyRouting(cfg *config.Config, p *plan.Plan, d *difference, j *journal) error {
	for _, rule := range d.staleRules {
		if err := r.delRule(rule, j); err != nil {
			return err
		}
	}
	for _, route := range d.staleRoutes {
		if err := r.delRoute(route, j); err != nil {
			return err
		}
	}
	if err := r.addRules(d.addRules, isClaim, j); err != nil {
		return err
	}
	if err := r.checkClaim(cfg, p); err != nil {
		return err
	}
	if err := r.addRoutes(d.addRoutes, j); err != nil {
		return err
	}
	if err := r.addRules(d.addRules, func(rule policy.Rule) bool { return !isClaim(rule) }, j); err != nil {
		return err
	}
	return r.addRoutes(d.addMain, j)
}

func isClaim(rule policy.Rule) bool { return rule.OIF != "" }

// checkClaim settles who has a table that was given by number when two rails claim
// it at once: the kernel keeps rules of one priority in the order they were made, so
// both see the same winner. Derived tables cannot be claimed twice.
func (r *Rail) checkClaim(cfg *config.Config, p *plan.Plan) error {
	if cfg.Table == 0 {
		return nil
	}
	for _, f := range p.Families() {
		claims, err := r.Kernel.Rules(f, func(found *kernel.FoundRule) bool {
			return found.Ours() && found.OIF != "" && slices.Contains(p.Tables, found.Table)
		})
		if err != nil {
			return err
		}
		for _, table := range p.Tables {
			first := slices.IndexFunc(claims, func(c kernel.FoundRule) bool { return c.Table == table })
			if first >= 0 && claims[first].OIF != r.IfName {
				return r.tableHeld(table, claims[first].OIF)
			}
		}
	}
	return nil
}

// addRules makes the rules that are missing. Another ADD for this rail at the same moment,
// which no runtime should make, makes them as well: they are there twice then, which
// changes nothing, and DEL removes both.
func (r *Rail) addRules(rules []policy.Rule, which func(policy.Rule) bool, j *journal) error {
	for _, rule := range rules {
		if !which(rule) {
			continue
		}
		if err := r.Kernel.AddRule(rule); err != nil {
			return cnierr.New(routingCode(err), "ip %s in %s: %w", rule, r.NetNS, kernel.NoPolicyRouting(err))
		}
		j.did(rule.String(), func() error { return r.Kernel.DelRule(rule) })
	}
	return nil
}

func (r *Rail) addRoutes(routes []policy.Route, j *journal) error {
	for _, route := range routes {
		err := r.Kernel.AddRoute(route)
		if errors.Is(err, unix.EEXIST) {
			if err = r.slotTaken(route); err == nil {
				continue
			}
			return err
		}
		if err != nil {
			return cnierr.New(routingCode(err), "ip %s in %s: %w", route, r.NetNS, err)
		}
		j.did(route.String(), func() error { return r.Kernel.DelRoute(route) })
	}
	return nil
}

// slotTaken judges a route that the kernel says exists: the same one is fine, in
// main also when it is another tool's; a different one is not.
func (r *Rail) slotTaken(want policy.Route) error {
	found, err := r.Kernel.Routes(want.Family(), kernel.RouteFilter{Table: want.Table})
	if err != nil {
		return err
	}
	for _, have := range found {
		if !have.SameSlot(want) {
			continue
		}
		have.Dev = r.linkName(have.IfIndex)
		if have.IfIndex == want.IfIndex && have.GW == want.GW && (have.Ours() || want.Table == policy.MainTable) {
			return nil
		}
		return cnierr.New(cnierr.Routing, "table %s already has %s with metric %d by another way (ip %s): "+
			"remove that route, or take the supernet out", tableText(want.Table), want.DstText(), want.Metric, have.Route).With(have.Route.String())
	}
	return cnierr.New(cnierr.TryAgain, "ip %s: the kernel says it exists, and it is gone on the next look: try again", want)
}

// linkName is a link's name for a message, "" where it cannot be had.
func (r *Rail) linkName(index int) string {
	links, err := r.Kernel.Links()
	if err != nil {
		return ""
	}
	o := observation{state: netstate.State{Others: links}}
	return o.nameOf(index)
}

func tableText(table uint32) string {
	if table == policy.MainTable {
		return "main"
	}
	return strconv.FormatUint(uint64(table), 10)
}

// routingCode gives an errno of a rule or route request its CNI code.
func routingCode(err error) cnierr.Code {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT):
		return cnierr.Kernel
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENETDOWN):
		return cnierr.Link
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EBUSY):
		return cnierr.TryAgain
	}
	return cnierr.Routing
}

func (r *Rail) delRule(rule policy.Rule, j *journal) error {
	if err := r.Kernel.DelRule(rule); err != nil {
		return fmt.Errorf("remove the leftover rule (ip %s): %w", rule, err)
	}
	j.did("removal of "+rule.String(), func() error { return r.Kernel.AddRule(rule) })
	return nil
}

func (r *Rail) delRoute(route policy.Route, j *journal) error {
	if err := r.Kernel.DelRoute(route); err != nil {
		return fmt.Errorf("remove the leftover route (ip %s): %w", route, err)
	}
	j.did("removal of "+route.String(), func() error { return r.Kernel.AddRoute(route) })
	return nil
}
