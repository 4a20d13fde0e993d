package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plan"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/sysctl"
)

// cmdAdd tunes the rail, proves it, and prints prevResult with the supernet routes
// that went into main.
func cmdAdd(args *skel.CmdArgs) error {
	cfg, res, err := decode(args)
	if err != nil {
		return cniError(err)
	}
	var p *plan.Plan
	err = withRail(args, cfg, "ADD", overridden(args), func(r *attach.Rail) (err error) {
		p, err = r.Add(context.Background(), cfg, res)
		return err
	})
	if err != nil {
		return cniError(err)
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
		return cniError(err)
	}
	_, err = os.Stdout.Write(append(out, '\n'))
	return err
}

// cmdCheck compares the rail with the plan.
func cmdCheck(args *skel.CmdArgs) error {
	cfg, res, err := decode(args)
	if err != nil {
		return cniError(err)
	}
	return cniError(withRail(args, cfg, "CHECK", overridden(args), func(r *attach.Rail) error { return r.Check(cfg, res) }))
}

// cmdDel removes what is railtune's. It has nothing to do where the namespace is
// gone, and nothing of railtune's can be in the runtime's own.
func cmdDel(args *skel.CmdArgs) error {
	override := overridden(args)
	// The library fails a DEL for its own namespace, after calling this. Such a DEL
	// changes nothing here and is then no failure: nothing was left behind.
	args.NetnsOverride = "true"
	gone, err := namespaceGone(args.Netns)
	if gone || err != nil {
		return cniError(err)
	}
	err = withRail(args, config.ParseLenient(args.StdinData), "DEL", override, (*attach.Rail).Del)
	if cnierr.CodeOf(err, 0) == cnierr.Environment {
		return nil
	}
	return cniError(err)
}

// cmdGC succeeds: railtune keeps nothing that could outlive its namespace.
func cmdGC(*skel.CmdArgs) error { return nil }

// cmdStatus says what this node lacks.
func cmdStatus(args *skel.CmdArgs) error {
	if _, err := config.Parse(args.StdinData); err != nil {
		return cniError(err)
	}
	k, err := kernel.Open()
	if err != nil {
		return cniError(err)
	}
	defer k.Close()
	return cniError(attach.Status(k))
}

func decode(args *skel.CmdArgs) (*config.Config, *prevresult.Result, error) {
	if args.IfName == "all" || args.IfName == "default" {
		return nil, nil, cnierr.New(cnierr.Environment, "CNI_IFNAME %q is the name of a directory in /proc/sys/net/ipv4/conf "+
			"that stands for every interface: railtune only ever changes one", args.IfName)
	}
	cfg, err := config.Parse(args.StdinData)
	if err != nil {
		return nil, nil, err
	}
	res, err := prevresult.Parse(cfg.PrevResult, cfg.CNIVersion)
	return cfg, res, err
}

// withRail calls f with the rail, on a thread in its namespace.
func withRail(args *skel.CmdArgs, cfg *config.Config, verb string, override bool, f func(*attach.Rail) error) error {
	log := newLogger(cfg, verb, args.ContainerID, args.IfName)
	defer log.close()
	err := inNamespace(args.Netns, override, func(host ns.NetNS) error {
		k, err := kernel.Open()
		if err != nil {
			return err
		}
		defer k.Close()
		return f(&attach.Rail{
			IfName: args.IfName, NetNS: args.Netns, Kernel: k, Files: sysctl.Proc{}, Log: log,
			Neighbours: attach.Wire{}, Parent: parentFinder(host),
		})
	})
	if err != nil {
		log.Errorf("%v", err)
	}
	return err
}

// overridden reads CNI_NETNS_OVERRIDE as the library does.
func overridden(args *skel.CmdArgs) bool {
	return strings.EqualFold(args.NetnsOverride, "true") || args.NetnsOverride == "1"
}

// cniError gives an error the form the specification asks for.
func cniError(err error) error {
	if err == nil {
		return nil
	}
	code, details := cnierr.CodeOf(err, cnierr.Code(types.ErrInternal)), ""
	var e *cnierr.Error
	if errors.As(err, &e) {
		details = e.Details
	}
	return types.NewError(uint(code), err.Error(), details)
}
