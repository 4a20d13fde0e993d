package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/railtune/railtune/pkg/sysctl"
)

// table takes the private table's number. 253 to 255 are the kernel's default,
// main and local, which it fills itself (include/uapi/linux/rtnetlink.h).
func (c *Config) table(n node, r *report) {
	v, ok := n.integer(r, 0, FirstDerivedTable-1)
	if !ok {
		if v, err := strconv.ParseInt(string(n.raw), 10, 64); err == nil && v >= FirstDerivedTable {
			r.because("tables from there on are derived from interface indexes, and an explicit one could meet those")
		}
		return
	}
	if v >= 253 && v <= 255 {
		r.add("%s is %d, which is the kernel's own table %s; give another number, or 0 for a derived one", n.path, v, []string{"default", "main", "local"}[v-253])
		return
	}
	c.Table = int(v)
}

func (c *Config) rulePriority(n node, r *report) {
	if v, ok := n.integer(r, 1, MaxRulePriority); ok {
		c.RulePriority = int(v)
	} else if n.kind() == number {
		r.because("the three rules of a rail use this, +1 and +2, after the rule for table local at 0 and before that for main at 32766")
	}
}

func (c *Config) logFile(n node, r *report) {
	var s string
	if !n.text(r, &s) {
		return
	}
	if s != "" && !isLogFile(s) {
		r.add("%s is %s; give a file below /var/log whose name, or folder, is or begins with railtune: "+
			"\"/var/log/railtune.log\", \"/var/log/railtune/rails.log\"; letters, digits, \".\", \"_\" and \"-\" are allowed in it",
			n.path, n.show())
		return
	}
	c.LogFile = s
}

// isLogFile keeps what an author of network definitions can have written to, by a plugin
// that runs as root on the node, to files that are railtune's by their names.
func isLogFile(s string) bool {
	rest, ok := strings.CutPrefix(s, "/var/log/railtune")
	if !ok {
		return false
	}
	if below, ok := strings.CutPrefix(rest, "/"); ok {
		if rest = below; rest == "" || rest[0] == '.' {
			return false
		}
	}
	return !strings.ContainsFunc(rest, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	})
}

// sysctl overlays the defaults with the user's map.
func (c *Config) sysctl(n node, r *report) {
	if !n.want(r, object, `{"net.ipv4.conf.IFNAME.arp_ignore":"1"}`) {
		return
	}
	for _, m := range n.members() {
		if m.repeated {
			r.add("%s: %s is given twice; give it once", n.path, quote(m.name))
			continue
		}
		k, err := sysctl.ParseKey(m.name)
		if err != nil {
			r.add("%s: %v", n.path, err)
			continue
		}
		c.setting(m, k, r)
	}
	slices.SortFunc(c.Sysctl, func(a, b Sysctl) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	for i := 1; i < len(c.Sysctl); i++ {
		one := slices.IndexFunc(c.Sysctl[:i], func(s Sysctl) bool { return sysctl.SameSetting(s.Key, c.Sysctl[i].Key) })
		if one >= 0 {
			r.add("%s: %s and %s are one setting in two units; give one of them", n.path, c.Sysctl[one].Key, c.Sysctl[i].Key)
			c.Sysctl = slices.Delete(c.Sysctl, i, i+1)
			i--
		}
	}
}

// setting takes one entry of the sysctl map.
func (c *Config) setting(m member, k sysctl.Key, r *report) {
	at := slices.IndexFunc(c.Sysctl, func(s Sysctl) bool { return s.Key == k })
	var value string
	switch m.kind() {
	case null:
		if at < 0 {
			r.add("%s is null, which drops a default, but it is none; leave it out (defaults: %s)", m.path, defaultKeys())
			return
		}
		c.Sysctl = slices.Delete(c.Sysctl, at, at+1)
		return
	case text:
		value = m.str()
	case number:
		value = string(m.raw)
	default:
		r.add("%s is %s, %s; give a string or a whole number", m.path, m.kind(), m.show())
		return
	}
	switch err := k.CheckValue(value); {
	case value == AutoAcceptRA && k == sysctl.AcceptRA:
	case value == AutoAcceptRA:
		r.add("%s: \"auto\" is for %s only; give the value itself", m.path, sysctl.AcceptRA)
		return
	case err != nil && k == sysctl.AcceptRA:
		r.add("%s: %v; or \"auto\", which is 2 where the interface forwards or lives by router advertisements", m.path, err)
		return
	case err != nil:
		r.add("%s: %v", m.path, err)
		return
	}
	if at < 0 {
		c.Sysctl = append(c.Sysctl, Sysctl{Key: k, Value: value})
		return
	}
	c.Sysctl[at] = Sysctl{Key: k, Value: value}
}

func defaultKeys() string {
	var keys []string
	for _, s := range defaultSysctl() {
		keys = append(keys, s.Key.String())
	}
	return strings.Join(keys, ", ")
}
