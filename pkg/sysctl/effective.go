package sysctl

import (
	"strconv"

	"github.com/railtune/railtune/pkg/cnierr"
)

// Value is one setting of one interface as the kernel applies it.
type Value struct {
	Key        Key
	File       string // what the interface's own file holds
	All        string // what conf/all holds; "" where it has no say
	Effective  string // what the kernel goes by
	Overridden bool   // Effective is another value than File, because of All
	Rule       string // in words, for example "maximum of conf/all and conf/net1"
}

// Effective reads a setting and combines it with conf/all as the kernel does.
// An error has code cnierr.Sysctl and wraps what Files returned.
func Effective(f Files, k Key, ifname string) (Value, error) {
	v := Value{Key: k, Rule: alone.words("", string(k.Tree)+"/"+ifname)}
	if err := checkInterface(ifname); err != nil {
		return v, cnierr.New(cnierr.Sysctl, "%s: %w", k, err)
	}
	file, err := f.Read(k.Path(ifname))
	if err != nil {
		return v, cnierr.New(cnierr.Sysctl, "%s cannot be read: %w", k.For(ifname), err)
	}
	v.File, v.Effective = file, file
	s := k.known()
	if s == nil {
		v.Rule += " (how the kernel combines it with conf/all is not known)"
		return v, nil
	}
	if s.rule == alone {
		return v, nil
	}
	if v.All, err = f.Read(k.Path("all")); err != nil {
		return v, cnierr.New(cnierr.Sysctl, "%s cannot be read: %w", k.For("all"), err)
	}
	own, errOwn := strconv.Atoi(v.File)
	all, errAll := strconv.Atoi(v.All)
	if errOwn != nil || errAll != nil {
		return v, cnierr.New(cnierr.Sysctl, "%s holds %q and %s %q, which are not both integers", k.For(ifname), v.File, k.For("all"), v.All)
	}
	r, since := s.rule, ""
	if r == acceptRedirects {
		if r, since, err = redirects(f, k, ifname); err != nil {
			return v, err
		}
	}
	v.Rule = r.words("conf/all", "conf/"+ifname) + since
	if n := r.combine(all, own); n != own {
		v.Effective, v.Overridden = strconv.Itoa(n), true
	}
	return v, nil
}

// redirects resolves IN_DEV_RX_REDIRECTS of include/linux/inetdevice.h, which
// depends on whether the interface forwards.
func redirects(f Files, k Key, ifname string) (r rule, since string, err error) {
	fwd := Key{k.Family, Conf, "forwarding"}
	on, err := f.Read(fwd.Path(ifname))
	if err != nil {
		return 0, "", cnierr.New(cnierr.Sysctl, "%s cannot be read: %w", fwd.For(ifname), err)
	}
	if on != "0" {
		return both, ", since " + ifname + " forwards", nil
	}
	return either, ", since " + ifname + " does not forward", nil
}

// combine returns the effective value. Where the interface's own value decides
// it is returned as it is, so that a 2 in an on/off setting is not reported as
// changed.
func (r rule) combine(all, own int) int {
	switch {
	case r == maximum:
		return max(all, own)
	case r == minimum:
		return min(all, own)
	case r == either && own == 0 && all != 0:
		return 1
	case r == both && all == 0:
		return 0
	case r == allFirst && all != 0:
		return all
	case r == lowestSet && all != 0 && (own == 0 || all < own):
		return all
	}
	return own
}

// words says the rule for two places.
func (r rule) words(all, own string) string {
	switch r {
	case maximum:
		return "maximum of " + all + " and " + own
	case minimum:
		return "minimum of " + all + " and " + own
	case either:
		return "on where " + all + " or " + own + " is on"
	case both:
		return "on where both " + all + " and " + own + " are on"
	case allFirst:
		return all + " unless it is 0, then " + own
	case lowestSet:
		return "lowest of " + all + " and " + own + " that is not 0"
	}
	return own + " alone"
}
