package generate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/sysctl"
)

// dranetDriver is the name under which DRANET's driver reads its parameters and offers
// its devices' attributes.
const dranetDriver = "dra.net"

const dranetHead = `# DRANET moves the rails into the pod and makes these settings. It adds neither the source rules
# nor the supernets that railtune adds, and checks nothing afterwards: for those, railtune apply
# --pid PID once the pod runs, and railtune doctor.
`

// maxRequests is DeviceRequestsMaxSize of resource.k8s.io/v1.
const maxRequests = 32

// dranet is one template whose claim has every rail, each with its configuration
// (NetworkConfig in DRANET's pkg/apis; unknown fields are refused there).
func dranet(r Rails, rails []rail) ([]File, error) {
	if len(rails) > maxRequests {
		return nil, fmt.Errorf("%d rails are more than the %d requests a claim can have", len(rails), maxRequests)
	}
	var requests, configs []any
	for i, one := range rails {
		name := strings.ReplaceAll(one.name, ".", "-") // a label, not a name with dots
		requests = append(requests, yaml.MapSlice{
			{Key: "name", Value: name},
			{Key: "exactly", Value: yaml.MapSlice{
				{Key: "deviceClassName", Value: r.DeviceClass},
				{Key: "selectors", Value: []any{yaml.MapSlice{{Key: "cel", Value: yaml.MapSlice{
					{Key: "expression", Value: fmt.Sprintf("device.attributes[%q].ifName == %q", dranetDriver, one.parent)},
				}}}}},
			}},
		})
		settings, err := r.dranetInterface(one, r.First+i)
		if err != nil {
			return nil, err
		}
		configs = append(configs, yaml.MapSlice{
			{Key: "requests", Value: []string{name}},
			{Key: "opaque", Value: yaml.MapSlice{
				{Key: "driver", Value: dranetDriver},
				{Key: "parameters", Value: yaml.MapSlice{{Key: "interface", Value: settings}}},
			}},
		})
	}
	name := strings.Trim(withoutNumber(r.Name), "-.")
	if err := checkName(name); err != nil {
		return nil, err
	}
	text, err := document(yaml.MapSlice{
		{Key: "apiVersion", Value: "resource.k8s.io/v1"},
		{Key: "kind", Value: "ResourceClaimTemplate"},
		{Key: "metadata", Value: metadata(name, r.Namespace, nil)},
		{Key: "spec", Value: yaml.MapSlice{{Key: "spec", Value: yaml.MapSlice{{Key: "devices", Value: yaml.MapSlice{
			{Key: "requests", Value: requests}, {Key: "config", Value: configs},
		}}}}}},
	})
	return []File{{name + ".yaml", dranetHead + text}}, err
}

// withoutNumber is what a pattern has besides the number.
func withoutNumber(pattern string) string {
	s, err := glob(pattern)
	if err != nil {
		return pattern
	}
	return strings.ReplaceAll(s, "*", "")
}

// dranetInterface is DRANET's InterfaceConfig of a rail.
func (r Rails) dranetInterface(one rail, number int) (out yaml.MapSlice, err error) {
	entry, err := r.railtune(one, number)
	if err != nil {
		return nil, err
	}
	conf, err := config.Parse(marshal(entry))
	if err != nil {
		return nil, err
	}
	if len(one.address) > 0 {
		out = append(out, yaml.MapItem{Key: "addresses", Value: one.address})
	}
	if r.MTU != 0 {
		out = append(out, yaml.MapItem{Key: "mtu", Value: r.MTU})
	}
	for _, s := range conf.Sysctl {
		field := dranetField(s.Key)
		switch {
		case field == "":
			return nil, fmt.Errorf("DRANET has no field for %s; leave it out, and have railtune apply set it", s.Key)
		case s.Value == config.AutoAcceptRA: // older versions refuse acceptRA, so it is there when asked for
			continue
		}
		value, err := strconv.Atoi(s.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Key, err)
		}
		out = append(out, yaml.MapItem{Key: field, Value: value})
	}
	more, err := objectOf("interface", r.Interface, number)
	if err != nil {
		return nil, err
	}
	fromJSON, err := toYAML(more)
	return append(out, fromJSON...), err
}

// dranetField is the field of InterfaceConfig for a setting, or "".
func dranetField(k sysctl.Key) string {
	if k.Family == sysctl.IPv6 && k.Tree == sysctl.Conf {
		switch k.Leaf {
		case "dad_transmits":
			return "dadTransmits"
		case "router_solicitation_delay":
			return "routerSolicitationDelay"
		case "router_solicitation_interval":
			return "routerSolicitationInterval"
		}
	}
	switch k {
	case sysctl.ARPIgnore:
		return "arpIgnore"
	case sysctl.ARPAnnounce:
		return "arpAnnounce"
	case sysctl.AcceptRA:
		return "acceptRA"
	}
	return ""
}

const podHead = `# For pods whose rails no CNI chain tunes. The kubelet has to allow both sysctls
# (allowedUnsafeSysctls: ["net.ipv4.conf.all.arp_ignore","net.ipv4.conf.all.arp_announce"], or
# "net.ipv4.conf.all.*") on each node, or the pod is refused with SysctlForbidden. A pod with
# hostNetwork is always refused: there the values are the node's (railtune generate sysctl.d).
# "all" covers interfaces that arrive later, and eth0 too: with arp_ignore=1 a cluster network
# that gives eth0 no address of its own stops working. railtune in a CNI chain leaves it alone.
`

// pod is a pod with the values for all its interfaces: the pod's specification cannot
// name one (a name in a sysctl has to be there before the rails are).
func pod(r Rails, _ []rail) ([]File, error) {
	value := func(k sysctl.Key, v string) yaml.MapSlice {
		return yaml.MapSlice{{Key: "name", Value: k.For("all")}, {Key: "value", Value: v}}
	}
	text, err := document(yaml.MapSlice{
		{Key: "apiVersion", Value: "v1"},
		{Key: "kind", Value: "Pod"},
		{Key: "metadata", Value: metadata("rails", r.Namespace, nil)},
		{Key: "spec", Value: yaml.MapSlice{
			{Key: "securityContext", Value: yaml.MapSlice{
				{Key: "sysctls", Value: []any{value(sysctl.ARPIgnore, "1"), value(sysctl.ARPAnnounce, "2")}},
			}},
			{Key: "containers", Value: []any{yaml.MapSlice{
				{Key: "name", Value: "main"}, {Key: "image", Value: "registry.k8s.io/pause:3.10"},
			}}},
		}},
	})
	return []File{{"pod.yaml", podHead + text}}, err
}
