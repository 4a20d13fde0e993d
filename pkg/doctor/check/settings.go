package check

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/sysctl"
)

// needs returns the value that keeps ARP on its rail (net/ipv4/arp.c, arp_ignore and
// arp_solicit).
func needs(k sysctl.Key) string {
	if k == sysctl.ARPIgnore {
		return "1"
	}
	return "2"
}

// arp judges the two values that every rail with an IPv4 address needs.
func (j *judge) arp() {
	for i := range j.Rails {
		r := &j.Rails[i]
		if !r.IPv4() || r.Link.NoARP {
			continue
		}
		var missing, overridden []facts.Setting
		for _, k := range []sysctl.Key{sysctl.ARPIgnore, sysctl.ARPAnnounce} {
			s, read := facts.Find(r.Settings, k)
			switch {
			case !read || sysctl.Acceptable(k, needs(k), s.Effective):
			case s.All == s.Effective && s.All != "0":
				overridden = append(overridden, s)
			default:
				missing = append(missing, s)
			}
		}
		if len(overridden) > 0 {
			f := j.find(AllOverrides, r.Name, "%s lets ARP onto other rails: conf/all overrides its own value", r.Name)
			j.overridden(f, r, overridden, "0")
			j.mend(f, r, append(overridden, missing...))
			continue
		}
		j.missing(r, missing)
	}
}

// missing tells a rail that nobody has set from one on which one value is wrong.
func (j *judge) missing(r *facts.Rail, missing []facts.Setting) {
	if len(missing) == 0 {
		return
	}
	var f *Finding
	if len(missing) == 2 && j.asDefault(missing[0]) && j.asDefault(missing[1]) {
		f = j.find(SettingsReset, r.Name, "%s has conf/default's ARP values: nobody set them since it arrived in this namespace", r.Name)
	} else {
		f = j.find(SettingMissing, r.Name, "%s answers ARP for other interfaces, or asks with their addresses", r.Name)
	}
	for _, s := range missing {
		f.saw("%s is %s, effective %s, must be %s", s.Name, s.File, s.Effective, needs(s.Key))
	}
	j.mend(f, r, missing)
}

func (j *judge) mend(f *Finding, r *facts.Rail, settings []facts.Setting) {
	for _, s := range settings {
		if !sysctl.Acceptable(s.Key, needs(s.Key), s.File) {
			j.set(f, s.Key, r.Name, needs(s.Key))
		}
		f.Blames = append(f.Blames, s.Key)
	}
}

// overridden says what conf/all does, and sets it to a value without effect.
func (j *judge) overridden(f *Finding, r *facts.Rail, settings []facts.Setting, harmless string) {
	for _, s := range settings {
		f.saw("%s is %s, effective %s: %s, and conf/all is %s", s.Name, s.File, s.Effective, s.Rule, s.All)
		j.set(f, s.Key, "all", harmless)
		f.Blames = append(f.Blames, s.Key)
	}
}

func (j *judge) asDefault(s facts.Setting) bool {
	d, read := facts.Find(j.Defaults, s.Key)
	return read && d.File == s.File
}

// proxy judges what makes a rail answer for addresses of others.
func (j *judge) proxy() {
	for i := range j.Rails {
		r := &j.Rails[i]
		for _, leaf := range []string{"proxy_arp", "proxy_arp_pvlan"} {
			s, read := facts.Find(r.Settings, sysctl.Key{Family: sysctl.IPv4, Tree: sysctl.Conf, Leaf: leaf})
			if !read || s.Effective == "0" {
				continue
			}
			if s.File == "0" {
				f := j.find(AllOverrides, r.Name, "%s answers ARP for addresses of others: conf/all switches %s on", r.Name, leaf)
				j.overridden(f, r, []facts.Setting{s}, "0")
				continue
			}
			f := j.find(ProxyARP, r.Name, "%s answers ARP for addresses of others (%s)", r.Name, leaf).
				saw("%s is %s, effective %s", s.Name, s.File, s.Effective)
			j.set(f, s.Key, r.Name, "0")
			f.Blames = append(f.Blames, s.Key)
		}
	}
}

// defaults judges conf/default: what the next rail inherits and nobody may set.
func (j *judge) defaults() {
	for _, d := range j.Defaults {
		why, better := j.harmful(d)
		if why == "" {
			continue
		}
		f := j.find(DefaultInherited, "", "the next interface that arrives inherits %s=%s: %s", d.Name, d.File, why).
			saw("%s is %s", d.Name, d.File)
		j.set(f, d.Key, "default", better)
	}
}

// harmful says why a default would break a rail of the kind that is here, and which
// value would not.
func (j *judge) harmful(d facts.Setting) (why, better string) {
	switch {
	case d.Key == sysctl.ARPIgnore && d.File != "0" && d.File != "1" && d.File != "2":
		return "it would answer no ARP, or by scope", "0"
	case d.Key.Leaf == "proxy_arp" && d.File != "0":
		return "it would answer ARP for others", "0"
	case d.Key == sysctl.ARPFilter && d.File != "0" && j.unruled():
		return "its ARP answers would follow routes, which no rule of its own decides", "0"
	case d.Key == sysctl.RPFilter && d.File == "1" && j.unruled():
		return "its ARP answers would follow routes, which no rule of its own decides", "2"
	case d.Key == sysctl.AcceptRA && d.File == "0" && j.anyRA():
		return "it would ignore router advertisements, from which the rails here have their addresses", "2"
	case d.Key == sysctl.DisableIPv6 && d.File != "0" && j.anyRA():
		return "it would have no IPv6, from which the rails here have their addresses", "0"
	}
	return "", ""
}

// unruled says that rails share a subnet here and none has rules of railtune's, which the
// next one would get too.
func (j *judge) unruled() bool {
	shared := false
	for i := range j.Rails {
		for _, a := range static(&j.Rails[i]) {
			if j.tuned(&j.Rails[i]) {
				return false
			}
			shared = shared || a.Address.Addr().Is4() && j.shares(&j.Rails[i], a) != ""
		}
	}
	return shared
}

// dependsOnRoutes returns the setting that makes ARP answers follow a route lookup
// (arp_filter, net/ipv4/arp.c; rp_filter=1 drops the request, fib_validate_source).
func dependsOnRoutes(r *facts.Rail, from netip.Addr) (facts.Setting, bool) {
	for _, k := range []sysctl.Key{sysctl.ARPFilter, sysctl.RPFilter} {
		if s, _ := facts.Find(r.Settings, k); s.Effective == "1" && from.Is4() && !r.Link.NoARP {
			return s, true
		}
	}
	return facts.Setting{}, false
}
