package gather

import (
	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/sysctl"
)

// shown are the settings that decide whether a rail works, by what they are about.
func shown() []sysctl.Key {
	four := func(leaf string) sysctl.Key { return sysctl.Key{Family: sysctl.IPv4, Tree: sysctl.Conf, Leaf: leaf} }
	six := func(leaf string) sysctl.Key { return sysctl.Key{Family: sysctl.IPv6, Tree: sysctl.Conf, Leaf: leaf} }
	return []sysctl.Key{
		// who answers ARP, and with what
		sysctl.ARPIgnore, sysctl.ARPAnnounce, sysctl.ARPFilter, four("proxy_arp"), four("proxy_arp_pvlan"),
		four("arp_accept"), four("arp_notify"), four("drop_gratuitous_arp"),
		// what is let in
		sysctl.RPFilter, four("accept_local"), four("route_localnet"), sysctl.Forwarding4,
		// IPv6 and router advertisements
		sysctl.DisableIPv6, sysctl.Forwarding6, sysctl.AcceptRA, six("accept_ra_defrtr"), six("accept_ra_pinfo"),
		six("autoconf"), six("ra_defrtr_metric"), six("router_solicitations"), six("accept_dad"), six("addr_gen_mode"),
		six("proxy_ndp"),
	}
}

// settings reads the settings of the rails and of conf/default.
func (l *look) settings() error {
	for i := range l.Rails {
		r := &l.Rails[i]
		r.IPv6 = l.opt.Files.Exists("net/ipv6/conf/" + r.Name)
		for _, k := range shown() {
			if !l.opt.Files.Exists(k.Path(r.Name)) {
				continue // an older kernel, or no IPv6
			}
			v, err := sysctl.Effective(l.opt.Files, k, r.Name)
			if err != nil {
				return err
			}
			r.Settings = append(r.Settings, facts.Setting{
				Key: k, Name: k.For(r.Name), File: v.File, All: v.All, Effective: v.Effective, Rule: v.Rule,
			})
		}
	}
	for _, k := range shown() {
		if v, err := l.opt.Files.Read(k.Path("default")); err == nil {
			l.Defaults = append(l.Defaults, facts.Setting{Key: k, Name: k.For("default"), File: v, Effective: v})
		}
	}
	return nil
}
