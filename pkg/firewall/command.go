package firewall

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/firewall/present"
	"github.com/railtune/railtune/pkg/policy"
)

// lockWait is how many seconds iptables waits for its lock, which all namespaces of a
// node share: long past sixteen rails that are attached at once.
const lockWait = 10

// comment marks every rule, for people who read the list.
var comment = []string{"-m", "comment", "--comment", "railtune"}

// filter is iptables of one family.
type filter struct {
	*iptables.IPTables
	f policy.Family
}

// open finds the first of the commands that there is.
func open(f policy.Family, names ...string) (*filter, error) {
	path, err := lookUp(names...)
	if err != nil {
		return nil, err
	}
	proto := iptables.ProtocolIPv4
	if f == policy.IPv6 {
		proto = iptables.ProtocolIPv6
	}
	t, err := iptables.New(iptables.IPFamily(proto), iptables.Path(path), iptables.Timeout(lockWait))
	if err != nil {
		return nil, cnierr.New(cnierr.Kernel, "%s, which firewall.acceptRails needs, does not work: %w", path, err)
	}
	return &filter{t, f}, nil
}

func lookUp(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", cnierr.New(cnierr.Kernel, "there is no %s, which firewall.acceptRails needs, in the PATH %q that the CNI runtime gave: "+
		"install the package iptables on the node, or take firewall.acceptRails out", strings.Join(names, " or "), os.Getenv("PATH"))
}

// failed gives an error of iptables its code: TryAgain where its lock was held or the
// kernel was busy (exit status 4, RESOURCE_PROBLEM), else Kernel.
func (t *filter) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	const resourceProblem = 4
	var e *iptables.Error
	if errors.As(err, &e) && e.ExitStatus() == resourceProblem {
		return cnierr.New(cnierr.TryAgain, "%s: %w", what, err)
	}
	return cnierr.New(cnierr.Kernel, "%s: %w", what, err)
}

// listed returns the rules of a chain as iptables -S words them, and whether the chain
// is there.
func (t *filter) listed(chain string) (rules [][]string, there bool, err error) {
	lines, err := t.List(table, chain)
	var e *iptables.Error
	if errors.As(err, &e) && e.ExitStatus() == 1 {
		return nil, false, nil
	}
	for _, l := range lines {
		if words, ok := strings.CutPrefix(l, "-A "+chain+" "); ok {
			rules = append(rules, strings.Fields(strings.ReplaceAll(words, `"`, "")))
		}
	}
	return rules, err == nil, t.failed("list of "+chain, err)
}

// marked is a rule with railtune's comment; plain is one without, as made where the
// kernel cannot keep comments (xt_comment).
func marked(match []string, target string) []string {
	return slices.Concat(match, comment, []string{"-j", target})
}

func plain(match []string, target string) []string {
	return slices.Concat(match, []string{"-j", target})
}

// has reports whether a chain holds a rule, and in which form.
func (t *filter) has(chain string, match []string, target string) (rule []string, ok bool, err error) {
	for _, rule := range [][]string{marked(match, target), plain(match, target)} {
		ok, markErr := t.Exists(table, chain, rule...)
		if ok {
			return rule, true, nil
		}
		err = markErr // of the plain one: the marked one fails where comments do
	}
	return nil, false, t.failed(fmt.Sprintf("look for a rule in %s", chain), err)
}

// ensure makes a rule where it is not there yet.
func (t *filter) ensure(chain string, match []string, target string, how func(rule ...string) error, did did) error {
	if _, ok, err := t.has(chain, match, target); ok || err != nil {
		return err
	}
	return t.make(chain, match, target, how, did)
}

// make makes a rule, without its comment where the kernel refuses that.
func (t *filter) make(chain string, match []string, target string, how func(rule ...string) error, did did) error {
	rule := marked(match, target)
	if err := how(rule...); err != nil {
		if rule = plain(match, target); how(rule...) != nil {
			return t.failed(line(t.f, "-A", chain, match, target), err)
		}
	}
	did(line(t.f, "-A", chain, match, target), func() error { return t.Delete(table, chain, rule...) })
	return nil
}

// did notes how to take a step back.
type did = func(what string, back func() error)

// commands are those that can work on a chain, the surest first: plain iptables is one
// of the two, whichever the host prefers.
func commands(p present.Place) []string {
	name := present.Command(p.Family)
	if p.Legacy {
		return []string{name + "-legacy", name}
	}
	return []string{name + "-nft", name}
}
