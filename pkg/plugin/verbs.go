package plugin

import (
	"context"
	"errors"
	"os"

	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/firewall/present"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
)

// add tunes the rail, proves it, and prints prevResult with the supernet routes that
// went into main.
func (c *Call) add(parts Parts) error {
	cfg, res, err := c.decode(parts)
	if err != nil {
		return err
	}
	var p *plan.Plan
	err = c.withRail(cfg, parts, func(r *attach.Rail) (err error) {
		p, err = r.Add(context.Background(), cfg, res)
		return err
	})
	if err != nil {
		return err
	}
	return printResult(res, p)
}

func printResult(res *prevresult.Result, p *plan.Plan) error {
	var added []prevresult.Route
	for _, r := range p.Main {
		added = append(added, prevresult.Route{Dst: r.Dst, GW: r.GW})
	}
	out, err := res.Marshal(added)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(out, '\n'))
	return err
}

// check compares the rail with the plan.
func (c *Call) check(parts Parts) error {
	cfg, res, err := c.decode(parts)
	if err != nil {
		return err
	}
	return c.withRail(cfg, parts, func(r *attach.Rail) error { return r.Check(cfg, res) })
}

// del removes what is railtune's. It has nothing to do where the namespace is gone, and
// nothing of railtune's can be in the runtime's own.
func (c *Call) del(parts Parts) error {
	gone, err := namespaceGone(c.NetNS)
	if gone || err != nil {
		return err
	}
	err = c.withRail(config.ParseLenient(c.Config), parts, func(r *attach.Rail) error {
		if r.Firewall == nil {
			// The configuration may be lost by now, so only the kernel knows.
			if chains, err := present.Find(r.IfName); err != nil || len(chains) > 0 {
				return ErrLater
			}
		}
		return r.Del()
	})
	if cnierr.CodeOf(err, 0) == cnierr.Environment {
		return nil
	}
	return err
}

// status says what this node lacks.
func (c *Call) status(parts Parts) error {
	cfg, err := c.config(parts)
	if err != nil {
		return err
	}
	k, err := kernel.Open()
	if err != nil {
		return err
	}
	defer k.Close()
	if err := attach.Status(k); err != nil {
		return err
	}
	return attach.FirewallStatus(cfg, parts.Firewall)
}

// config reads the configuration, and sees whether the parts suffice for it.
func (c *Call) config(parts Parts) (*config.Config, error) {
	cfg, err := config.Parse(c.Config)
	if err == nil && cfg.Firewall.AcceptRails && parts.Firewall == nil {
		err = ErrLater
	}
	return cfg, err
}

func (c *Call) decode(parts Parts) (*config.Config, *prevresult.Result, error) {
	if c.IfName == "all" || c.IfName == "default" {
		return nil, nil, cnierr.New(cnierr.Environment, "CNI_IFNAME %q is the name of a directory in /proc/sys/net/ipv4/conf "+
			"that stands for every interface: railtune only ever changes one", c.IfName)
	}
	cfg, err := c.config(parts)
	if err != nil {
		return nil, nil, err
	}
	res, err := prevresult.Parse(cfg.PrevResult, cfg.CNIVersion, parts.Convert)
	if errors.Is(err, prevresult.ErrOtherVersion) {
		err = ErrLater
	}
	return cfg, res, err
}

// withRail calls f with the rail, on a thread in its namespace.
func (c *Call) withRail(cfg *config.Config, parts Parts, f func(*attach.Rail) error) error {
	log := NewLogger(cfg, c.Verb, c.ContainerID, c.IfName)
	defer log.Close()
	err := inNamespace(c.NetNS, c.Override, func(host ns.NetNS) error {
		k, err := kernel.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		return f(&attach.Rail{
			IfName: c.IfName, NetNS: c.NetNS, Kernel: k, Files: sysctl.Proc{}, Log: log,
			Neighbours: attach.Wire{}, RDMA: RDMAFinder(host), Parent: ParentFinder(host),
			Firewall: parts.Firewall,
		})
	})
	if err != nil && !errors.Is(err, ErrLater) {
		log.Errorf("%v", err)
	}
	return err
}
