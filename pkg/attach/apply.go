package attach

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Fleet is rails of one namespace that no chain configured: hostNetwork, DRANET. They
// are worked on as one. Rails in one subnet answer for each other's addresses until the
// last of them is tuned, so none can be proven before all are changed; and where one
// cannot be proven, all are put back, as a node with some tuned rails is what nobody
// looks for.
type Fleet struct {
	// Rails each have a Kernel of their own: they are proven at the same time.
	Rails  []*Rail
	Config *config.Config
	// Enter calls f on a thread of its own in the rails' namespace.
	Enter func(f func() error) error
}

// Prepared is the plan of one rail of a fleet, compared with the kernel.
type Prepared struct {
	Plan *plan.Plan
	// Wanted counts what the plan asks for, Missing what of it is not there.
	Wanted, Missing int

	rail *Rail
	o    *observation
	d    *difference
	text string
}

// IfName is the rail's name.
func (p *Prepared) IfName() string { return p.rail.IfName }

// String prints the plan, and what the packet filter is to let in, as the commands a
// person would type.
func (p *Prepared) String() string { return p.text }

// Prepare computes each rail's plan from what is on its link, as ADD would from
// prevResult, and changes nothing. Its errors are about all rails at once.
func (f *Fleet) Prepare() ([]*Prepared, error) {
	if f.Config.Table != 0 && len(f.Rails) > 1 {
		return nil, cnierr.New(cnierr.Config, "table %d cannot be that of %d rails: every rail needs a table of its own; leave \"table\" out",
			f.Config.Table, len(f.Rails))
	}
	var out []*Prepared
	var errs []error
	for _, r := range f.Rails {
		p, err := f.prepare(r)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.IfName, err))
			continue
		}
		out = append(out, p)
	}
	return out, errors.Join(errs...)
}

func (f *Fleet) prepare(r *Rail) (*Prepared, error) {
	o, err := r.observe(scope{table: f.Config.Table, last: everything, defaults: true})
	if err != nil {
		return nil, err
	}
	// The others of the fleet will be rails in a moment. The plan must be the same then.
	for i := range o.state.Others {
		l := &o.state.Others[i]
		l.Tuned = l.Tuned || f.has(l.Name)
	}
	g, err := r.given(o)
	if err != nil {
		return nil, err
	}
	p := &Prepared{rail: r, o: o}
	p.Plan, err = plan.Build(plan.Input{Config: f.Config, IPs: g.ips, Routes: g.routes, State: &o.state})
	if err != nil {
		return nil, err
	}
	p.Plan.Warnings = append(p.Plan.Warnings, g.notes...)
	if err := r.checkSettings(p.Plan); err != nil {
		return nil, err
	}
	if err := r.checkFirewall(f.Config, p.Plan, o); err != nil {
		return nil, err
	}
	if p.d, err = r.compare(p.Plan, o); err != nil {
		return nil, err
	}
	if err := r.checkStations(f.Config, o); err != nil {
		return nil, err
	}
	p.count()
	p.text = p.Plan.String() + r.filterText(f.Config, p.Plan, o)
	return p, nil
}

func (f *Fleet) has(ifname string) bool {
	for _, r := range f.Rails {
		if r.IfName == ifname {
			return true
		}
	}
	return false
}

func (p *Prepared) count() {
	p.Wanted = len(p.Plan.Settings) + len(p.Plan.Rules) + len(p.Plan.Routes) + len(p.Plan.Main)
	p.Missing = len(p.d.addRules) + len(p.d.addRoutes) + len(p.d.addMain)
	for _, s := range p.Plan.Settings {
		v, err := sysctl.Effective(p.rail.Files, s.Key, p.rail.IfName)
		if err != nil || !sysctl.Acceptable(s.Key, s.Value, v.File) {
			p.Missing++
		}
	}
}

func (r *Rail) filterText(cfg *config.Config, p *plan.Plan, o *observation) string {
	var b strings.Builder
	for f, from := range r.accepted(cfg, p, o, true) {
		for _, line := range r.Firewall.Lines(r.IfName, f, from) {
			fmt.Fprintln(&b, line)
		}
	}
	return b.String()
}

// Apply changes all rails, proves all, and then announces all. On error every rail is
// as it was before, settings included, and so it is where ctx ends before all is proven.
// It returns how many changes it made.
func (f *Fleet) Apply(ctx context.Context, prepared []*Prepared) (changes int, err error) {
	j := &journal{}
	for _, p := range prepared {
		if err := p.rail.change(f.Config, p.Plan, p.o, p.d, j); err != nil {
			return 0, withUndo(fmt.Errorf("%s: %w", p.IfName(), err), j.undo())
		}
	}
	err = f.prove(ctx, prepared)
	if interrupted := ctx.Err(); interrupted != nil { // whatever the proof made of that
		err = fmt.Errorf("interrupted: %w", interrupted)
	}
	if err != nil {
		return 0, withUndo(err, j.undo())
	}
	for _, p := range prepared {
		p.rail.announce(f.Config, p.Plan, p.o)
	}
	return len(j.steps), nil
}

// prove proves all rails at once, as a silent gateway costs its timeout.
func (f *Fleet) prove(ctx context.Context, prepared []*Prepared) error {
	errs := make([]error, len(prepared))
	var wait sync.WaitGroup
	for i, p := range prepared {
		wait.Go(func() {
			errs[i] = f.Enter(func() error { return p.rail.prove(ctx, f.Config, p.Plan, p.o) })
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", p.IfName(), errs[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Undo removes what is railtune's of one rail and returns it, as ip and iptables would
// show it; with dry it only looks. Settings stay: what they were before is kept nowhere.
func (r *Rail) Undo(dry bool) (removed []string, err error) {
	rec := &removals{Kernel: r.Kernel, dry: dry, nameOf: r.linkName}
	copied := *r
	copied.Kernel = rec
	err = copied.delRouting()
	if r.Firewall == nil {
		return rec.lines, err
	}
	chains, filterErr := r.Firewall.Chains(r.IfName)
	for _, c := range chains {
		rec.lines = append(rec.lines, "chain "+c)
	}
	if filterErr == nil && !dry && len(chains) > 0 {
		filterErr = r.delFirewall()
	}
	return rec.lines, errors.Join(err, filterErr)
}

// removals notes what is removed, and with dry keeps it.
type removals struct {
	Kernel
	dry    bool
	nameOf func(ifindex int) string
	lines  []string
}

// DelRule is Kernel's.
func (k *removals) DelRule(r policy.Rule) error {
	return k.note(r.String(), func() error { return k.Kernel.DelRule(r) })
}

// DelRoute is Kernel's.
func (k *removals) DelRoute(r policy.Route) error {
	r.Dev = k.nameOf(r.IfIndex)
	return k.note(r.String(), func() error { return k.Kernel.DelRoute(r) })
}

func (k *removals) note(what string, remove func() error) error {
	if !k.dry {
		if err := remove(); err != nil {
			return err
		}
	}
	// It prints itself as the command that makes it.
	k.lines = append(k.lines, "ip "+strings.Replace(what, " add ", " del ", 1))
	return nil
}
