package attach

import (
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
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
	for _, f := range p.Families() {
		if err := o.noRules[f]; err != nil {
			return nil, err
		}
	}
	begun, err := r.checkTables(p, o)
	if err != nil {
		return nil, err
	}
	if o.first && (begun || r.ruled(p, o)) {
		r.complete(o)
	}
	d := &difference{}
	if err := r.compareRules(p, o, d); err != nil {
		return nil, err
	}
	if o.first {
		// What is added is refused by the kernel where it is there already: in main
		// that can be another tool's route, which is as good.
		d.addRoutes, d.addMain = p.Routes, p.Main
		return d, nil
	}
	for _, f := range o.families() {
		if err := r.compareRoutes(f, p, o, d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// ruled reports whether an earlier plan left rules, listed or not: then they decide about
// the rail's packets, or its guards do.
func (r *Rail) ruled(p *plan.Plan, o *observation) bool {
	if slices.ContainsFunc(o.rules, func(found kernel.FoundRule) bool { return r.isOwn(found, p) }) {
		return true
	}
	for _, a := range p.Addresses {
		// Bound to the device, so that a device rule decides too: the rules of an earlier
		// plan need not be for this address.
		hop, err := r.Kernel.Match(o.neighbourOf(a), a.Addr(), o.state.Rail.Index)
		if err != nil || hop.Protocol == policy.Protocol {
			return true
		}
	}
	return false
}

// neighbourOf picks an address on an address's link that is not one of the namespace's
// own: those are in table local, whatever the rules say.
func (o *observation) neighbourOf(a netip.Prefix) netip.Addr {
	to := a.Addr()
	if to.BitLen()-a.Bits() < 2 { // a host prefix or a link of two, of which none is a broadcast address
		if to == a.Masked().Addr() {
			return to.Next()
		}
		return to.Prev()
	}
	const tries = 256 // more than a namespace has of its own in one row
	for range tries {
		to = to.Next()
		if !a.Contains(to) || to.Is4() && !a.Contains(to.Next()) { // the last of IPv4 is a broadcast address
			to = a.Masked().Addr().Next()
		}
		if !o.state.Local(to) {
			break
		}
	}
	return to
}

// families are those that the kernel has.
func (o *observation) families() []policy.Family {
	if !o.state.IPv6Kernel {
		return []policy.Family{policy.IPv4}
	}
	return families
}

// isOwn reports whether a rule shows by itself that it is railtune's for this rail, of
// whatever plan. More of such a plan is found through it, by stale.
func (r *Rail) isOwn(found kernel.FoundRule, p *plan.Plan) bool {
	return found.Ours() && (inTables(found, p) || found.OIF == r.IfName ||
		found.From.IsValid() && slices.Contains(p.Own(), found.From.Addr()))
}

func inTables(found kernel.FoundRule, p *plan.Plan) bool {
	return found.Action == policy.Lookup && slices.Contains(p.Tables, found.Table)
}

func (r *Rail) compareRules(p *plan.Plan, o *observation, d *difference) error {
	var have []policy.Rule
	for _, found := range o.rules {
		if inTables(found, p) && !o.behind(found, p) {
			if err := r.checkTableRule(found, o); err != nil {
				return err
			}
		}
		if found.Ours() {
			have = append(have, found.Rule)
		}
	}
	for _, want := range p.Rules {
		if !slices.Contains(have, want) {
			d.addRules = append(d.addRules, want)
		}
	}
	d.staleRules = r.stale(p, o, have)
	return nil
}

// stale returns the rules of earlier plans, in the order of their removal: guards, source
// rules, device rules. A plan with other addresses and another table is known by its
// device rule, which names both the rail and the table, as DEL knows it.
func (r *Rail) stale(p *plan.Plan, o *observation, have []policy.Rule) []policy.Rule {
	own := owned{ifname: r.IfName, links: append([]netstate.Link{o.state.Rail}, o.state.Others...), rules: have, tables: slices.Clone(p.Tables)}
	for _, rule := range have {
		if rule.OIF == r.IfName && !own.claimedByLink(rule.Table) {
			own.tables = append(own.tables, rule.Table)
		}
	}
	guards, _ := own.guards() // those that stand alone may be of an ADD under way
	byAddress := own.filter(func(rule policy.Rule) bool {
		return rule.From.IsValid() && slices.Contains(p.Own(), rule.From.Addr())
	})
	var out []policy.Rule
	for _, rule := range slices.Concat(guards, byAddress, own.sources(), own.claims()) {
		if !slices.Contains(p.Rules, rule) && !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}
	return out
}

// behind reports whether a rule of someone else's comes after railtune's own and points at
// a derived table. It takes nothing from the rail, and the first ADD does not see it, so
// no later call may mind it: the numbers are documented as railtune's.
func (o *observation) behind(found kernel.FoundRule, p *plan.Plan) bool {
	return o.table == 0 && !found.Ours() &&
		!slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return r.Priority >= found.Priority })
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

// checkTables refuses a table that holds a route of someone else's. begun says that
// one holds routes of this rail.
func (r *Rail) checkTables(p *plan.Plan, o *observation) (begun bool, err error) {
	for _, f := range o.families() {
		for _, table := range p.Tables {
			found, err := r.Kernel.Routes(f, kernel.RouteFilter{Table: table})
			if err != nil {
				return false, err
			}
			for _, have := range found {
				if err := r.checkTableRoute(have, o); err != nil {
					return false, err
				}
			}
			begun = begun || len(found) > 0
		}
	}
	return begun, nil
}

// compareRoutes compares one family. The rail's routes are looked for in all tables: an
// earlier plan may have had another.
func (r *Rail) compareRoutes(f policy.Family, p *plan.Plan, o *observation, d *difference) error {
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
