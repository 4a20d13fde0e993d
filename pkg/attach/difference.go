package attach

import (
	"slices"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// difference is what separates the kernel from a plan.
type difference struct {
	// addRules and addRoutes are wanted and missing, in the plan's order.
	addRules  []policy.Rule
	addRoutes []policy.Route
	addMain   []policy.Route
	// staleRules and staleRoutes are this rail's from an earlier plan.
	staleRules  []policy.Rule
	staleRoutes []policy.Route
}

// compare lists what is missing and what is left over from an earlier plan of this
// rail. Tables and rules that someone else holds are an error (code Routing).
func (r *Rail) compare(p *plan.Plan, o *observation) (*difference, error) {
	d := &difference{}
	for _, f := range p.Families() {
		if err := o.noRules[f]; err != nil {
			return nil, err
		}
	}
	if err := r.compareRules(p, o, d); err != nil {
		return nil, err
	}
	for _, f := range families {
		if f == policy.IPv6 && !o.state.IPv6Kernel {
			continue
		}
		if err := r.compareRoutes(f, p, o, d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (r *Rail) compareRules(p *plan.Plan, o *observation, d *difference) error {
	have := map[policy.Rule]bool{}
	own := p.Own()
	for _, found := range o.rules {
		inTable := found.Action == policy.Lookup && slices.Contains(p.Tables, found.Table)
		if inTable {
			if err := r.checkTableRule(found, o); err != nil {
				return err
			}
		}
		if !found.Ours() {
			continue
		}
		have[found.Rule] = true
		mine := inTable || found.OIF == r.IfName || found.From.IsValid() && slices.Contains(own, found.From.Addr())
		if mine && !slices.Contains(p.Rules, found.Rule) {
			d.staleRules = append(d.staleRules, found.Rule)
		}
	}
	for _, want := range p.Rules {
		if !have[want] {
			d.addRules = append(d.addRules, want)
		}
	}
	return nil
}

// checkTableRule refuses a rule that shows the table to be someone else's. A device
// rule of railtune's for a link that is gone is a leftover, not a holder.
func (r *Rail) checkTableRule(found kernel.FoundRule, o *observation) error {
	if !found.Ours() {
		return cnierr.New(cnierr.Routing, "table %d, which %s needs, is used by a rule that is not railtune's (ip %s): "+
			"remove that rule or set \"table\" to a free number", found.Table, r.IfName, found).With(found.String())
	}
	if found.OIF == "" || found.OIF == r.IfName {
		return nil
	}
	for _, l := range o.state.Others {
		if l.Name == found.OIF {
			return r.tableHeld(found.Table, found.OIF)
		}
	}
	return nil
}

func (r *Rail) tableHeld(table uint32, by string) error {
	return cnierr.New(cnierr.Routing, "table %d, which %s needs, is held by rail %s: "+
		"every rail needs a table of its own; leave \"table\" out, or give each rail another number", table, r.IfName, by)
}

// compareRoutes compares one family. The rail's routes are looked for in all tables: an
// earlier plan may have had another.
func (r *Rail) compareRoutes(f policy.Family, p *plan.Plan, o *observation, d *difference) error {
	for _, table := range p.Tables {
		found, err := r.Kernel.Routes(f, kernel.RouteFilter{Table: table})
		if err != nil {
			return err
		}
		for _, have := range found {
			if err := r.checkTableRoute(have, o); err != nil {
				return err
			}
		}
	}
	found, err := r.Kernel.Routes(f, kernel.RouteFilter{IfIndex: o.state.Rail.Index, Protocol: policy.Protocol})
	if err != nil {
		return err
	}
	private, main := familyOnly(p.Routes, f), familyOnly(p.Main, f)
	d.addRoutes = append(d.addRoutes, missing(found, private)...)
	d.addMain = append(d.addMain, missing(found, main)...)
	for _, have := range found {
		if have.Ours() && !containsRoute(private, have.Route) && !containsRoute(main, have.Route) {
			d.staleRoutes = append(d.staleRoutes, have.Route)
		}
	}
	return nil
}

func familyOnly(routes []policy.Route, f policy.Family) []policy.Route {
	var out []policy.Route
	for _, r := range routes {
		if r.Family() == f {
			out = append(out, r)
		}
	}
	return out
}

// missing returns what is wanted and not found, in the order wanted.
func missing(found []kernel.FoundRoute, want []policy.Route) []policy.Route {
	var out []policy.Route
	for _, w := range want {
		if !slices.ContainsFunc(found, func(h kernel.FoundRoute) bool { return h.Ours() && sameRoute(h.Route, w) }) {
			out = append(out, w)
		}
	}
	return out
}

func containsRoute(routes []policy.Route, have policy.Route) bool {
	return slices.ContainsFunc(routes, func(w policy.Route) bool { return sameRoute(have, w) })
}

// sameRoute compares all but the device's name, which is for people.
func sameRoute(have, want policy.Route) bool {
	have.Dev = want.Dev
	return have == want
}

func (r *Rail) checkTableRoute(have kernel.FoundRoute, o *observation) error {
	if have.Ours() && have.IfIndex == o.state.Rail.Index {
		return nil
	}
	if have.Ours() {
		return r.tableHeld(have.Table, o.nameOf(have.IfIndex))
	}
	have.Dev = o.nameOf(have.IfIndex)
	return cnierr.New(cnierr.Routing, "table %d, which %s needs, holds a route that is not railtune's (ip %s): "+
		"set \"table\" to a free number, or remove the route", have.Table, r.IfName, have.Route).With(have.Route.String())
}

func (o *observation) nameOf(ifindex int) string {
	if ifindex == o.state.Rail.Index {
		return o.state.Rail.Name
	}
	for _, l := range o.state.Others {
		if l.Index == ifindex {
			return l.Name
		}
	}
	return ""
}
