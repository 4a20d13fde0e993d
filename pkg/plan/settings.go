package plan

import (
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/sysctl"
)

// settle applies what the requested settings change about the state the rest of the
// plan depends on.
func (b *builder) settle() error {
	switch b.requested(sysctl.Forwarding6) {
	case "1":
		b.State.Forwarding6 = true
	case "0":
		b.State.Forwarding6 = false
	}
	if b.requested(sysctl.DisableIPv6) == "1" {
		for _, ip := range b.IPs {
			if ip.Address.Addr().Is6() {
				return cnierr.New(cnierr.Config, "sysctl %s=1 would remove %s, which prevResult gives %s: leave one of the two out",
					sysctl.DisableIPv6, ip.Address, b.plan.IfName)
			}
		}
	}
	return nil
}

// requested returns the configured value of a key, or "".
func (b *builder) requested(k sysctl.Key) string {
	for _, s := range b.Config.Sysctl {
		if s.Key == k {
			return s.Value
		}
	}
	return ""
}

// settings turns the configured values into those to write.
func (b *builder) settings() error {
	var skipped []string
	for _, s := range b.Config.Sysctl {
		if s.Key.Family == sysctl.IPv6 && !b.State.IPv6 {
			skipped = append(skipped, s.Key.For(b.plan.IfName))
			continue
		}
		if s.Key == sysctl.AcceptRA && s.Value == config.AutoAcceptRA {
			if !b.State.Forwarding6 && !b.livesByRA() {
				continue
			}
			s.Value = "2"
		}
		b.plan.Settings = append(b.plan.Settings, Setting{Key: s.Key, Value: s.Value, Default: s.Default})
		b.warnAbout(s)
	}
	if len(skipped) > 0 {
		b.plan.warn("the kernel keeps no IPv6 settings for %s (no IPv6, or an MTU below 1280): skipped %s",
			b.plan.IfName, strings.Join(skipped, ", "))
	}
	return nil
}

func (b *builder) warnAbout(s config.Sysctl) {
	switch {
	case s.Key == sysctl.AcceptRA && s.Value == "1" && b.State.Forwarding6:
		b.plan.warn("%s=1, but %s forwards IPv6: router advertisements are ignored; use 2 or \"auto\"",
			s.Key.For(b.plan.IfName), b.plan.IfName)
	case s.Key == sysctl.ARPIgnore && s.Value == "2":
		for _, a := range b.addrs {
			if a.addr().Is4() && a.connected.IsSingleIP() {
				b.plan.warn("arp_ignore=2 on %s answers only requests from the address's own prefix, and %s has no neighbours in it: "+
					"the rail answers nobody; use 1", b.plan.IfName, a.ip.Address)
			}
		}
	}
}

// livesByRA reports whether router advertisements give the rail what it has, or nothing
// else can. The kernel asks the interface's own forwarding, never conf/all
// (include/net/ipv6.h, ipv6_accept_ra), and one that does not forward yet may later:
// containerd and CRI-O apply a pod's sysctls after ADD, and turning forwarding on purges
// the default routes of every interface without 2. Until then 1 and 2 are one.
func (b *builder) livesByRA() bool {
	if !b.State.AcceptsRA {
		return false
	}
	given := slices.ContainsFunc(b.State.Rail.Addrs, func(a netstate.Addr) bool { return a.FromRA })
	return given || b.State.RADefault || len(b.IPs) == 0
}
