package testbed

import (
	"context"
	"fmt"
	"maps"

	"github.com/vishvananda/netlink"
)

// PrevResult is what the interface plugin of a chain would have returned for a
// rail that is in the pod already.
func (p *Pod) PrevResult(r Rail) (Object, error) {
	var mac string
	err := p.Do(func() error {
		link, err := netlink.LinkByName(r.Name)
		if err != nil {
			return fmt.Errorf("%s in pod %s: %w", r.Name, p.Role, err)
		}
		mac = link.Attrs().HardwareAddr.String()
		return nil
	})
	if err != nil {
		return nil, err
	}
	ip := Object{"address": r.Addr.String(), "interface": 0}
	if r.Gateway.IsValid() {
		ip["gateway"] = r.Gateway.String()
	}
	return Object{
		"cniVersion": "1.0.0",
		"interfaces": []Object{{"name": r.Name, "mac": mac, "sandbox": p.Path()}},
		"ips":        []Object{ip},
	}, nil
}

// Chained runs a plugin for one rail as the next of a chain: entry is its object
// of the conflist, as in Railtune. A DEL gets no prevResult.
func (p *Pod) Chained(ctx context.Context, verb string, r Rail, entry Object) (Outcome, error) {
	plugin, err := findPlugin(entry["type"])
	if err != nil {
		return Outcome{}, err
	}
	config := Object{"cniVersion": "1.0.0", "name": r.network()}
	maps.Copy(config, entry)
	if verb != "DEL" {
		if config["prevResult"], err = p.PrevResult(r); err != nil {
			return Outcome{}, err
		}
	}
	return Call{
		Plugin: plugin, Command: verb, Config: config, Host: p.Node,
		ContainerID: p.Name, NetNS: p.Path(), IfName: r.Name,
	}.Run(ctx)
}

// Chain is Chained for a plugin that must succeed: its failure is the error.
func (p *Pod) Chain(ctx context.Context, verb string, r Rail, entry Object) (Outcome, error) {
	o, err := p.Chained(ctx, verb, r, entry)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return o, fmt.Errorf("%s %s %s: %w", entry["type"], verb, p.Prefixed(r), err)
	}
	return o, nil
}
