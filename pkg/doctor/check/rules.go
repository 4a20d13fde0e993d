package check

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// orphans looks for what railtune made for interfaces and addresses that are gone.
func (j *judge) orphans() {
	var f *Finding
	orphan := func(format string, text string) {
		if f == nil {
			f = j.find(Orphan, "", "rules or routes of railtune's are left whose interface or address is gone")
		}
		f.saw(format, text)
	}
	for _, r := range j.Rules {
		if r.Protocol == policy.Protocol && j.orphaned(r) {
			orphan("%s", r.Text)
			j.run(f, "%s", deletion(addRule(r.Rule)))
		}
	}
	for _, r := range j.Routes {
		index, derived := plan.IndexOf(r.Table)
		if r.Ours && derived && index != r.IfIndex {
			orphan("%s", r.Text)
			j.run(f, "%s", deletion(addRoute(r.Route)))
		}
	}
}

func (j *judge) orphaned(r facts.Rule) bool {
	if r.OIF != "" && !j.hasLink(r.OIF) || r.From.IsValid() && j.Owner(r.From.Addr()) == "" {
		return true
	}
	index, derived := plan.IndexOf(r.Table)
	return derived && !j.hasIndex(index)
}

func (j *judge) hasLink(name string) bool {
	for i := range j.Links {
		if j.Links[i].Name == name {
			return true
		}
	}
	return false
}

func (j *judge) hasIndex(index int) bool {
	for i := range j.Links {
		if j.Links[i].Index == index {
			return true
		}
	}
	return false
}

// tuned says that railtune made rules for the rail.
func (j *judge) tuned(r *facts.Rail) bool {
	return slices.ContainsFunc(j.Rules, func(x facts.Rule) bool {
		return x.Ours && (x.OIF == r.Name || x.From.IsValid() && r.Link.Has(x.From.Addr()))
	})
}

// objects are railtune's rules and table for one address.
type objects struct {
	table            uint32
	lookup, device   bool
	guard, connected bool
	unguarded        bool // by design: see plan.unguarded
	priority         uint32
	defaultRoute     bool
}

func (j *judge) objectsOf(r *facts.Rail, a facts.Address) objects {
	o := objects{priority: config.DefaultRulePriority}
	f := policy.FamilyOf(a.Address.Addr())
	for _, x := range j.Rules {
		if !x.Ours || x.Family != f {
			continue
		}
		from := x.From.IsValid() && x.From.Addr() == a.Address.Addr()
		switch {
		case from && x.Action == policy.Lookup:
			o.lookup, o.table, o.priority = true, x.Table, x.Priority
		case from:
			o.guard = true
		case x.OIF == r.Name:
			o.device = true
			if o.table == 0 {
				o.table, o.priority = x.Table, x.Priority-1
			}
		}
	}
	if o.table == 0 {
		o.table = plan.TableBase + uint32(r.Index)
	}
	for _, route := range j.Routes {
		if route.Table != o.table || route.IfIndex != r.Index || route.Family() != f {
			continue
		}
		o.connected = o.connected || route.Dst == a.OnLink
		o.defaultRoute = o.defaultRoute || route.Dst.Bits() == 0
	}
	o.connected = o.connected || a.OnLink.IsSingleIP()
	o.unguarded = f == policy.IPv6 && !o.defaultRoute && j.advertised(r)
	return o
}

// ownRules compares railtune's rules and private tables with what its plan makes.
func (j *judge) ownRules() {
	for i := range j.Rails {
		r := &j.Rails[i]
		if !j.tuned(r) || !r.Up {
			continue
		}
		for _, a := range static(r) {
			o := j.objectsOf(r, a)
			switch {
			case !o.lookup || !o.device || !o.guard && !o.unguarded:
				f := j.find(RuleMissing, r.Name, "some of railtune's rules for %s (%s) are gone", a.Address.Addr(), r.Name)
				j.complete(f, r, a, o)
				f.missing()
			case !o.connected:
				f := j.find(RouteMissing, r.Name, "the private table %d of %s has lost its routes; the guard rule stops its packets", o.table, r.Name)
				j.complete(f, r, a, o)
				f.missing()
				f.advise("routes by gateways are not known here: delete the pod, or run railtune's ADD again, where there were some")
			}
		}
	}
}

// missing shows what the remedy makes as what is not there.
func (f *Finding) missing() {
	for _, command := range f.Remedy {
		f.saw("missing: %s", command)
	}
}

// complete makes what is missing of a rail's rules and table for one address, in the order
// in which ADD makes it.
func (j *judge) complete(f *Finding, r *facts.Rail, a facts.Address, o objects) {
	family := policy.FamilyOf(a.Address.Addr())
	from := netip.PrefixFrom(a.Address.Addr(), a.Address.Addr().BitLen())
	rule := policy.Rule{Family: family, Priority: o.priority, Action: policy.Lookup, Table: o.table, Protocol: policy.Protocol}
	if !o.device {
		device := rule
		device.Priority, device.OIF = o.priority+1, r.Name
		j.run(f, "%s", addRule(device))
	}
	if !o.connected {
		j.run(f, "%s", addRoute(j.private(r, a, o, a.OnLink, netip.Addr{})))
	}
	if gw, ok := j.gatewayOf(r, a); ok && !o.defaultRoute && !o.connected {
		j.run(f, "%s", addRoute(j.private(r, a, o, netip.PrefixFrom(zero(family), 0), gw)))
	}
	if !o.lookup {
		lookup := rule
		lookup.From = from
		j.run(f, "%s", addRule(lookup))
	}
	if !o.guard && !o.unguarded {
		guard := rule
		guard.From, guard.Priority, guard.Action, guard.Table = from, o.priority+2, policy.Unreachable, 0
		j.run(f, "%s", addRule(guard))
	}
}

// private is a route of a rail's private table, as the plan makes it.
func (j *judge) private(r *facts.Rail, a facts.Address, o objects, dst netip.Prefix, gw netip.Addr) policy.Route {
	out := policy.Route{Table: o.table, Dst: dst, GW: gw, Dev: r.Name, IfIndex: r.Index, Protocol: policy.Protocol}
	if dst.Addr().Is4() {
		out.Src = a.Address.Addr()
		if !gw.IsValid() {
			out.Scope = policy.OnLink
		}
	} else {
		out.Metric = 1024 // what the kernel stores where none is given
	}
	return out
}

// gatewayOf is a gateway that a route of the rail names, in the address's prefix.
func (j *judge) gatewayOf(r *facts.Rail, a facts.Address) (netip.Addr, bool) {
	for _, g := range r.Gateways {
		if a.OnLink.Contains(g.Address) && j.Owner(g.Address) == "" {
			return g.Address, true
		}
	}
	return netip.Addr{}, false
}

func zero(f policy.Family) netip.Addr {
	if f == policy.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// hops looks for next hops that lead back here.
func (j *judge) hops() {
	for _, r := range j.Routes {
		rail, is := j.Rail(r.Dev)
		if !is || !r.GW.IsValid() || r.Kind != unix.RTN_UNICAST {
			continue
		}
		if owner := j.Owner(r.GW); owner != "" {
			f := j.find(NextHopLoops, r.Dev, "the next hop %s of %s is the address of %s in this namespace: packets never leave",
				r.GW, r.DstText(), owner).saw("%s", r.Text)
			j.run(f, "%s", deletion(addRoute(r.Route)))
			continue
		}
		for _, e := range rail.Entries {
			if owner := j.ownerOfMAC(rail, e); e.Address == r.GW && owner != "" && !j.found(r.Dev, NextHopLoops) {
				f := j.find(NextHopLoops, r.Dev, "the next hop %s of %s has the MAC of %s in this namespace: packets come back",
					r.GW, r.DstText(), owner).saw("%s", r.Text).saw("neighbour entry %s %s %s", e.Address, e.MAC, e.State)
				j.run(f, "ip neigh del %s dev %s", e.Address, Quoted(r.Dev))
			}
		}
	}
}
