package check

import (
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// ways judges by where packets from a rail's addresses leave. What leads by the rail
// because of other tools' rules is as good as what railtune makes.
func (j *judge) ways() {
	for i := range j.Rails {
		r := &j.Rails[i]
		if j.found(r.Name, RuleMissing, RouteMissing, RailDown, NextHopLoops) {
			continue
		}
		for _, a := range r.Addresses {
			if a.State != "usable" || a.Address.Addr().IsLinkLocalUnicast() {
				continue
			}
			switch {
			case a.FromRA:
				j.advertisedWay(r, a)
			case j.tuned(r):
				j.tunedWay(r, a)
			default:
				j.untunedWay(r, a)
			}
		}
	}
}

// strays returns the lookups from an address that leave by another interface, or that
// fail although their destination is on the rail's own link.
func strays(r *facts.Rail, a facts.Address, bound bool, purposes ...facts.Purpose) []facts.Lookup {
	var out []facts.Lookup
	for _, l := range r.Lookups {
		near := l.Purpose == facts.ToOwnSubnet || l.Purpose == facts.ToGateway && a.OnLink.Contains(l.To)
		if l.From == a.Address.Addr() && l.Bound == bound && (len(purposes) == 0 || slices.Contains(purposes, l.Purpose)) &&
			(l.Error == "" && l.Dev != r.Name || l.Error != "" && near) {
			out = append(out, l)
		}
	}
	return out
}

// advertisedWay: routes learned from router advertisements live in main, where only a
// socket bound to the device is sure of its rail.
func (j *judge) advertisedWay(r *facts.Rail, a facts.Address) {
	if bad := strays(r, a, true, facts.ToOwnSubnet); len(bad) > 0 && !j.found(r.Name, RAIgnored, RADefaultMissing) {
		j.astray(WrongWay, r, a, bad)
	}
}

// tunedWay: a packet from the address leaves by the rail, or not at all.
func (j *judge) tunedWay(r *facts.Rail, a facts.Address) {
	bad := append(strays(r, a, false), strays(r, a, true)...)
	if len(bad) == 0 {
		return
	}
	o := j.objectsOf(r, a)
	if x, ok := j.culprit(r, a, bad[0], o.priority); ok {
		f := j.find(ForeignRuleWins, r.Name, "a rule of another tool takes packets from %s (%s) before railtune's", a.Address.Addr(), r.Name)
		f.saw("%s", x.Text)
		for _, l := range bad {
			f.saw("%s", wayText(l))
		}
		if !x.More {
			j.run(f, "%s", deletion(addRule(x.Rule)))
			return
		}
		f.advise("the rule has more conditions than are shown: look before you delete it: ip rule show priority %d", x.Priority)
		j.run(f, "ip %srule del priority %d lookup %d", ipFlag(x.Family), x.Priority, x.Table)
		return
	}
	f := j.astray(WrongWay, r, a, bad)
	f.advise("railtune's rules are there: look at the routes of table %d: ip route show table %d", o.table, o.table)
}

// culprit is the rule of others that decided a lookup before railtune's: it leads to the
// table that answered, or refuses. One whose conditions are known goes before one that
// may have matched.
func (j *judge) culprit(r *facts.Rail, a facts.Address, l facts.Lookup, before uint32) (facts.Rule, bool) {
	for _, more := range []bool{false, true} {
		for _, x := range j.Rules {
			decides := l.Error == "" && x.Action == policy.Lookup && x.Table == l.Table || l.Error != "" && x.Action != policy.Lookup
			if x.Family == policy.FamilyOf(a.Address.Addr()) && !x.Ours && x.More == more && x.Priority < before && decides && mayMatch(x, r, a) {
				return x, true
			}
		}
	}
	return facts.Rule{}, false
}

// mayMatch says whether a rule can match a packet from the address.
func mayMatch(x facts.Rule, r *facts.Rail, a facts.Address) bool {
	return (!x.From.IsValid() || x.From.Contains(a.Address.Addr())) && (x.OIF == "" || x.OIF == r.Name)
}

// untunedWay: where a subnet is shared, rules have to tell the rails apart. Sockets
// bound to the device, RDMA's among them, find their rail without.
func (j *judge) untunedWay(r *facts.Rail, a facts.Address) {
	bad := strays(r, a, false, facts.ToOwnSubnet)
	if len(bad) == 0 {
		return
	}
	o := j.objectsOf(r, a)
	o.priority = j.before(r, a, o.priority)
	var f *Finding
	dependent, depends := dependsOnRoutes(r, a.Address.Addr())
	taker, taken := j.taker(r, a, bad[0])
	switch bound := strays(r, a, true, facts.ToOwnSubnet); {
	case depends && dependent.File != "1":
		f = j.find(AllOverrides, r.Name, "%s answers ARP by routes, since conf/all switches %s on, and its routes lead elsewhere", r.Name, dependent.Key.Leaf)
		j.overridden(f, r, []facts.Setting{dependent}, "0")
	case depends && taken:
		f = j.find(RuleWithoutDevice, r.Name, "%s answers ARP by routes (%s=1), and a rule without source and device leads elsewhere", r.Name, dependent.Key.Leaf)
		f.saw("%s", taker.Text)
	case depends:
		f = j.find(ARPDependsOnRoutes, r.Name, "%s answers ARP by routes (%s=1), and its routes lead elsewhere", r.Name, dependent.Key.Leaf)
	case j.misled(r, a, bad[0]) != "":
		f = j.find(WrongWay, r.Name, "a rule leads packets from %s (%s) to another interface", a.Address.Addr(), r.Name)
		f.saw("%s", j.misled(r, a, bad[0]))
	case len(bound) > 0:
		f = j.find(WrongWay, r.Name, "packets from %s do not leave by %s, also on sockets bound to it", a.Address.Addr(), r.Name)
		bad = append(bad, bound...)
	default:
		f = j.find(SourceRuleMissing, r.Name, "no rule tells packets from %s (%s) from another rail's; sockets bound to the device are right",
			a.Address.Addr(), r.Name)
		if other := j.shares(r, a); other != "" {
			f.saw("%s and %s have addresses in %s", r.Name, other, a.OnLink)
		}
	}
	if depends {
		f.Blames = append(f.Blames, dependent.Key)
	}
	for _, l := range bad {
		f.saw("%s", wayText(l))
	}
	j.complete(f, r, a, o)
}

// before is a priority for source rules that comes before the rules of others that
// match everything, with room for the device rule and the guard behind it.
func (j *judge) before(r *facts.Rail, a facts.Address, priority uint32) uint32 {
	for _, x := range j.Rules {
		if x.Family == policy.FamilyOf(a.Address.Addr()) && !x.Ours && mayMatch(x, r, a) && x.Priority > 3 && x.Priority <= priority+2 {
			priority = x.Priority - 3
		}
	}
	return priority
}

// taker is the rule without source and device that led a lookup astray.
func (j *judge) taker(r *facts.Rail, a facts.Address, l facts.Lookup) (facts.Rule, bool) {
	for _, x := range j.Rules {
		if x.Family == policy.FamilyOf(a.Address.Addr()) && !x.Ours && !x.More && !x.From.IsValid() && x.OIF == "" &&
			x.Action == policy.Lookup && x.Table == l.Table {
			return x, true
		}
	}
	return facts.Rule{}, false
}

// misled returns the rule about the address that led a lookup astray.
func (j *judge) misled(r *facts.Rail, a facts.Address, l facts.Lookup) string {
	for _, x := range j.Rules {
		if !x.Ours && !x.More && x.From.IsValid() && x.From.Contains(a.Address.Addr()) && x.OIF == "" && x.Table == l.Table {
			return x.Text
		}
	}
	return ""
}

func (j *judge) astray(code Code, r *facts.Rail, a facts.Address, bad []facts.Lookup) *Finding {
	f := j.find(code, r.Name, "packets from %s (%s) leave by another interface, or not at all", a.Address.Addr(), r.Name)
	for _, l := range bad {
		f.saw("%s", wayText(l))
	}
	return f
}

// wayText says a lookup as "ip route get" would.
func wayText(l facts.Lookup) string {
	text := "from " + l.From.String() + " to " + l.To.String() + " (" + string(l.Purpose) + ")"
	if l.Bound {
		text += " bound to the rail"
	}
	if l.Error != "" {
		return text + ": " + l.Error
	}
	text += ": dev " + l.Dev
	if l.GW.IsValid() {
		text += " via " + l.GW.String()
	}
	return text
}

// supernets looks for rails without a way to where other rails have one, and to peers.
func (j *judge) supernets() {
	for i := range j.Rails {
		r := &j.Rails[i]
		if j.found(r.Name, RuleMissing, RouteMissing, RailDown, WrongWay, ForeignRuleWins) {
			continue
		}
		for _, l := range r.Lookups {
			if !l.Bound || l.Error == "" && l.Dev == r.Name {
				continue
			}
			switch {
			case l.Purpose == facts.ToSupernet && !j.found(r.Name, SupernetMissing):
				f := j.find(SupernetMissing, r.Name, "%s has no route into %s, which another rail has: cross-rail traffic fails", r.Name, l.Prefix)
				f.saw("%s", wayText(l))
				j.addSupernet(f, r, l)
			case l.Purpose == facts.ToPeer && !j.found(r.Name, SupernetMissing):
				f := j.find(PeerUnreachable, r.Name, "no route leads from %s (%s) to the peer %s", l.From, r.Name, l.To)
				f.saw("%s", wayText(l))
				j.peerRoute(f, r, l)
			}
		}
	}
}

func (j *judge) addSupernet(f *Finding, r *facts.Rail, l facts.Lookup) {
	for _, a := range static(r) {
		if a.Address.Addr() != l.From {
			continue
		}
		gw, ok := j.gatewayOf(r, a)
		if !ok {
			f.advise("the gateway of %s is not known here: give it as supernets[].gw, or in the IPAM", r.Name)
			return
		}
		if o := j.objectsOf(r, a); o.lookup {
			j.run(f, "%s", addRoute(j.private(r, a, o, l.Prefix, gw)))
			return
		}
		route := j.private(r, a, objects{table: policy.MainTable}, l.Prefix, gw)
		route.Metric = metric(r)
		j.run(f, "%s", addRoute(route))
	}
}

// metric is what railtune gives a rail's supernet in main, so that each rail has its own.
func metric(r *facts.Rail) uint32 { return uint32(plan.MetricBase + r.Index) }

// peerRoute adds a host route to a peer where the rail's gateway is known.
func (j *judge) peerRoute(f *Finding, r *facts.Rail, l facts.Lookup) {
	l.Prefix = netip.PrefixFrom(l.To, l.To.BitLen())
	j.addSupernet(f, r, l)
}
