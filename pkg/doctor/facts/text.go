package facts

import (
	"strings"

	"github.com/railtune/railtune/pkg/policy"
)

// RuleText is the ip command that makes a rule. Rules of others have actions that
// railtune's own do not (FR_ACT_*, include/uapi/linux/fib_rules.h), and ip takes names.
func RuleText(r policy.Rule) string {
	text := "ip " + r.String()
	for _, action := range []struct{ number, name string }{{"6", "blackhole"}, {"8", "prohibit"}, {"3", "nop"}} {
		text = strings.Replace(text, " action "+action.number+" ", " "+action.name+" ", 1)
	}
	return text
}
