// Package doctor looks at a network namespace and says which rail is wrong, why, and how
// to mend it. It changes nothing.
//
// The work is split: package gather reads the kernel into plain facts, package check
// judges them, package render shows the report, and package explain leads from the errors
// that people search for to the findings that explain them.
package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/railtune/railtune/pkg/doctor/check"
	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/doctor/gather"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Report is what was seen and what is wrong with it. Its JSON form is stable: fields are
// added, not renamed.
type Report struct {
	Namespace *facts.Namespace `json:"namespace"`
	Findings  []check.Finding  `json:"findings"`
	// Apply is the command that mends what railtune can mend, for all rails at once; "" where
	// none of the findings is of that kind.
	Apply string `json:"apply,omitempty"`
	// Ignored are the codes that were asked to be left out and would have been found.
	Ignored []check.Code `json:"ignored,omitempty"`
	// Milliseconds is how long looking took.
	Milliseconds int64 `json:"milliseconds"`
}

// Options say what to look at, and how to say it.
type Options struct {
	gather.Options
	// EnterCommand is what a command is prefixed with to run in the namespace.
	EnterCommand string
	// Target are the flags by which a command of railtune's is told the namespace.
	Target string
	// Ignore are codes that are known and accepted.
	Ignore []string
}

// Look looks at the calling thread's namespace; the thread must be locked. The error is
// gather's: where it is gather.ErrNoRail the report is what can be said without rails.
func Look(ctx context.Context, o Options) (*Report, error) {
	start := time.Now()
	n, err := gather.Look(ctx, o.Options)
	r := &Report{Namespace: n, Findings: []check.Finding{}}
	if n == nil || err != nil && len(n.Rules) == 0 {
		return r, err
	}
	for _, f := range check.All(n, o.EnterCommand) {
		if slices.Contains(o.Ignore, string(f.Code)) {
			if !slices.Contains(r.Ignored, f.Code) {
				r.Ignored = append(r.Ignored, f.Code)
			}
			continue
		}
		r.Findings = append(r.Findings, f)
	}
	r.verdicts()
	r.apply(o)
	r.Milliseconds = time.Since(start).Milliseconds()
	return r, err
}

// apply says how to mend rails without rules of railtune's all at once. Rails in its chain
// are ADD's: apply does not know their configuration.
func (r *Report) apply(o Options) {
	if o.Target == "" || len(o.Rails) == 0 || slices.ContainsFunc(r.Namespace.Rules, func(x facts.Rule) bool { return x.Ours }) {
		return
	}
	if !slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Code.Applies() }) {
		return
	}
	r.Apply = "railtune apply " + o.Target
	// By name: apply refuses a pattern that matches an interface with a default route,
	// which rules without a device make of any rail.
	for i := range r.Namespace.Rails {
		r.Apply += " --rail " + check.Quoted(r.Namespace.Rails[i].Name)
	}
}

// verdicts marks the settings that findings blame, and those that could have been.
func (r *Report) verdicts() {
	judged := []sysctl.Key{sysctl.ARPIgnore, sysctl.ARPAnnounce, sysctl.ARPFilter, sysctl.RPFilter, sysctl.AcceptRA}
	for i := range r.Namespace.Rails {
		rail := &r.Namespace.Rails[i]
		for k := range rail.Settings {
			s := &rail.Settings[k]
			if slices.Contains(judged, s.Key) || strings.HasPrefix(s.Key.Leaf, "proxy_arp") {
				s.Verdict = "ok"
			}
			for _, f := range r.Findings {
				if f.Rail == rail.Name && slices.Contains(f.Blames, s.Key) {
					s.Verdict = "wrong"
				}
			}
		}
	}
}
