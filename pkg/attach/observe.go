package attach

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// observation is one snapshot of a namespace.
type observation struct {
	state netstate.State
	// rules are railtune's, and any that point at a table railtune may use.
	rules []kernel.FoundRule
	// noRules holds, by family, why rules could not be listed.
	noRules map[policy.Family]error
	// table is the table given by number, 0 for a derived one.
	table int
	// first says that only the rules were listed that come before or with railtune's
	// own, and that nothing among them is of this rail: most ADDs are a rail's first.
	first bool
}

// everything is a priority behind which there is no rule.
const everything = math.MaxUint32

// scope is how much of the namespace is looked at.
type scope struct {
	// table is the one given by number, 0 for a derived one.
	table int
	// last is the last priority of the rules that are listed. Other tools can have ten
	// thousand behind railtune's, and listing them takes longer than an ADD. They matter only
	// where an earlier plan of this rail left something, which complete is for.
	last uint32
	// defaults asks for main's default routes. The kernel tries every rule to find them.
	defaults bool
}

// observe takes the snapshot that a plan is computed from.
func (r *Rail) observe(s scope) (*observation, error) {
	links, err := r.Kernel.Links()
	if err != nil {
		return nil, err
	}
	o := &observation{state: netstate.State{NetNS: r.NetNS}, table: s.table, first: s.last != everything}
	if !o.split(links, r.IfName) {
		return nil, cnierr.New(cnierr.Link, "%s not found in %s (userspace device?): "+
			"railtune tunes a network interface, and has to run after the plugin that makes it", r.IfName, r.NetNS)
	}
	if err := r.observeIPv6(&o.state); err != nil {
		return nil, err
	}
	r.observeRules(o, s.last)
	if s.defaults {
		r.observeDefaults(&o.state)
	}
	if o.first && o.doubtful() {
		r.complete(o)
	}
	return o, r.observeRADefault(&o.state)
}

func (o *observation) split(links []netstate.Link, ifname string) (found bool) {
	for _, l := range links {
		if l.Name == ifname {
			o.state.Rail, found = l, true
		} else {
			o.state.Others = append(o.state.Others, l)
		}
	}
	return found
}

func (r *Rail) observeIPv6(s *netstate.State) error {
	dir := "net/ipv6/conf/" + r.IfName
	s.IPv6Kernel, s.IPv6 = r.Files.Exists("net/ipv6/conf"), r.Files.Exists(dir)
	if !s.IPv6 {
		return nil
	}
	for leaf, dst := range map[string]*bool{
		"disable_ipv6": &s.IPv6Disabled, "forwarding": &s.Forwarding6, "accept_ra": &s.AcceptsRA,
	} {
		v, err := r.Files.Read(dir + "/" + leaf)
		if err != nil {
			return cnierr.New(cnierr.Sysctl, "%w", err)
		}
		*dst = v != "0"
	}
	return nil
}

// observeRules lists the rules that concern railtune and marks the links it tuned.
// A family without policy routing is not an error yet: the plan may not need it.
func (r *Rail) observeRules(o *observation, last uint32) {
	o.rules, o.noRules = nil, map[policy.Family]error{}
	for _, f := range families {
		if f == policy.IPv6 && !o.state.IPv6Kernel {
			continue
		}
		rules, err := r.Kernel.RulesUpTo(f, last, func(found *kernel.FoundRule) bool {
			return found.Ours() || found.Table >= plan.TableBase || found.Table != 0 && found.Table == uint32(o.table)
		})
		if err != nil {
			o.noRules[f] = kernel.NoPolicyRouting(err)
		}
		o.rules = append(o.rules, rules...)
	}
	for i := range o.state.Others {
		l := &o.state.Others[i]
		l.Tuned = o.hasDeviceRule(l.Name)
	}
	o.state.Rail.Tuned = o.hasDeviceRule(r.IfName)
}

// complete lists the rules that the first look left out.
func (r *Rail) complete(o *observation) {
	o.first = false
	r.observeRules(o, everything)
}

// doubtful reports whether a link with a default route could be a rail whose rules have
// another priority: the plan must know rails from the cluster's interface.
func (o *observation) doubtful() bool {
	return slices.ContainsFunc(o.state.Others, func(l netstate.Link) bool {
		return l.HasDefault && !l.Tuned && l.Name != "eth0"
	})
}

func (o *observation) hasDeviceRule(ifname string) bool {
	for _, rule := range o.rules {
		if rule.Ours() && rule.OIF == ifname {
			return true
		}
	}
	return false
}

// observeDefaults finds the default routes that a supernet in main must not
// overtake, by lookups: their cost does not depend on how many routes main has.
func (r *Rail) observeDefaults(s *netstate.State) {
	first := 0
	for _, l := range s.Others {
		if l.Name == "eth0" {
			first = l.Index
		}
	}
	for _, f := range families {
		if f == policy.IPv6 && !s.IPv6Kernel {
			continue
		}
		hop, ok := r.Kernel.DefaultThrough(f, first)
		if !ok {
			continue
		}
		for i := range s.Others {
			if l := &s.Others[i]; l.Index == hop.IfIndex {
				l.HasDefault = true
				if hop.GW.IsValid() {
					l.DefaultVia = append(l.DefaultVia, hop.GW)
				}
			}
		}
	}
}

// observeRADefault looks for a default route that a router advertisement gave the rail.
func (r *Rail) observeRADefault(s *netstate.State) error {
	if !s.IPv6 {
		return nil
	}
	routes, err := r.Kernel.Routes(policy.IPv6, kernel.RouteFilter{
		Table: policy.MainTable, IfIndex: s.Rail.Index, Protocol: unix.RTPROT_RA,
	})
	for _, route := range routes {
		s.RADefault = s.RADefault || route.Dst.Bits() == 0 && route.Kind == unix.RTN_UNICAST
	}
	return err
}
