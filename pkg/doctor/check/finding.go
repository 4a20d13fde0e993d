// Package check judges facts: what is wrong with which rail, what shows it, and what
// mends it. Each file is one family of checks, and each check a pure function of
// facts.Namespace. One cause is one finding: a check leaves alone what an earlier one
// has explained already.
package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// Error: RDMA on the rail fails, or will.
	Error Severity = "error"
	// Warning: something works by luck, or fails for some traffic only.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Code is stable; Codes lists all.
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Rail is the interface it is about, "" for the namespace as a whole.
	Rail    string `json:"rail,omitempty"`
	Summary string `json:"summary"`
	// Evidence is what was seen, a fact a line.
	Evidence []string `json:"evidence"`
	// Remedy are commands that can be pasted, and lines that start with # where no
	// command can do it.
	Remedy []string `json:"remedy"`
	// Blames are the rail's settings that cause it.
	Blames []sysctl.Key `json:"-"`
}

// judge is one run of all checks.
type judge struct {
	*facts.Namespace
	enter    string
	findings []*Finding
}

// All runs every check. enter is what a command of a remedy is prefixed with to run in
// the namespace, "" for the namespace doctor was called in.
func All(n *facts.Namespace, enter string) []Finding {
	j := &judge{Namespace: n, enter: enter}
	for _, check := range []func(){
		j.links, j.addresses, j.gids,
		j.orphans, j.hops,
		j.arp, j.proxy, j.advertisements, j.defaults,
		j.ownRules, j.ways, j.supernets, j.competing,
		j.entries, j.proof, j.tables,
		j.firewall,
	} {
		check()
	}
	out := make([]Finding, 0, len(j.findings))
	for _, f := range j.findings {
		out = append(out, *f)
	}
	return out
}

// find adds a finding.
func (j *judge) find(code Code, rail, format string, args ...any) *Finding {
	f := &Finding{
		Code: code, Severity: code.severity(), Rail: rail, Summary: fmt.Sprintf(format, args...),
		Evidence: []string{}, Remedy: []string{},
	}
	j.findings = append(j.findings, f)
	return f
}

// found says whether one of these codes has been found for a rail.
func (j *judge) found(rail string, codes ...Code) bool {
	return slices.ContainsFunc(j.findings, func(f *Finding) bool { return f.Rail == rail && slices.Contains(codes, f.Code) })
}

func (f *Finding) saw(format string, args ...any) *Finding {
	if line := fmt.Sprintf(format, args...); !slices.Contains(f.Evidence, line) {
		f.Evidence = append(f.Evidence, line)
	}
	return f
}

// run adds a command of the remedy.
func (j *judge) run(f *Finding, format string, args ...any) {
	if line := j.enter + fmt.Sprintf(format, args...); !slices.Contains(f.Remedy, line) {
		f.Remedy = append(f.Remedy, line)
	}
}

// advise adds a line for people.
func (f *Finding) advise(format string, args ...any) *Finding {
	f.Remedy = append(f.Remedy, "# "+fmt.Sprintf(format, args...))
	return f
}

// set adds the command that gives a setting a value, and blames it.
func (j *judge) set(f *Finding, k sysctl.Key, ifname, value string) {
	j.run(f, "sysctl -w %s", Quoted(k.For(ifname)+"="+value))
}

// Quoted makes a word safe to paste: the kernel lets interface names have almost any
// character (net/core/dev.c, dev_valid_name).
func Quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// static are a rail's usable addresses that somebody configured: not link-local, and not
// from router advertisements, whose routes are the kernel's own in main.
func static(r *facts.Rail) []facts.Address {
	var out []facts.Address
	for _, a := range r.Addresses {
		if !a.FromRA && a.State == "usable" && !a.Address.Addr().IsLinkLocalUnicast() {
			out = append(out, a)
		}
	}
	return out
}

// global says that the rail has an address that reaches beyond the link.
func global(r *facts.Rail) bool {
	return slices.ContainsFunc(r.Addresses, func(a facts.Address) bool { return !a.Address.Addr().IsLinkLocalUnicast() })
}

// shares returns another interface with an address in this one's subnet.
func (j *judge) shares(r *facts.Rail, a facts.Address) string {
	for i := range j.Links {
		l := &j.Links[i]
		if l.Index == r.Index || l.Loopback {
			continue
		}
		for _, b := range l.Addrs {
			if overlaps(a.OnLink, b.Connected()) {
				return l.Name
			}
		}
	}
	return ""
}

func overlaps(a, b netip.Prefix) bool {
	return a.Overlaps(b) && !a.IsSingleIP() && !b.IsSingleIP() && !a.Addr().IsLinkLocalUnicast()
}
