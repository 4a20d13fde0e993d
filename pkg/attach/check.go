package attach

import (
	"context"
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Check compares the kernel with the plan that Add would carry out now, and changes
// nothing. Everything that is missing or different is named in one error, whose code
// is that of the first. What others added is none of railtune's business.
func (r *Rail) Check(cfg *config.Config, res *prevresult.Result) error {
	p, o, err := r.plan(cfg, res, everything)
	if err != nil {
		return err
	}
	d, err := r.compare(p, o)
	if err != nil {
		return err
	}
	var drift drifts
	for _, s := range p.Settings {
		v, err := sysctl.Effective(r.Files, s.Key, r.IfName)
		if err != nil {
			return cnierr.New(cnierr.Sysctl, "%w", err)
		}
		if !sysctl.Acceptable(s.Key, s.Value, v.File) && !sysctl.Acceptable(s.Key, s.Value, v.Effective) {
			drift.add(cnierr.Sysctl, "%s is %s, not %s", s.Key.For(r.IfName), v.File, s.Value)
		}
	}
	for _, rule := range d.addRules {
		drift.add(cnierr.Routing, "rule missing: ip %s", rule)
	}
	for _, route := range append(d.addRoutes, d.addMain...) {
		drift.add(cnierr.Routing, "route missing or changed: ip %s", route)
	}
	if err := r.firewallDrift(cfg, p, o, &drift); err != nil {
		return err
	}
	if len(drift.lines) > 0 {
		return drift.err(r)
	}
	if err := r.proveLookups(p, o); err != nil || cfg.Verify.GID != config.Enforce {
		return err
	}
	return r.proveGIDs(context.Background(), cfg, p, &o.state.Rail)
}

// drifts collects differences.
type drifts struct {
	code  cnierr.Code
	lines []string
}

func (d *drifts) add(code cnierr.Code, format string, args ...any) {
	if len(d.lines) == 0 {
		d.code = code
	}
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *drifts) err(r *Rail) error {
	return cnierr.New(d.code, "%s in %s is not as railtune left it: %s: delete the pod, or run ADD again",
		r.IfName, r.NetNS, strings.Join(d.lines, "; ")).With(strings.Join(d.lines, "\n"))
}
