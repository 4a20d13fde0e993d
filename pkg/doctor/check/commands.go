package check

import (
	"strings"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/policy"
)

// addRoute and addRule are the commands that make a route or rule, safe to paste.
func addRoute(r policy.Route) string {
	r.Dev = Quoted(r.Dev)
	return "ip " + r.String()
}

func addRule(r policy.Rule) string {
	if r.OIF != "" {
		r.OIF = Quoted(r.OIF)
	}
	return facts.RuleText(r)
}

// deletion turns such a command into the one that removes exactly what it makes.
func deletion(add string) string {
	return strings.Replace(strings.Replace(add, "route add", "route del", 1), "rule add", "rule del", 1)
}

// ipFlag is the option by which ip is told the family.
func ipFlag(f policy.Family) string {
	if f == policy.IPv6 {
		return "-6 "
	}
	return ""
}
