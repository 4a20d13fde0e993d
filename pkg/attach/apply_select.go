package attach

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
)

// Select returns the interfaces that patterns such as "rdma*" name, in the kernel's
// order, each once. A pattern that matches nothing is an error, and so is one that
// matches the interface of the node's or pod's own traffic: that has to be called by
// its whole name. Railtune never guesses which interfaces are rails.
//
// With leftovers, for removal, the interfaces need not be there: names count as they
// are, and patterns also match what railtune's device rules name.
func Select(k Kernel, patterns []string, leftovers bool) ([]string, error) {
	links, err := k.Links()
	if err != nil {
		return nil, err
	}
	s := selection{patterns: patterns}
	if leftovers {
		err = s.leftovers(k, links)
	} else {
		err = s.fromLinks(k, links)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range patterns {
		if !slices.Contains(s.used, p) {
			return nil, fmt.Errorf("--rail %s matches no interface (there are %s)", p, strings.Join(namesOf(links), ", "))
		}
	}
	return s.names, nil
}

// selection collects the names that patterns match.
type selection struct {
	patterns []string
	names    []string
	used     []string // patterns that matched something
}

// take takes a name that a pattern matches, unless refuse has something against it,
// which is told whether the name was given as a whole.
func (s *selection) take(name string, refuse func(pattern string, whole bool) error) error {
	whole := slices.Contains(s.patterns, name)
	for _, p := range s.patterns {
		ok, err := path.Match(p, name)
		if err != nil {
			return fmt.Errorf("--rail %s: %w", p, err)
		}
		if !ok && p != name {
			continue
		}
		if err := refuse(p, whole); err != nil {
			return err
		}
		s.used = append(s.used, p)
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
	return nil
}

func (s *selection) fromLinks(k Kernel, links []netstate.Link) error {
	// The interface main sends IPv4 by. IPv6 says nothing: rails have advertised defaults.
	cluster, _ := k.DefaultThrough(policy.IPv4, 0)
	for _, l := range links {
		if l.Loopback && !slices.Contains(s.patterns, l.Name) {
			continue
		}
		if err := s.take(l.Name, func(pattern string, whole bool) error {
			if !whole && (l.Name == "eth0" || l.Index == cluster.IfIndex) {
				return fmt.Errorf("--rail %s matches %s, which carries the default route or the cluster network: "+
					"give a pattern that matches rails only, or, if it is one, --rail %s", pattern, l.Name, l.Name)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *selection) leftovers(k Kernel, links []netstate.Link) error {
	names := namesOf(links)
	for _, f := range families {
		rules, err := k.Rules(f, func(r *kernel.FoundRule) bool { return r.Ours() && r.OIF != "" })
		if err != nil && f == policy.IPv4 {
			return kernel.NoPolicyRouting(err)
		}
		for _, r := range rules {
			names = append(names, r.OIF)
		}
	}
	for _, p := range s.patterns {
		if !strings.ContainsAny(p, `*?[\`) {
			names = append(names, p)
		}
	}
	for _, name := range names {
		if err := s.take(name, func(string, bool) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func namesOf(links []netstate.Link) []string {
	var out []string
	for _, l := range links {
		out = append(out, l.Name)
	}
	return out
}
