package main

import (
	"context"
	"errors"
	"os"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnicall"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/firewall"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/prevresult/convert"
	"github.com/railtune/railtune/pkg/sysctl"
)

// cmdAdd tunes the rail, proves it, and prints prevResult with the supernet routes that
// went into main.
func cmdAdd(c *cnicall.Call) error {
	cfg, res, err := decode(c)
	if err != nil {
		return err
	}
	var p *plan.Plan
	err = withRail(c, cfg, func(r *attach.Rail) (err error) {
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

// cmdCheck compares the rail with the plan.
func cmdCheck(c *cnicall.Call) error {
	cfg, res, err := decode(c)
	if err != nil {
		return err
	}
	return withRail(c, cfg, func(r *attach.Rail) error { return r.Check(cfg, res) })
}

// cmdDel removes what is railtune's. It has nothing to do where the namespace is gone, and
// nothing of railtune's can be in the runtime's own.
func cmdDel(c *cnicall.Call) error {
	gone, err := namespaceGone(c.NetNS)
	if gone || err != nil {
		return err
	}
	err = withRail(c, config.ParseLenient(c.Config), (*attach.Rail).Del)
	if cnierr.CodeOf(err, 0) == cnierr.Environment {
		return nil
	}
	return err
}

// cmdStatus says what this node lacks.
func cmdStatus(c *cnicall.Call) error {
	cfg, err := config.Parse(c.Config)
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
	return attach.FirewallStatus(cfg, firewall.IPTables{})
}

func decode(c *cnicall.Call) (*config.Config, *prevresult.Result, error) {
	if c.IfName == "all" || c.IfName == "default" {
		return nil, nil, cnierr.New(cnierr.Environment, "CNI_IFNAME %q is the name of a directory in /proc/sys/net/ipv4/conf "+
			"that stands for every interface: railtune only ever changes one", c.IfName)
	}
	cfg, err := config.Parse(c.Config)
	if err != nil {
		return nil, nil, err
	}
	res, err := prevresult.Parse(cfg.PrevResult, cfg.CNIVersion, convert.Result)
	return cfg, res, err
}

// withRail calls f with the rail, on a thread in its namespace.
func withRail(c *cnicall.Call, cfg *config.Config, f func(*attach.Rail) error) error {
	log := newLogger(cfg, c.Verb, c.ContainerID, c.IfName)
	defer log.close()
	err := inNamespace(c.NetNS, c.Override, func(host ns.NetNS) error {
		k, err := kernel.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		return f(&attach.Rail{
			IfName: c.IfName, NetNS: c.NetNS, Kernel: k, Files: sysctl.Proc{}, Log: log,
			Neighbours: attach.Wire{}, RDMA: rdmaFinder(host), Parent: parentFinder(host),
			Firewall: firewall.IPTables{},
		})
	})
	if err != nil {
		log.Errorf("%v", err)
	}
	return err
}

// cniError gives an error the form the specification asks for.
func cniError(err error) *types.Error {
	if err == nil {
		return nil
	}
	details := ""
	var e *cnierr.Error
	if errors.As(err, &e) {
		details = e.Details
	}
	return types.NewError(uint(cnierr.CodeOf(err, cnierr.Internal)), err.Error(), details)
}
