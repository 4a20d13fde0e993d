package attach

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/policy"
)

// Firewall is what attach needs of the namespace's packet filter. firewall.IPTables is
// the real one.
type Firewall interface {
	// Usable says why there could be no chain for the interface, before any is made.
	Usable(ifname string, f policy.Family) error
	// Lines prints the chain as the commands that make it.
	Lines(ifname string, f policy.Family, from []netip.Prefix) []string
	// Accept makes what is missing of the chain that accepts, on the interface, what
	// the prefixes send, and tells did how to take back each step.
	Accept(ifname string, f policy.Family, from []netip.Prefix, did func(what string, back func() error)) error
	// Missing lists what of it is not there.
	Missing(ifname string, f policy.Family, from []netip.Prefix) ([]string, error)
	// Chains names the chains of the interface that are there.
	Chains(ifname string) ([]string, error)
	// Remove removes the interface's chain in both families, and does nothing where
	// there is none.
	Remove(ifname string) error
}

// checkFirewall finds out, before anything is changed, whether acceptRails can do its work.
func (r *Rail) checkFirewall(cfg *config.Config, p *plan.Plan, o *observation) error {
	for f := range r.accepted(cfg, p, o, true) {
		if err := r.Firewall.Usable(r.IfName, f); err != nil {
			return err
		}
	}
	return nil
}

// FirewallStatus reports, with the code Unavailable, that this node has iptables for
// neither family where the configuration asks for it.
func FirewallStatus(cfg *config.Config, fw Firewall) error {
	if !cfg.Firewall.AcceptRails {
		return nil
	}
	var first error
	for _, f := range families {
		err := fw.Usable("", f)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return cnierr.New(cnierr.Unavailable, "%w", first)
}

// acceptRails makes the rail's chains, where the configuration asks for them.
func (r *Rail) acceptRails(cfg *config.Config, p *plan.Plan, o *observation, j *journal) error {
	for f, from := range r.accepted(cfg, p, o, true) {
		if err := r.Firewall.Accept(r.IfName, f, from, j.did); err != nil {
			return err
		}
	}
	return nil
}

// firewallDrift adds what is missing of the rail's chains. Rules that others put before
// railtune's are none of its business.
func (r *Rail) firewallDrift(cfg *config.Config, p *plan.Plan, o *observation, drift *drifts) error {
	for f, from := range r.accepted(cfg, p, o, false) {
		missing, err := r.Firewall.Missing(r.IfName, f, from)
		if err != nil {
			return err
		}
		for _, line := range missing {
			drift.add(cnierr.Routing, "missing: %s", line)
		}
	}
	return nil
}

// delFirewall removes the rail's chains, whether or not the configuration still says
// that there are any.
func (r *Rail) delFirewall() error {
	if r.Firewall == nil {
		return nil
	}
	return r.Firewall.Remove(r.IfName)
}

// accepted yields, by family, the prefixes whose traffic the rail is to accept: those
// of its own addresses, the supernets, and, with advertised, those that router
// advertisements gave it so far. These come and go by themselves, so CHECK does not
// ask for them. A family in which the rail has none is left out, and both are where
// the configuration does not ask for this.
func (r *Rail) accepted(
	cfg *config.Config, p *plan.Plan, o *observation, advertised bool,
) iter.Seq2[policy.Family, []netip.Prefix] {
	if !cfg.Firewall.AcceptRails || r.Firewall == nil {
		return func(func(policy.Family, []netip.Prefix) bool) {}
	}
	var all []netip.Prefix
	for _, a := range p.Addresses {
		prefix := a.Masked()
		if on, ok := o.state.Rail.Find(a.Addr()); ok {
			prefix = on.Connected()
		}
		all = append(all, prefix)
	}
	all = append(all, p.Supernets...)
	for _, a := range o.state.Rail.Addrs {
		if advertised && a.FromRA {
			all = append(all, a.Connected())
		}
	}
	return func(yield func(policy.Family, []netip.Prefix) bool) {
		for _, f := range families {
			var from []netip.Prefix
			for _, prefix := range all {
				if policy.FamilyOf(prefix.Addr()) == f && !slices.Contains(from, prefix) {
					from = append(from, prefix)
				}
			}
			if len(from) > 0 && !yield(f, from) {
				return
			}
		}
	}
}
