package generate

import (
	"fmt"
	"slices"

	"github.com/railtune/railtune/pkg/config"
)

// Addition is what FromTuning puts into railtune's entry besides what it finds.
type Addition struct {
	// Supernets are prefixes that cover all rails, with commas between.
	Supernets string
}

// converted is a plugin list with railtune in the place of tuning and sbr.
type converted struct {
	plugins []object
	notes   []string
	changed bool
}

// convert replaces tuning and sbr by railtune where they stand. What they do that
// railtune does not stays in a tuning entry of its own, and everything else stays in
// its place.
func convert(plugins []object, add Addition) (c converted, err error) {
	entry, at := railtuneOf(plugins)
	replaces := lastReplaced(plugins, at)
	supernets, err := Rails{Supernets: add.Supernets}.supernets(rail{}, true)
	if err != nil {
		return c, err
	}
	if replaces < 0 && (at < 0 || len(supernets) == 0) {
		return converted{plugins: plugins}, nil
	}
	already, err := sets(entry, at)
	if err != nil {
		return c, err
	}
	moved := settings{}
	for i, o := range plugins {
		switch kind := o.text("type"); {
		case i == at:
			c.place(entry)
		case kind == "tuning" && i <= replaces && (at < 0 || i < at):
			rest, err := c.tuning(o, already, &moved)
			if err != nil {
				return c, err
			}
			if rest != nil {
				c.plugins = append(c.plugins, rest)
			}
		case kind == "sbr":
			c.sbr(o)
		default:
			if kind == "route-override" {
				c.notes = append(c.notes, "kept route-override: a route it adds for the rails' supernet is railtune's to make (supernets)")
			}
			c.plugins = append(c.plugins, o)
		}
		if at < 0 && i == replaces {
			c.place(entry)
		}
	}
	return c, c.finish(supernets, moved)
}

// sets is what a railtune entry that is in the list already sets for certain; nil where
// there is none.
func sets(entry object, at int) (already object, err error) {
	if at < 0 {
		return nil, nil
	}
	conf, err := config.Parse(marshal(entry))
	if err != nil {
		return nil, fmt.Errorf("railtune's entry: %w", err)
	}
	already = object{}
	for _, s := range conf.Sysctl {
		if s.Value != config.AutoAcceptRA { // which leaves the setting alone at times
			already.set(s.Key.String(), s.Value)
		}
	}
	return already, nil
}

// place puts railtune's entry where it belongs; finish fills it.
func (c *converted) place(entry object) { c.plugins = append(c.plugins, entry) }

// railtuneOf is the list's railtune entry and its place, or a new one and -1.
func railtuneOf(plugins []object) (object, int) {
	at := slices.IndexFunc(plugins, func(o object) bool { return o.text("type") == "railtune" })
	if at < 0 {
		return fields("type", "railtune"), -1
	}
	return slices.Clone(plugins[at]), at
}

// lastReplaced is the place of the last entry that railtune replaces, or -1. A tuning
// entry behind railtune is the user's own correction, and stays.
func lastReplaced(plugins []object, at int) int {
	last := -1
	for i, o := range plugins {
		kind := o.text("type")
		if kind == "sbr" || kind == "tuning" && (at < 0 || i < at) && replaceable(o) {
			last = i
		}
	}
	return last
}

// replaceable tells whether anything in a tuning entry is railtune's to do.
func replaceable(tuning object) bool {
	of, err := sysctlOf(tuning)
	if err != nil {
		return true // for the error to be reported
	}
	s := settings{}
	s.sort(of, nil)
	return len(s.keeps) < len(of) || len(of) == 0 && !does(tuning)
}

// sysctlOf is the sysctl map of an entry, empty where it has none.
func sysctlOf(entry object) (of object, err error) {
	raw := entry.get("sysctl")
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	if err := of.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("%s's sysctl: %w", entry.text("type"), err)
	}
	return of, nil
}

// does tells whether a tuning entry does anything but sysctls.
func does(tuning object) bool {
	return slices.ContainsFunc(tuning, func(m member) bool {
		return !slices.Contains([]string{"type", "name", "cniVersion", "sysctl", "dataDir"}, m.name)
	})
}

// tuning returns what is left of a tuning entry, or nil.
func (c *converted) tuning(o, already object, moved *settings) (object, error) {
	c.changed = true
	of, err := sysctlOf(o)
	if err != nil {
		return nil, err
	}
	moved.keeps, moved.notes = nil, nil
	moved.sort(of, already)
	c.notes = append(c.notes, moved.notes...)
	rest := slices.Clone(o)
	switch {
	case len(moved.keeps) > 0:
		rest.set("sysctl", moved.keeps)
	case does(o) && o.get("args") != nil:
		rest.set("sysctl", object{}) // tuning panics over args.cni.sysctl without it
	default:
		rest.remove("sysctl")
	}
	if does(o) {
		c.notes = append(c.notes, "kept tuning: it also sets what railtune does not (mac, mtu, promisc, …)")
		return rest, nil
	}
	if len(moved.keeps) > 0 {
		return rest, nil
	}
	c.notes = append(c.notes, "dropped tuning: nothing is left for it to do")
	return nil, nil
}

func (c *converted) sbr(o object) {
	c.changed = true
	c.notes = append(c.notes, "dropped sbr: railtune makes the source rules, and leaves the main table as it is")
	for _, m := range o {
		switch m.name {
		case "table":
			c.notes = append(c.notes, fmt.Sprintf("dropped sbr's table %s: railtune derives one for each rail", m.value))
		case "gateways":
			c.notes = append(c.notes, fmt.Sprintf("dropped sbr's gateways %s: railtune takes the gateway that IPAM gives; where it gives none, put it into supernets[].gw", m.value))
		case "addSourceHints":
			c.notes = append(c.notes, "dropped sbr's addSourceHints: railtune's supernet routes have the source")
		}
	}
}

// finish fills railtune's entry, and has it read as the plugin will.
func (c *converted) finish(supernets []object, moved settings) error {
	at := slices.IndexFunc(c.plugins, func(o object) bool { return o.text("type") == "railtune" })
	entry := c.plugins[at]
	if len(supernets) > 0 {
		if string(entry.get("supernets")) != string(marshal(supernets)) {
			c.changed = true
		}
		entry.set("supernets", supernets)
	}
	own, err := sysctlOf(entry)
	if err != nil {
		return err
	}
	for _, m := range moved.rail {
		own.set(m.name, m.value)
	}
	if len(own) > 0 {
		entry.set("sysctl", own)
	}
	c.plugins[at] = entry
	return decodes(entry)
}
