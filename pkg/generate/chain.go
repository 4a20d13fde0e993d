package generate

import (
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
)

// conflist is the network of one rail as libcni reads it.
func (r Rails) conflist(one rail, number int) (object, error) {
	first, err := r.interfacePlugin(one, number)
	if err != nil {
		return nil, err
	}
	rest, err := r.metaPlugins(one, number)
	if err != nil {
		return nil, err
	}
	return fields("cniVersion", r.CNIVersion, "name", one.name, "plugins", append([]object{first}, rest...)), nil
}

// interfacePlugin is the chain's first object.
func (r Rails) interfacePlugin(one rail, number int) (object, error) {
	o := fields("type", r.Plugin)
	switch r.Plugin {
	case IPVLAN:
		o.set("master", one.parent)
		o.set("mode", "l2")
	case MACVLAN:
		o.set("master", one.parent)
		o.set("mode", "bridge")
	case HostDevice:
		if one.resource == "" { // else Multus gives it the device's PCI address
			o.set("device", one.parent)
		}
	case SRIOV:
		if one.resource == "" {
			return nil, fmt.Errorf("sriov needs a resource: give the device plugin's name of it, such as --resource example.com/%s", r.Parent)
		}
	default:
		return nil, fmt.Errorf("plugin %q is none of %s, %s, %s, %s", r.Plugin, IPVLAN, MACVLAN, HostDevice, SRIOV)
	}
	if r.MTU != 0 {
		if r.Plugin == HostDevice || r.Plugin == SRIOV {
			return nil, fmt.Errorf("%s takes no MTU; set it on the node, or with --chain '{\"type\":\"tuning\",\"mtu\":%d}'", r.Plugin, r.MTU)
		}
		o.set("mtu", r.MTU)
	}
	more, err := objectOf("interface", r.Interface, number)
	if err != nil {
		return nil, err
	}
	for _, m := range more {
		o.set(m.name, m.value)
	}
	manage, err := r.ipam(one, number)
	if err != nil {
		return nil, err
	}
	if r.Plugin == IPVLAN && len(manage.object) == 0 {
		return nil, fmt.Errorf("ipvlan attaches nothing without IPAM; give --ipam, or take macvlan")
	}
	if manage.runtime {
		o.set("capabilities", map[string]bool{"ips": true})
	}
	o.set("ipam", manage.object)
	return o, nil
}

// metaPlugins are the plugins after the interface plugin, railtune the last of them.
func (r Rails) metaPlugins(one rail, number int) ([]object, error) {
	chain, err := listOf("chain", r.Chain, number)
	if err != nil {
		return nil, err
	}
	for _, o := range chain {
		if o.text("type") == "" {
			return nil, fmt.Errorf("chain: %s has no type", marshal(o))
		}
	}
	entry, err := r.railtune(one, number)
	if err != nil {
		return nil, err
	}
	return append(chain, entry), nil
}

// railtune is railtune's own entry, as pkg/config takes it.
func (r Rails) railtune(one rail, number int) (object, error) {
	entry := fields("type", "railtune")
	given, err := objectOf("railtune", r.Railtune, number)
	if err != nil {
		return nil, err
	}
	manage, err := r.ipam(one, number)
	if err != nil {
		return nil, err
	}
	supernets, err := r.supernets(one, manage.takesGateway)
	if err != nil {
		return nil, err
	}
	if len(one.gateways) > 0 && !manage.takesGateway && len(supernets) == 0 {
		return nil, fmt.Errorf("nothing takes the gateway %s: ipam %v has no place for it and there are no supernets; leave it out or give --supernets", one.gateways[0], r.IPAM)
	}
	if len(supernets) > 0 {
		if given.get("supernets") != nil {
			return nil, fmt.Errorf("supernets are given twice, by themselves and in railtune's fields; give them once")
		}
		entry.set("supernets", supernets)
	}
	for _, m := range given {
		entry.set(m.name, m.value)
	}
	return entry, decodes(entry)
}

// decodes reads the entry as the plugin will.
func decodes(entry object) error {
	if entry.text("type") != "railtune" {
		return fmt.Errorf("railtune: the type is %s; leave it out", entry.get("type"))
	}
	_, err := config.Parse(marshal(entry))
	if e, ok := err.(*cnierr.Error); ok && e.Details != "" {
		return fmt.Errorf("railtune: %s", strings.ReplaceAll(e.Details, "\n", "; "))
	}
	if err != nil {
		return fmt.Errorf("railtune: %w", err)
	}
	return nil
}

// supernets are the prefixes that cover all rails. Where IPAM cannot carry the rail's
// gateway it stands here.
func (r Rails) supernets(one rail, ipamHasGateway bool) ([]object, error) {
	var all []object
	for s := range words(r.Supernets) {
		p, err := prefixes("supernet", s)
		if err != nil {
			return nil, err
		}
		o := fields("dst", p[0].Masked())
		if gw := one.gateway(p[0].Addr()); gw.IsValid() && !ipamHasGateway {
			o.set("gw", gw)
		}
		all = append(all, o)
	}
	return all, nil
}

// notes are what the user should know about these rails and need not change.
func (r Rails) notes(kind string) (notes []string) {
	add := func(when bool, note string) {
		if when {
			notes = append(notes, note)
		}
	}
	network := kind == "nad" || kind == "sriovnetwork" || kind == "conflist"
	add(network && r.IPAM == "host-local", "host-local knows nothing of other nodes: each node needs ranges of its own, "+
		"or two pods get one address and railtune's ADD fails with \"duplicate\"")
	add(r.Address != "" && (kind == "dranet" || r.IPAM == "static"), "the addresses are fixed, so only one pod can have these rails at a time")
	add(kind == "sriovnetwork" && r.Namespace == "", "without a namespace the operator makes the definitions in its own; give the pods' (--namespace)")
	add(kind == "dranet" && r.Supernets != "", "DRANET's routes have no metric, so equal supernets of several rails exclude one another: "+
		"they are left out; railtune apply makes them in the pod")
	return notes
}
