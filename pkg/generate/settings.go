package generate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/sysctl"
)

// settings sorts tuning's sysctl map: what railtune takes over, what tuning keeps, and
// what goes, each with its reason.
type settings struct {
	rail  object // for railtune's own map
	keeps object // stays in tuning
	notes []string
}

func (s *settings) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// sort takes one tuning entry's map. already is what a railtune entry later in the chain
// sets by itself: those values stand.
func (s *settings) sort(of, already object) {
	for _, m := range of {
		value := strings.TrimSpace(textOf(m.value))
		name := dotted(m.name)
		if _, _, ok := scoped(name); ok {
			continue
		}
		k, err := sysctl.ParseKey(name)
		switch {
		case err != nil && strings.Contains(name, "."+sysctl.IfName+"."):
			s.keep(m, fmt.Sprintf("railtune would refuse it: %v", err))
		case err != nil:
			s.keep(m, "it is no setting of the rail")
		case k.CheckValue(value) != nil:
			s.keep(m, fmt.Sprintf("railtune would refuse it: %v", k.CheckValue(value)))
		default:
			s.take(k, value, already)
		}
	}
	for _, m := range of { // last, since what all does depends on the rail's own value
		if scope, k, ok := scoped(dotted(m.name)); ok {
			s.scope(scope, k, m, of, already)
		}
	}
}

// dotted is a key with dots. tuning takes slashes too; the only interface name that is
// looked for afterwards is IFNAME, which has no dot.
func dotted(key string) string { return strings.ReplaceAll(key, "/", ".") }

// keep leaves an entry to tuning.
func (s *settings) keep(m member, why string) {
	s.keeps.set(m.name, m.value)
	s.note("kept in tuning: %s=%s: %s", m.name, textOf(m.value), why)
}

// take moves a setting of the rail to railtune.
func (s *settings) take(k sysctl.Key, value string, already object) {
	if set := already.get(k.String()); set != nil {
		s.note("dropped %s=%s: railtune, later in the chain, sets it to %s", k, value, textOf(set))
		return
	}
	for _, d := range config.Default().Sysctl {
		// An entry that is there and does not set its default has dropped it.
		if d.Key == k && d.Value == value && already == nil {
			s.rail.remove(k.String()) // an earlier tuning entry may have set another value
			s.note("dropped %s=%s: railtune's default", k, value)
			return
		}
	}
	s.rail.set(k.String(), value)
	s.note("moved to railtune: %s=%s", k, value)
}

// scoped reads net.….all.<leaf> and net.….default.<leaf>.
func scoped(name string) (scope string, k sysctl.Key, ok bool) {
	for _, scope := range []string{"all", "default"} {
		before, leaf, found := strings.Cut(name, "."+scope+".")
		if !found || strings.Contains(leaf, ".") {
			continue
		}
		if k, err := sysctl.ParseKey(before + "." + sysctl.IfName + "." + leaf); err == nil {
			return scope, k, true
		}
	}
	return "", sysctl.Key{}, false
}

// scope judges a setting of all interfaces. railtune never writes one: it would change
// eth0, and every other rail. What all did to the rail is what counts.
func (s *settings) scope(scope string, k sysctl.Key, m member, of, already object) {
	if scope == "default" {
		s.keep(m, "it is for interfaces that come later")
		return
	}
	value, own := strings.TrimSpace(textOf(m.value)), strings.TrimSpace(textOf(of.get(k.String())))
	with, ok := effective(k, value, own)
	switch {
	case !ok:
		s.keep(m, "it changes every interface of the pod, which railtune never does")
	case !with.Overridden:
		s.note("dropped %s=%s: it has no effect on the rail (%s)", m.name, value, with.Rule)
	default:
		s.note("dropped %s=%s: railtune leaves eth0 and the others alone; what it did to the rail is the next line", m.name, value)
		s.take(k, with.Effective, already)
	}
}

// effective is what the kernel makes of all and the rail's own value, 0 where that is
// not given. ok is false where it does not take the higher of them (or either): then all
// has another meaning than to say the same of each interface.
func effective(k sysctl.Key, all, own string) (sysctl.Value, bool) {
	if own == "" {
		own = "0"
	}
	v, err := sysctl.Effective(pretended{all, own}, k, sysctl.IfName)
	if err != nil || v.All == "" {
		return v, false
	}
	high, err := sysctl.Effective(pretended{"0", "1"}, k, sysctl.IfName)
	return v, err == nil && high.Effective == "1"
}

// pretended are the files of an interface that is not there: the same value for each
// setting of all, and for each of the interface's own.
type pretended struct{ all, own string }

func (p pretended) Read(path string) (string, error) {
	switch {
	case strings.HasSuffix(path, "/forwarding"):
		return "0", nil // a pod's rail does not forward
	case strings.Contains(path, "/all/"):
		return p.all, nil
	}
	return p.own, nil
}

func (pretended) Write(string, string) error { return fs.ErrPermission }
func (pretended) Exists(string) bool         { return true }

// textOf is a string, or the text of whatever else it is.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
