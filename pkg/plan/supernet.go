package plan

import (
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/prevresult"
)

// supernet is a configured supernet that at least one group installs.
type supernet struct {
	config.Supernet
	// via are the next hops by group, in group order.
	via []hopOf
}

type hopOf struct {
	group *group
	gw    netip.Addr
}

// wantedSupernets decides which group reaches which supernet, and by which next hop.
func (b *builder) wantedSupernets() error {
	b.perGroup = map[*group][]hop{}
	for _, s := range b.Config.Supernets {
		f := policy.FamilyOf(s.Dst.Addr())
		var groups []*group
		for _, g := range b.groups {
			if g.family == f {
				groups = append(groups, g)
			}
		}
		if len(groups) == 0 {
			return b.noAddressFor(s, f)
		}
		if on, ok := b.onLink(s.Dst); ok {
			b.plan.warn("supernet %s is not wider than %s, which is on the link of %s: no route is needed and none is added",
				s.Dst, on, b.plan.IfName)
			continue
		}
		w := supernet{Supernet: s}
		for _, g := range groups {
			gw, err := b.supernetGateway(s, g)
			if err != nil {
				return err
			}
			w.via = append(w.via, hopOf{g, gw})
			b.perGroup[g] = append(b.perGroup[g], hop{s.Dst, gw})
		}
		b.supernets = append(b.supernets, w)
		b.plan.Supernets = append(b.plan.Supernets, s.Dst)
	}
	return nil
}

func (b *builder) noAddressFor(s config.Supernet, f policy.Family) error {
	if len(b.addrs) == 0 {
		return cnierr.New(cnierr.Config, "no address on %s from prevResult, but supernet %s needs one to send from: "+
			"add an ipam section to the interface plugin, or remove the supernet", b.plan.IfName, s.Dst)
	}
	return cnierr.New(cnierr.Config, "no %s address on %s from prevResult, but supernet %s needs one to send from: "+
		"add one to the IPAM, or remove the supernet", f, b.plan.IfName, s.Dst)
}

// onLink returns the prefix of the rail that already holds all of dst.
func (b *builder) onLink(dst netip.Prefix) (netip.Prefix, bool) {
	for _, a := range b.addrs {
		if a.connected.Bits() <= dst.Bits() && a.connected.Contains(dst.Addr()) {
			return a.connected, true
		}
	}
	return netip.Prefix{}, false
}

func (b *builder) supernetGateway(s config.Supernet, g *group) (netip.Addr, error) {
	if s.GW.IsValid() {
		return s.GW, b.checkExplicit(s)
	}
	if g.gw.IsValid() {
		return g.gw, nil
	}
	return netip.Addr{}, cnierr.New(cnierr.Config, "gateway for %s unknown: IPAM gave none for %s (%s) and its prefix %s leaves the choice open; "+
		"give supernets[].gw, or a gateway in the IPAM", s.Dst, g.addrs[0].addr(), b.plan.IfName, g.addrs[0].connected)
}

// checkExplicit judges supernets[].gw against all addresses of its family: it has to
// be on the link of one of them.
func (b *builder) checkExplicit(s config.Supernet) error {
	var last error
	for _, a := range b.addrs {
		if a.family() != policy.FamilyOf(s.GW) {
			continue
		}
		if last = b.checkGateway(s.GW, a, "supernets[].gw"); last == nil {
			return nil
		}
	}
	if last == nil {
		return cnierr.New(cnierr.Config, "supernets[].gw %s is of another family than supernet %s", s.GW, s.Dst)
	}
	return last
}

// mainTable adds the supernets to main, for sockets without a source address. Where main
// itself does not know the next hop to be on the link (a host prefix, or a plugin that
// flushed main), the kernel finds it through the device rule in the private table, which
// is there by then (net/ipv4/fib_semantics.c, fib_check_nh; net/ipv6/route.c,
// ip6_route_check_nh). Calling it "onlink" instead fails for IPv6, where a second
// rail's lookup then finds the first one's supernet.
//
// What main is to others, the VRF's table is to a rail in a VRF: a socket that is bound
// to the VRF gets its routes there, and one that is not could not receive by the rail.
func (b *builder) mainTable() {
	if !b.Config.MainTable {
		return
	}
	table, vrf := uint32(policy.MainTable), b.State.Rail.VRFTable
	if vrf != 0 {
		table = vrf
	}
	for _, s := range b.supernets {
		if link, addr := b.clusterInside(s.Dst); link != nil && vrf == 0 {
			b.plan.warn("supernet %s covers %s of %s, which is not a rail: kept out of table main, where it would take cluster traffic away; "+
				"sockets bound to a rail's address or device use it all the same", s.Dst, addr, link.Name)
			continue
		}
		v := s.via[0]
		b.plan.Main = append(b.plan.Main, policy.Route{
			Table: table, Dst: s.Dst, GW: v.gw, Src: preferredSource(v.group.addrs[0]),
			Dev: b.plan.IfName, IfIndex: b.plan.IfIndex,
			Metric: uint32(MetricBase + b.plan.IfIndex), Protocol: policy.Protocol,
		})
	}
}

// AsksDefaults reports whether a plan depends on main's default routes (HasDefault and
// DefaultVia of State.Others): for a supernet in main, which must not cover the cluster's,
// and where IPAM gave the rail one too.
func AsksDefaults(cfg *config.Config, routes []prevresult.Route) bool {
	return cfg.MainTable && len(cfg.Supernets) > 0 || slices.ContainsFunc(routes, competes)
}

// competes says that a route is for main, and a default route.
func competes(r prevresult.Route) bool { return r.Dst.Bits() == 0 && !r.Elsewhere }

// clusterInside returns a link that is no rail and has an address or next hop in dst.
func (b *builder) clusterInside(dst netip.Prefix) (*netstate.Link, netip.Addr) {
	for i := range b.State.Others {
		l := &b.State.Others[i]
		if !b.isCluster(l) {
			continue
		}
		for _, a := range l.Addrs {
			if dst.Contains(a.Prefix.Addr()) {
				return l, a.Prefix.Addr()
			}
		}
		for _, gw := range l.DefaultVia {
			if dst.Contains(gw) {
				return l, gw
			}
		}
	}
	return nil, netip.Addr{}
}

// isCluster recognises the interface of the cluster network. Every runtime calls a
// pod's first interface eth0; where none is called so, it is an interface with a
// default route. A rail that waits for its own railtune (sixteen can be attached at
// once) may have a default route too, so the name decides where it can: the plan
// must not depend on the order in which rails are attached.
func (b *builder) isCluster(l *netstate.Link) bool {
	const first = "eth0"
	if l.Tuned || l.Loopback {
		return false
	}
	if l.Name == first {
		return true
	}
	for _, o := range b.State.Others {
		if o.Name == first {
			return false
		}
	}
	return l.HasDefault && b.plan.IfName != first
}

// warnAboutDefaults tells of default routes that IPAM put on the rail.
func (b *builder) warnAboutDefaults() {
	for _, r := range b.Routes {
		if !competes(r) {
			continue
		}
		for _, l := range b.State.Others {
			if l.HasDefault {
				b.plan.warn("IPAM put a default route on %s, which competes with the one on %s: left alone; "+
					"take the route out of the IPAM, railtune's private table has its own", b.plan.IfName, l.Name)
				return
			}
		}
	}
}
