package generate

import (
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/sysctl"
)

// sysctlDHead says what the file is for, and what it cannot do.
const sysctlDHead = `# Rails %s of a node whose pods use hostNetwork. Put it into /etc/sysctl.d.
#
# systemd applies it at boot, and udev to each interface of that name that appears later:
# a VF that is made again has these values again. Nothing applies it inside a pod.
# The kernel uses the higher of conf/all and the interface for both ARP values. A file with
# a later name, or an agent that writes at boot, has the last word: railtune doctor shows it.
`

// sysctlD is one file for all rails: their names as a pattern.
func sysctlD(r Rails, rails []rail) ([]File, error) {
	pattern, err := glob(r.Parent)
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	if strings.HasPrefix(pattern, "*") {
		return nil, fmt.Errorf("parent %q as a pattern of sysctl.d is %q, which takes in every interface", r.Parent, pattern)
	}
	if len(rails) == 1 {
		pattern = rails[0].parent
	}
	entry, err := r.railtune(rails[0], r.First)
	if err != nil {
		return nil, err
	}
	conf, err := config.Parse(marshal(entry))
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, sysctlDHead, pattern)
	for _, s := range conf.Sysctl {
		value := s.Value
		if s.Key == sysctl.AcceptRA && value == config.AutoAcceptRA {
			value = "2"
			out.WriteString("\n# A node that runs pods forwards, and then takes router advertisements with 2 only. It has\n" +
				"# to be 2 before the first one comes. Ignored where the kernel has no IPv6.\n")
		}
		// A dash: not an error where it cannot be set (sysctl.d(5)).
		dash := ""
		if s.Key.Family == sysctl.IPv6 {
			dash = "-"
		}
		fmt.Fprintf(&out, "%s%s = %s\n", dash, settingName(s.Key, pattern), value)
	}
	return []File{{"70-railtune.conf", out.String()}}, nil
}

// settingName is the key as sysctl.d takes it. With a dot in the interface's name it is
// the form with slashes: where a slash comes first, dots are dots (sysctl.d(5)).
func settingName(k sysctl.Key, pattern string) string { return k.For(pattern) }
