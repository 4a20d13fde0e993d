package gather

import (
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// maxRules bounds how many rules of others are kept: a node can have ten thousand, and
// those behind the first hundreds that match everything decide nothing.
const maxRules = 512

// lastRule is the priority of the kernel's own rule for table main; what comes after it
// is asked only where main has no route.
const lastRule = 32766

// rules keeps railtune's rules and those of others that can match a packet from an
// address of this namespace.
func (l *look) rules() error {
	local := map[netip.Addr]bool{}
	for i := range l.links {
		for _, a := range l.links[i].Addrs {
			local[a.Prefix.Addr()] = true
		}
	}
	for _, f := range l.families() {
		others, total := 0, 0
		found, err := l.kernel.Rules(f, func(r *kernel.FoundRule) bool {
			total++
			if r.Ours() || r.Protocol == policy.Protocol {
				return true
			}
			if r.Priority == 0 || r.Priority >= lastRule || others >= maxRules || !canMatch(r, local) {
				return false
			}
			others++
			return true
		})
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
			l.note("%s rules: this kernel has no policy routing", f)
			continue
		}
		if err != nil {
			return err
		}
		l.RuleCount += total
		for _, r := range found {
			l.Rules = append(l.Rules, facts.Rule{Rule: r.Rule, Text: facts.RuleText(r.Rule), More: r.More, Ours: r.Ours()})
		}
		if others == maxRules {
			l.note("%s rules: more than %d of others can match here; only the first are shown", f, maxRules)
		}
	}
	if l.Rules == nil {
		l.Rules = []facts.Rule{}
	}
	return nil
}

func canMatch(r *kernel.FoundRule, local map[netip.Addr]bool) bool {
	if !r.From.IsValid() {
		return true
	}
	if r.From.IsSingleIP() {
		return local[r.From.Addr()]
	}
	for a := range local {
		if r.From.Contains(a) {
			return true
		}
	}
	return false
}

// routes keeps the routes that concern a rail, default routes, and railtune's.
func (l *look) routes() error {
	l.Routes = []facts.Route{}
	for _, f := range l.families() {
		found, err := l.kernel.Routes(f, kernel.RouteFilter{})
		if err != nil {
			return err
		}
		for _, r := range found {
			_, rail := l.index[r.IfIndex]
			isDefault := r.Dst.Bits() == 0 && r.Kind == unix.RTN_UNICAST
			if !rail && !isDefault && r.Protocol != policy.Protocol && r.Table < plan.TableBase {
				continue
			}
			if r.Dst.Addr().IsMulticast() {
				continue
			}
			r.Dev = l.nameOf(r.IfIndex)
			route := facts.Route{Route: r.Route, Text: "ip " + r.String(), Kind: r.Kind, More: r.More, Ours: r.Ours()}
			l.Routes = append(l.Routes, route)
			l.gateway(route)
		}
	}
	return nil
}

// gateway notes the next hop of a rail's route.
func (l *look) gateway(r facts.Route) {
	i, rail := l.index[r.IfIndex]
	if !rail || !r.GW.IsValid() {
		return
	}
	known := l.Rails[i].Gateways
	if !slices.ContainsFunc(known, func(g facts.Gateway) bool { return g.Address == r.GW }) {
		l.Rails[i].Gateways = append(known, facts.Gateway{Address: r.GW, Route: r.Text})
	}
}
