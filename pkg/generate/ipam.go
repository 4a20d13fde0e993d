package generate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// ipam is a rail's address management: the object for the interface plugin, and what
// has to be known about it.
type ipam struct {
	object object
	// takesGateway: the object has the rail's gateway in it, so that railtune gets it
	// with the address.
	takesGateway bool
	// runtime: addresses come with each pod, through the capability "ips".
	runtime bool
}

const kinds = "whereabouts, host-local, static, nv-ipam, dhcp, none, or the JSON object itself"

func (r Rails) ipam(one rail, number int) (ipam, error) {
	kind, isText := r.IPAM.(string)
	if !isText || strings.HasPrefix(strings.TrimSpace(kind), "{") {
		o, err := objectOf("ipam", r.IPAM, number)
		if err == nil && o.text("type") == "" {
			err = fmt.Errorf("ipam: %s has no type", marshal(o))
		}
		return ipam{object: o, takesGateway: o.get("gateway") != nil}, err
	}
	switch kind {
	case "", "none":
		return ipam{object: object{}}, nil
	case "dhcp":
		return ipam{object: fields("type", kind)}, nil
	case "nv-ipam":
		if one.pool == "" {
			return ipam{}, fmt.Errorf("nv-ipam needs a pool: give its name, such as --pool rail%%d")
		}
		return ipam{object: fields("type", kind, "poolName", one.pool)}, nil
	case "static":
		return static(one), nil
	case "whereabouts", "host-local":
		if len(one.subnets) == 0 {
			return ipam{}, fmt.Errorf("%s needs a subnet: give one such as --subnet 10.61.%%d.0/24", kind)
		}
		if kind == "whereabouts" {
			return whereabouts(one), nil
		}
		return hostLocal(one), r.countsPerNetwork()
	}
	return ipam{}, fmt.Errorf("ipam %q is none of %s", kind, kinds)
}

// countsPerNetwork: host-local keeps its addresses by the network's name, so two rails
// of one subnet would get the same ones.
func (r Rails) countsPerNetwork() error {
	if r.Count == 1 || numbered(r.Subnet) {
		return nil
	}
	return fmt.Errorf("host-local counts for each network by itself: every rail would get the same addresses of %s; "+
		"give each rail a subnet (--subnet 10.61.%%d.0/24) or take another kind of ipam", r.Subnet)
}

// static puts the addresses in, or has them come with each pod.
func static(one rail) ipam {
	if len(one.address) == 0 {
		return ipam{object: fields("type", "static"), runtime: true}
	}
	var list []object
	for _, p := range one.address {
		list = append(list, withGateway(fields("address", p), one, p.Addr()))
	}
	return ipam{object: fields("type", "static", "addresses", list), takesGateway: true}
}

// whereabouts has one gateway for both families, so of two subnets it gets that of the
// first; railtune ignores it for the other (docs/clients.md).
func whereabouts(one rail) ipam {
	if len(one.subnets) == 1 {
		return ipam{object: withGateway(fields("type", "whereabouts", "range", one.subnets[0]), one, one.subnets[0].Addr()), takesGateway: true}
	}
	var list []object
	for _, p := range one.subnets {
		list = append(list, fields("range", p))
	}
	return ipam{object: fields("type", "whereabouts", "ipRanges", list)}
}

func hostLocal(one rail) ipam {
	var ranges [][]object
	for _, p := range one.subnets {
		ranges = append(ranges, []object{withGateway(fields("subnet", p), one, p.Addr())})
	}
	return ipam{object: fields("type", "host-local", "ranges", ranges), takesGateway: true}
}

func withGateway[A interface{ Is4() bool }](o object, one rail, of A) object {
	for _, gw := range one.gateways {
		if gw.Is4() == of.Is4() {
			o.set("gateway", gw)
		}
	}
	return o
}

// fields makes an object of names and values in turn.
func fields(pairs ...any) object {
	var o object
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// jsonOf is the JSON text of what a flag gave as JSON and a file as YAML, its patterns
// expanded.
func jsonOf(value any, number int) (string, error) {
	text, isText := value.(string)
	if !isText {
		b, err := yaml.MarshalWithOptions(value, yaml.JSON())
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	return expand(text, number)
}

// objectOf reads an object of the user's; nothing is an empty one.
func objectOf(what string, value any, number int) (object, error) {
	if value == nil || value == "" {
		return object{}, nil
	}
	text, err := jsonOf(value, number)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	o, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no JSON object: %w", what, err)
	}
	return o, nil
}

// listOf reads objects with commas between, as metaPlugins has them, with or without
// brackets around.
func listOf(what string, value any, number int) ([]object, error) {
	if value == nil || value == "" {
		return nil, nil
	}
	text, err := jsonOf(value, number)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list, err := rawList(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no list of JSON objects: %w", what, err)
	}
	return list, nil
}

// rawList reads objects with commas between, with or without brackets around.
func rawList(text string) (list []object, err error) {
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "[") {
		text = "[" + strings.TrimSuffix(text, ",") + "]"
	}
	err = json.Unmarshal([]byte(text), &list)
	return list, err
}
