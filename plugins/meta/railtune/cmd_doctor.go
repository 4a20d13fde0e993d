package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/railtune/railtune/pkg/doctor"
	"github.com/railtune/railtune/pkg/doctor/check"
	"github.com/railtune/railtune/pkg/doctor/explain"
	"github.com/railtune/railtune/pkg/doctor/gather"
	"github.com/railtune/railtune/pkg/doctor/render"
	"github.com/railtune/railtune/pkg/plugin"
)

const doctorSynopsis = targetSynopsis + " [--rail IFNAME]... [--peer ADDR]...\n" +
	"                       [--probe] [--no-firewall] [--ignore CODE]... [--brief] [-o table|json]\n" +
	"       railtune doctor --explain TEXT"

const doctorHelp = `
Says of each rail in a network namespace what is wrong with it, what shows that, and how to
mend it. It changes nothing. Without a target it looks at the namespace it is called in.

Rails are the interfaces with an RDMA device and those that railtune has rules for; others
are named with --rail, which then is the whole list.

Exit status: 0 nothing is wrong, 1 there are findings, 2 it could not be looked at.`

// doctorFlags are doctor's command line.
type doctorFlags struct {
	target
	rails, peers, ignore     list
	probe, noFirewall, terse bool
	output, explain          string
}

func (d *doctorFlags) flags(fs *flag.FlagSet) {
	d.target.flags(fs)
	fs.Var(&d.rails, "rail", "interface to judge, a name or a `PATTERN` such as 'rdma*'; several are possible")
	fs.Var(&d.peers, "peer", "`ADDRESS` of another host's rail, each a different NIC; several are possible")
	fs.BoolVar(&d.probe, "probe", false, "ask on the wire as ADD does: own addresses, gateways, peers")
	fs.BoolVar(&d.noFirewall, "no-firewall", false, "do not look at iptables rules")
	fs.Var(&d.ignore, "ignore", "leave out findings with this `CODE`; several are possible")
	fs.BoolVar(&d.terse, "brief", false, "only rails and findings, no settings, ways, rules and neighbours")
	fs.StringVar(&d.output, "o", "table", "output: `FORMAT` table or json")
	fs.StringVar(&d.explain, "explain", "", "say what causes an error, given its `TEXT` or a part of it, and which findings show it")
}

func runDoctor(args []string) int {
	var d doctorFlags
	fs := flags("doctor", doctorSynopsis, doctorHelp)
	d.flags(fs)
	if status, ok := parse(fs, args); !ok {
		return status
	}
	if d.explain != "" {
		if !explain.Write(os.Stdout, d.explain, render.Wrap) {
			return exitFindings
		}
		return exitGood
	}
	options, err := d.options()
	if err != nil {
		return complain("doctor", err)
	}
	var report *doctor.Report
	var lookErr error
	err = d.enter(func(path string, host ns.NetNS) error {
		options.Path = path
		options.Parent = plugin.ParentFinder(host)
		options.Enter = func(f func() error) error { return d.enter(func(string, ns.NetNS) error { return f() }) }
		report, lookErr = doctor.Look(context.Background(), options)
		return nil
	})
	if err = errors.Join(err, lookErr); err != nil && (report == nil || len(report.Findings) == 0) {
		return complain("doctor", err)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "railtune doctor: %v\n", err)
	}
	return d.show(report)
}

// enter is target.do, except that doctor's own namespace is not entered: that takes
// CAP_SYS_ADMIN, which a pod it is called in need not have.
func (d *doctorFlags) enter(f func(path string, host ns.NetNS) error) error {
	path, err := d.path()
	if err != nil || d.netns != "" || d.pid != 0 {
		return d.do(f)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := ns.GetCurrentNS()
	if err != nil {
		return err
	}
	defer here.Close()
	return f(path, here)
}

func (d *doctorFlags) show(report *doctor.Report) int {
	if d.output == "json" {
		if err := render.JSON(os.Stdout, report); err != nil {
			return complain("doctor", err)
		}
	} else {
		render.Table(os.Stdout, report, d.terse)
	}
	if len(report.Findings) > 0 {
		return exitFindings
	}
	return exitGood
}

func (d *doctorFlags) options() (doctor.Options, error) {
	o := doctor.Options{Options: gather.Options{Rails: d.rails, Probe: d.probe, Firewall: !d.noFirewall}, Ignore: d.ignore}
	if d.output != "table" && d.output != "json" {
		return o, fmt.Errorf("-o %s: give table or json", d.output)
	}
	for _, text := range d.peers {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return o, fmt.Errorf("--peer %s is no address", text)
		}
		o.Peers = append(o.Peers, a.Unmap())
	}
	for _, pattern := range d.rails {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return o, fmt.Errorf("--rail %s is no pattern: %w", pattern, err)
		}
	}
	for _, code := range d.ignore {
		if !check.Known(code) {
			return o, fmt.Errorf("--ignore %s: there is no such finding (docs/doctor.md lists them)", code)
		}
	}
	o.EnterCommand, o.Target = d.commands()
	return o, nil
}

// commands are what a pasted command needs in front to run in the target, and the flags
// by which railtune itself finds it.
func (d *doctorFlags) commands() (enter, target string) {
	switch dir, name := filepath.Split(d.netns); {
	case d.pid != 0:
		return fmt.Sprintf("nsenter -t %d -n ", d.pid), fmt.Sprintf("--pid %d", d.pid)
	case d.netns == "":
		return "", "--host"
	case dir == "/run/netns/" || dir == "/var/run/netns/":
		enter = "ip netns exec " + check.Quoted(name) + " "
	default:
		enter = "nsenter --net=" + check.Quoted(d.netns) + " "
	}
	return enter, "--netns " + check.Quoted(d.netns)
}
