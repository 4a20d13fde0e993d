package attach

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/sysctl"
)

// proveSettings judges the effective values, which is what the kernel acts on: the
// interface's file combined with conf/all. What conf/all overrides is named. Only
// the two values that the promise rests on fail an ADD.
func (r *Rail) proveSettings(p *plan.Plan) error {
	for _, s := range p.Settings {
		v, err := sysctl.Effective(r.Files, s.Key, r.IfName)
		if err != nil {
			return cnierr.New(cnierr.Sysctl, "%w", err)
		}
		if sysctl.Acceptable(s.Key, s.Value, v.Effective) {
			continue
		}
		if breaksPromise(s, v.Effective) {
			return cnierr.New(cnierr.Sysctl, "%s is %s, but the effective value is %s (%s): "+
				"net.ipv4.conf.all.%s=%s overrides it, and railtune never changes conf/all; set that to 0 or %s",
				s.Key.For(r.IfName), s.Value, v.Effective, v.Rule, s.Key.Leaf, v.All, s.Value)
		}
		r.Log.Warnf("%s=%s has effective %s%s because conf/all=%s (%s)",
			s.Key.For(r.IfName), s.Value, v.Effective, meaning(s.Key, v.Effective), v.All, v.Rule)
	}
	return r.warnRouteDependent()
}

// breaksPromise tells an overridden value that lets the rail answer for other
// interfaces' addresses, or ask with them, from one that is only not as wished.
// arp_ignore 3 ignores by scope and 8 answers nobody; arp_announce above 2 acts as 0
// (net/ipv4/arp.c, arp_ignore and arp_solicit).
func breaksPromise(s plan.Setting, effective string) bool {
	switch s.Key {
	case sysctl.ARPIgnore:
		return (s.Value == "1" || s.Value == "2") && effective != "1" && effective != "2"
	case sysctl.ARPAnnounce:
		return s.Value == "2" && effective != "2"
	}
	return false
}

func meaning(k sysctl.Key, value string) string {
	if k != sysctl.RPFilter {
		return ""
	}
	return map[string]string{"1": " (strict)", "2": " (loose)"}[value]
}

// warnRouteDependent tells of settings that make answering ARP depend on a route
// lookup: right as long as the rules are, and a puzzle once they are not.
func (r *Rail) warnRouteDependent() error {
	for _, k := range []sysctl.Key{sysctl.ARPFilter, sysctl.RPFilter} {
		v, err := sysctl.Effective(r.Files, k, r.IfName)
		if err != nil {
			return cnierr.New(cnierr.Sysctl, "%w", err)
		}
		if v.Effective == "1" {
			r.Log.Warnf("%s is effectively on for %s (%s; conf/all=%s, %s=%s): ARP answers then depend on the policy rules being right",
				k.Leaf, r.IfName, v.Rule, v.All, r.IfName, v.File)
		}
	}
	return nil
}

// proveLookups asks the kernel where packets leave. It is the proof that rules,
// tables and other tools' rules together do what the plan says.
func (r *Rail) proveLookups(p *plan.Plan, o *observation) error {
	for _, l := range p.Lookups {
		ifindex := 0
		if l.Bound {
			ifindex = p.IfIndex
		}
		hop, err := r.Kernel.Lookup(l.To, l.From, ifindex)
		if err == nil && hop.IfIndex == p.IfIndex && hop.Kind == unix.RTN_UNICAST && hop.GW == l.GW {
			continue
		}
		return cnierr.New(cnierr.Routing, "a packet from %s to %s (%s)%s %s, and must leave by %s%s: "+
			"a rule before priority %d or another tool's route wins over railtune's",
			l.From, l.To, l.Why, boundText(l, r.IfName), found(hop, err, o), r.IfName, viaText(l.GW), priorityOf(p)).With(r.earlierRules(p))
	}
	r.warnLocalRule(p, o)
	return nil
}

func boundText(l plan.Lookup, ifname string) string {
	if l.Bound {
		return " on a socket bound to " + ifname
	}
	return ""
}

func viaText(gw netip.Addr) string {
	if !gw.IsValid() {
		return " directly"
	}
	return " via " + gw.String()
}

func found(hop kernel.Hop, err error, o *observation) string {
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return "has no route (" + err.Error() + ")"
	case err != nil:
		return "has no answer (" + err.Error() + ")"
	}
	return "would leave by " + o.nameOf(hop.IfIndex) + viaText(hop.GW)
}

func priorityOf(p *plan.Plan) uint32 {
	lowest := uint32(0)
	for _, r := range p.Rules {
		if lowest == 0 || r.Priority < lowest {
			lowest = r.Priority
		}
	}
	return lowest
}

// earlierRules lists the rules that the kernel tries before the plan's, as evidence.
func (r *Rail) earlierRules(p *plan.Plan) string {
	var lines []string
	for _, f := range p.Families() {
		rules, err := r.Kernel.RulesUpTo(f, priorityOf(p)-1, func(found *kernel.FoundRule) bool {
			return found.Priority != 0
		})
		if err != nil {
			continue
		}
		for _, rule := range rules[:min(len(rules), maxEvidence)] {
			lines = append(lines, rule.String())
		}
	}
	return strings.Join(lines, "\n")
}

// maxEvidence bounds how many objects an error lists.
const maxEvidence = 16

// warnLocalRule notices a namespace whose rule for table local comes after
// railtune's (some meshes move it): then packets between the pod's own addresses
// are routed out.
func (r *Rail) warnLocalRule(p *plan.Plan, o *observation) {
	for _, a := range p.Own() {
		if have, _ := o.state.Rail.Find(a); have.Tentative {
			continue // not in table local before duplicate address detection ends
		}
		hop, err := r.Kernel.Lookup(a, a, 0)
		if err == nil && hop.Kind == unix.RTN_LOCAL {
			continue
		}
		r.Log.Warnf("a packet from %s to itself is not local: the rule for table local comes after railtune's rules; "+
			"move it to a priority below %d", a, priorityOf(p))
		return
	}
}
