package attach

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// Del removes every rule and route of railtune's that belongs to the rail, in both
// families. It asks the kernel only: neither the link, nor its addresses, nor the
// configuration that ADD had need to be there any more. What carries another
// protocol, or belongs to another rail, stays. What cannot be removed from the packet
// filter is warned about: it goes with the namespace, and a DEL that fails keeps the
// plugins before railtune from giving the device back.
func (r *Rail) Del() error {
	err := r.delRouting()
	if left := r.delFirewall(); left != nil {
		r.Log.Warnf("%v", left)
	}
	return err
}

func (r *Rail) delRouting() error {
	links, err := r.Kernel.Links()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range families {
		errs = append(errs, r.delFamily(f, links))
	}
	return errors.Join(errs...)
}

func (r *Rail) delFamily(f policy.Family, links []netstate.Link) error {
	rules, err := r.ownRules(f)
	if err != nil {
		return err
	}
	o := owned{ifname: r.IfName, links: links, rules: rules}
	o.findTables()
	mine, alone := o.guards()
	guards, err := r.confirmGuards(f, mine, alone)
	if err != nil {
		return err
	}
	if err := r.delRules(append(guards, o.sources()...)); err != nil {
		return err
	}
	if err := r.delRoutes(f, &o); err != nil {
		return err
	}
	return r.delRules(o.claims())
}

// ownRules lists railtune's rules. A kernel without policy routing has none.
func (r *Rail) ownRules(f policy.Family) ([]policy.Rule, error) {
	found, err := r.Kernel.Rules(f, func(rule *kernel.FoundRule) bool { return rule.Ours() })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	rules := make([]policy.Rule, len(found))
	for i := range found {
		rules[i] = found[i].Rule
	}
	return rules, err
}

// confirmGuards keeps, of guards that stood without a source rule, those that still
// do. A list of rules is not one moment's: another rail's ADD may have made both
// between the part of the list that holds source rules and the part that holds
// guards. The source rule comes first, so a second list has it.
func (r *Rail) confirmGuards(f policy.Family, mine, alone []policy.Rule) ([]policy.Rule, error) {
	if len(alone) == 0 {
		return mine, nil
	}
	again, err := r.ownRules(f)
	if err != nil {
		return nil, err
	}
	for _, guard := range alone {
		if !slices.ContainsFunc(again, func(s policy.Rule) bool { return isSource(s) && s.From == guard.From }) {
			mine = append(mine, guard)
		}
	}
	return mine, nil
}

func (r *Rail) delRules(rules []policy.Rule) error {
	for _, rule := range rules {
		if err := r.Kernel.DelRule(rule); err != nil {
			return err
		}
	}
	return nil
}

// delRoutes removes the rail's routes from private tables and main. Routes of a link that
// is gone went with it; one that was renamed is found by what its tables say.
func (r *Rail) delRoutes(f policy.Family, o *owned) error {
	var found []kernel.FoundRoute
	indexes := o.indexes()
	for _, table := range o.tables {
		routes, err := r.ownRoutes(f, kernel.RouteFilter{Table: table, Protocol: policy.Protocol})
		if err != nil {
			return err
		}
		for _, route := range routes {
			if !slices.Contains(indexes, route.IfIndex) {
				indexes = append(indexes, route.IfIndex)
			}
		}
	}
	for _, index := range indexes {
		routes, err := r.ownRoutes(f, kernel.RouteFilter{IfIndex: index, Protocol: policy.Protocol})
		if err != nil {
			return err
		}
		found = append(found, routes...)
	}
	// Routes through a next hop first: the route that makes the hop reachable is theirs to need.
	for _, throughHop := range []bool{true, false} {
		for _, route := range found {
			if route.GW.IsValid() != throughHop {
				continue
			}
			if err := r.Kernel.DelRoute(route.Route); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownRoutes lists routes of railtune's. A kernel without the family has none.
func (r *Rail) ownRoutes(f policy.Family, filter kernel.RouteFilter) ([]kernel.FoundRoute, error) {
	found, err := r.Kernel.Routes(f, filter)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	return slices.DeleteFunc(found, func(route kernel.FoundRoute) bool { return !route.Ours() }), err
}

// owned finds out which of railtune's rules of one family belong to one rail.
type owned struct {
	ifname string
	links  []netstate.Link
	rules  []policy.Rule
	tables []uint32
}

func (o *owned) index() int {
	for _, l := range o.links {
		if l.Name == o.ifname {
			return l.Index
		}
	}
	return 0
}

// findTables collects the rail's tables: those its device rule names, those derived
// from its index, and those derived from an index that no link has and no device
// rule claims, which an interrupted removal leaves behind.
func (o *owned) findTables() {
	index := o.index()
	for _, rule := range o.rules {
		if rule.Action != policy.Lookup {
			continue
		}
		of, derived := plan.IndexOf(rule.Table)
		mine := rule.OIF == o.ifname && !o.claimedByLink(rule.Table) ||
			derived && index != 0 && of == index ||
			derived && !o.exists(of) && !o.claimed(rule.Table)
		if mine && !slices.Contains(o.tables, rule.Table) {
			o.tables = append(o.tables, rule.Table)
		}
	}
}

func (o *owned) exists(index int) bool {
	return slices.ContainsFunc(o.links, func(l netstate.Link) bool { return l.Index == index })
}

// claimedByLink reports whether another link that is there claims the table: the rail's
// own rule is then what a rename left behind.
func (o *owned) claimedByLink(table uint32) bool {
	return slices.ContainsFunc(o.rules, func(r policy.Rule) bool {
		return r.OIF != "" && r.OIF != o.ifname && r.Table == table && o.hasLink(r.OIF)
	})
}

// indexes are the interfaces the rail's routes can be on: its own, and those its derived
// tables are of.
func (o *owned) indexes() []int {
	var out []int
	if index := o.index(); index != 0 {
		out = append(out, index)
	}
	for _, table := range o.tables {
		if of, derived := plan.IndexOf(table); derived && o.exists(of) && !slices.Contains(out, of) {
			out = append(out, of)
		}
	}
	return out
}

func (o *owned) claimed(table uint32) bool {
	return slices.ContainsFunc(o.rules, func(r policy.Rule) bool { return r.OIF != "" && r.Table == table })
}

func isSource(r policy.Rule) bool { return r.Action == policy.Lookup && r.From.IsValid() }

// sources are the rail's source rules.
func (o *owned) sources() []policy.Rule {
	return o.filter(func(r policy.Rule) bool { return isSource(r) && slices.Contains(o.tables, r.Table) })
}

// claims are the rail's device rules. The table of another rail's device rule is
// that rail's.
func (o *owned) claims() []policy.Rule {
	return o.filter(func(r policy.Rule) bool {
		if r.OIF == "" || r.Action != policy.Lookup {
			return false
		}
		return r.OIF == o.ifname || slices.Contains(o.tables, r.Table) && !o.hasLink(r.OIF)
	})
}

func (o *owned) hasLink(name string) bool {
	return slices.ContainsFunc(o.links, func(l netstate.Link) bool { return l.Name == name })
}

// guards are the rail's guards: mine stand behind one of its source rules and no
// other rail's, alone behind none at all.
func (o *owned) guards() (mine, alone []policy.Rule) {
	for _, guard := range o.filter(func(r policy.Rule) bool { return r.Action == policy.Unreachable }) {
		behindMine, behindOther := false, false
		for _, s := range o.rules {
			if isSource(s) && s.From == guard.From {
				if slices.Contains(o.tables, s.Table) {
					behindMine = true
				} else {
					behindOther = true
				}
			}
		}
		switch {
		case behindOther:
		case behindMine:
			mine = append(mine, guard)
		default:
			alone = append(alone, guard)
		}
	}
	return mine, alone
}

func (o *owned) filter(keep func(policy.Rule) bool) []policy.Rule {
	var out []policy.Rule
	for _, r := range o.rules {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}
