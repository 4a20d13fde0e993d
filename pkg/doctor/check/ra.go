package check

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
)

// acceptDefault is whether default routes of router advertisements are taken.
func acceptDefault() sysctl.Key {
	return sysctl.Key{Family: sysctl.IPv6, Tree: sysctl.Conf, Leaf: "accept_ra_defrtr"}
}

// expectsRA says that a rail lives on router advertisements: it has an address from one,
// or none but link-local ones, which one would change.
func (j *judge) expectsRA(r *facts.Rail) bool {
	if !r.IPv6 || r.Effective(sysctl.DisableIPv6) == "1" {
		return false
	}
	changed := r.Effective(sysctl.AcceptRA) != "1" || r.Effective(sysctl.Forwarding6) == "1"
	return r.FromRA() || r.Up && !global(r) && (j.anyRA() || changed && !j.anyStatic())
}

// anyStatic says that some rail has an address that was configured.
func (j *judge) anyStatic() bool {
	for i := range j.Rails {
		if len(static(&j.Rails[i])) > 0 {
			return true
		}
	}
	return false
}

// anyRA says that some rail has an address from a router advertisement.
func (j *judge) anyRA() bool {
	for i := range j.Rails {
		if j.Rails[i].FromRA() {
			return true
		}
	}
	return false
}

// acceptsRA is the kernel's own question, asked of the interface's values alone
// (net/ipv6/ndisc.c, ipv6_accept_ra).
func acceptsRA(r *facts.Rail) bool {
	v := r.Effective(sysctl.AcceptRA)
	return v == "2" || v == "1" && r.Effective(sysctl.Forwarding6) == "0"
}

// advertisements judges rails that live on router advertisements.
func (j *judge) advertisements() {
	for i := range j.Rails {
		r := &j.Rails[i]
		if !j.expectsRA(r) {
			continue
		}
		if !acceptsRA(r) {
			j.ignored(r)
			continue
		}
		if r.FromRA() && !j.hasDefault(r) && r.Effective(acceptDefault()) != "0" {
			f := j.find(RADefaultMissing, r.Name, "%s has an address from a router advertisement and no default route", r.Name).
				saw("%s=%s, %s=%s: the next router advertisement brings it back", sysctl.AcceptRA.For(r.Name), r.Effective(sysctl.AcceptRA),
					sysctl.Forwarding6.For(r.Name), r.Effective(sysctl.Forwarding6))
			j.solicit(f, r)
		}
	}
}

func (j *judge) ignored(r *facts.Rail) {
	what := "its default route is gone"
	switch {
	case !r.FromRA():
		what = "it will not get an address"
	case j.hasDefault(r):
		what = "its default route goes when forwarding is written again, or when it expires"
	}
	f := j.find(RAIgnored, r.Name, "%s ignores router advertisements: %s", r.Name, what).
		saw("%s=%s and %s=%s", sysctl.AcceptRA.For(r.Name), r.Effective(sysctl.AcceptRA), sysctl.Forwarding6.For(r.Name), r.Effective(sysctl.Forwarding6))
	f.Blames = append(f.Blames, sysctl.AcceptRA)
	j.set(f, sysctl.AcceptRA, r.Name, "2")
	j.solicit(f, r)
}

// solicit makes the kernel ask for a router advertisement: it does when the link's only
// link-local address has passed duplicate address detection (net/ipv6/addrconf.c,
// addrconf_dad_completed), and else waits for the next unsolicited one.
func (j *judge) solicit(f *Finding, r *facts.Rail) {
	for _, a := range r.Addresses {
		if a.Address.Addr().Is6() && a.Address.Addr().IsLinkLocalUnicast() {
			f.advise("makes the kernel solicit a router advertisement; the next unsolicited one serves as well")
			j.run(f, "ip -6 addr del %s dev %s", a.Address, Quoted(r.Name))
			j.run(f, "ip -6 addr add %s dev %s", a.Address, Quoted(r.Name))
			return
		}
	}
}

// advertised says that main has a default route from a router advertisement by the rail.
func (j *judge) advertised(r *facts.Rail) bool {
	return slices.ContainsFunc(j.Routes, func(x facts.Route) bool {
		return x.Family() == policy.IPv6 && x.Dst.Bits() == 0 && x.IfIndex == r.Index && x.Table == policy.MainTable && x.Protocol == unix.RTPROT_RA
	})
}

// hasDefault says that some table has an IPv6 default route through the rail.
func (j *judge) hasDefault(r *facts.Rail) bool {
	for _, route := range j.Routes {
		if route.Dst == netip.PrefixFrom(netip.IPv6Unspecified(), 0) && route.IfIndex == r.Index && route.Kind == unix.RTN_UNICAST {
			return true
		}
	}
	return false
}

// competing looks for default routes of rails that win over the cluster's in main.
func (j *judge) competing() {
	for _, family := range []policy.Family{policy.IPv4, policy.IPv6} {
		var rails, others []facts.Route
		for _, r := range j.Routes {
			if r.Family() != family || r.Table != policy.MainTable || r.Dst.Bits() != 0 || r.Kind != unix.RTN_UNICAST {
				continue
			}
			if _, rail := j.Rail(r.Dev); rail {
				rails = append(rails, r)
			} else {
				others = append(others, r)
			}
		}
		if len(rails) > 0 && len(others) > 0 {
			j.compete(family, rails, others)
		}
	}
}

func (j *judge) compete(family policy.Family, rails, others []facts.Route) {
	best := others[0]
	for _, r := range others {
		if r.Metric < best.Metric {
			best = r
		}
	}
	var winners []facts.Route
	for _, r := range rails {
		if r.Metric <= best.Metric {
			winners = append(winners, r)
		}
	}
	if len(winners) == 0 {
		return
	}
	f := j.find(DefaultCompetes, "", "the %s default route of %s competes with the one of %s: the pod's other traffic leaves by a rail",
		family, winners[0].Dev, best.Dev)
	for _, r := range winners {
		f.saw("%s", r.Text)
	}
	f.saw("%s", best.Text)
	if winners[0].Protocol == unix.RTPROT_RA || winners[0].Metric == best.Metric && best.Metric > 0 {
		// The advertisement's route would come back: let the cluster's win instead.
		better := best.Route
		better.Metric = max(1, winners[0].Metric/2)
		j.run(f, "%s", addRoute(better))
		return
	}
	for i, r := range winners {
		lower := r.Route
		lower.Metric = best.Metric + 1000 + uint32(r.IfIndex) + uint32(i)
		j.run(f, "%s", addRoute(lower))
		j.run(f, "%s", deletion(addRoute(r.Route)))
	}
}
