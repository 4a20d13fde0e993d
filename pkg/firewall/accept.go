package firewall

import (
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/firewall/present"
	"github.com/railtune/railtune/pkg/policy"
)

// Accept makes what is missing of the rail's chain, removes what an earlier
// configuration left in it, and makes the jump to it the first of INPUT where there is
// none yet. Each step is told to did, with its undo. Nothing is dropped meanwhile that
// was accepted before and is to be afterwards.
func (IPTables) Accept(ifname string, f policy.Family, from []netip.Prefix, did did) error {
	t, err := open(f, present.Command(f))
	if err != nil {
		return err
	}
	chain := present.Chain(ifname)
	have, there, err := t.listed(chain)
	if err != nil {
		return err
	}
	ensure := t.ensure
	if !there {
		ensure = t.make // there is nothing in it or about it yet
		if err := t.NewChain(table, chain); err != nil {
			return t.failed(line(f, "-N", chain, nil, ""), err)
		}
		did(line(f, "-N", chain, nil, ""), func() error { return t.ClearAndDeleteChain(table, chain) })
	}
	want := rules(f, from)
	for _, r := range want {
		add := func(rule ...string) error { return t.Append(table, chain, rule...) }
		if err := ensure(chain, r, "ACCEPT", add, did); err != nil {
			return err
		}
	}
	if err := t.removeStale(chain, have, want, did); err != nil {
		return err
	}
	first := func(rule ...string) error { return t.Insert(table, hook, 1, rule...) }
	return ensure(hook, jump(ifname), chain, first, did)
}

// removeStale removes the rules of a chain that are about no source wanted.
func (t *filter) removeStale(chain string, have, want [][]string, did did) error {
	for _, rule := range have {
		if slices.ContainsFunc(want, func(w []string) bool { return source(w) == source(rule) }) {
			continue
		}
		if err := t.Delete(table, chain, rule...); err != nil {
			return t.failed("remove a leftover of "+chain, err)
		}
		did("removal from "+chain, func() error { return t.Append(table, chain, rule...) })
	}
	return nil
}

// source is the prefix a rule is about.
func source(rule []string) netip.Prefix {
	i := slices.Index(rule, "-s")
	if i < 0 || i+1 == len(rule) {
		return netip.Prefix{}
	}
	p, _ := netip.ParsePrefix(rule[i+1])
	return p
}

// Missing lists what of the rail's chain is not there, as the commands that make it.
// What others put around it, or before the jump, is theirs.
func (IPTables) Missing(ifname string, f policy.Family, from []netip.Prefix) ([]string, error) {
	t, err := open(f, present.Command(f))
	if err != nil {
		return nil, err
	}
	chain := present.Chain(ifname)
	if _, there, err := t.listed(chain); err != nil || !there {
		return IPTables{}.Lines(ifname, f, from), err
	}
	var out []string
	for _, r := range rules(f, from) {
		if _, ok, err := t.has(chain, r, "ACCEPT"); err != nil {
			return nil, err
		} else if !ok {
			out = append(out, line(f, "-A", chain, r, "ACCEPT"))
		}
	}
	_, ok, err := t.has(hook, jump(ifname), chain)
	if err == nil && !ok {
		out = append(out, line(f, "-I", hook+" 1", jump(ifname), chain))
	}
	return out, err
}

// maxJumps bounds how many jumps to one chain are removed.
const maxJumps = 64

// Remove removes the rail's chains and the jumps to them, in both families and in both
// of iptables' backends. Where the kernel has none nothing is executed.
func (IPTables) Remove(ifname string) error {
	places, err := present.Find(ifname)
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := remove(p, ifname); err != nil {
			return err
		}
	}
	return nil
}

func remove(p present.Place, ifname string) error {
	t, err := open(p.Family, commands(p)...)
	if err != nil {
		return err
	}
	chain := present.Chain(ifname)
	for range maxJumps {
		rule, ok, err := t.has(hook, jump(ifname), chain)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := t.Delete(table, hook, rule...); err != nil {
			return t.failed("remove the jump to "+chain, err)
		}
	}
	return t.failed("remove "+chain, t.ClearAndDeleteChain(table, chain))
}

// Chains names the rail's chains that the kernel has, executing nothing.
func (IPTables) Chains(ifname string) ([]string, error) {
	places, err := present.Find(ifname)
	var out []string
	for _, p := range places {
		out = append(out, present.Chain(ifname)+" of "+commands(p)[0])
	}
	return out, err
}
