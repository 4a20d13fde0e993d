package attach

import (
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
}

// observe takes the snapshot that a plan is computed from.
func (r *Rail) observe(table int) (*observation, error) {
	links, err := r.Kernel.Links()
	if err != nil {
		return nil, err
	}
	o := &observation{state: netstate.State{NetNS: r.NetNS}}
	if !o.split(links, r.IfName) {
		return nil, cnierr.New(cnierr.Link, "%s not found in %s (userspace device?): "+
			"railtune tunes a network interface, and has to run after the plugin that makes it", r.IfName, r.NetNS)
	}
	if err := r.observeIPv6(&o.state); err != nil {
		return nil, err
	}
	r.observeRules(o, table)
	r.observeDefaults(&o.state)
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
	for leaf, dst := range map[string]*bool{"disable_ipv6": &s.IPv6Disabled, "forwarding": &s.Forwarding6} {
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
func (r *Rail) observeRules(o *observation, table int) {
	o.noRules = map[policy.Family]error{}
	for _, f := range families {
		if f == policy.IPv6 && !o.state.IPv6Kernel {
			continue
		}
		rules, err := r.Kernel.Rules(f, func(found *kernel.FoundRule) bool {
			return found.Ours() || found.Table >= plan.TableBase || found.Table != 0 && found.Table == uint32(table)
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
