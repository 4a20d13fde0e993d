package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/firewall"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/plugin"
	"github.com/railtune/railtune/pkg/sysctl"
)

const (
	applySynopsis = "(--netns PATH | --pid N | --host) --rail PATTERN... [--config FILE] [--dry-run] [--undo]"
	applyHelp     = `
Does for rails that no CNI chain configured (hostNetwork, DRANET) what ADD does in a pod:
settings, private tables, source rules, supernets, and the proof that they hold. Addresses
are those on the links, gateways those of the links' own routes; what router advertisements
gave is left to the kernel. The plan is printed first.

All rails are changed, then all are proven. If one cannot be, every rail is put back as it
was. Applying again changes nothing. --undo removes rules, routes and the packet filter's
chains; interface settings stay, as what they were before is kept nowhere.

Exit status: 0 done, 1 a rail cannot be done, 2 nothing could be tried.`
)

// applyOptions is apply's command line.
type applyOptions struct {
	target
	rails        list
	config       string
	dryRun, undo bool
}

func runApply(args []string) int {
	var o applyOptions
	fs := flags("apply", applySynopsis, applyHelp)
	o.flags(fs)
	if status, ok := parse(fs, args); !ok {
		return status
	}
	cfg, err := o.check()
	if err != nil {
		return complain("apply", err)
	}
	status := exitUsage // unless the namespace is entered
	if err := o.do(func(path string, host ns.NetNS) (err error) {
		status, err = o.run(cfg, path, host)
		return err
	}); err != nil {
		return complain("apply", err)
	}
	return status
}

func (o *applyOptions) flags(fs *flag.FlagSet) {
	o.target.flags(fs)
	fs.Var(&o.rails, "rail", "a rail, by name or `PATTERN` such as 'rdma*'; several are possible")
	fs.StringVar(&o.config, "config", "", "`FILE` with railtune's entry of a chain, for all these rails; - is stdin (default {})")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print only; nothing is changed, and nothing sent")
	fs.BoolVar(&o.undo, "undo", false, "remove what apply made")
}

// check judges the command line and reads the configuration.
func (o *applyOptions) check() (*config.Config, error) {
	switch {
	case o.netns == "" && o.pid == 0 && !o.host:
		return nil, errors.New("say where: --netns, --pid, or --host for the namespace railtune is called in")
	case len(o.rails) == 0:
		return nil, errors.New("say which interfaces are rails: --rail 'rdma*'; railtune does not guess")
	}
	cfg, err := readConfig(o.config)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", o.config, err)
	}
	return cfg, nil
}

func readConfig(file string) (*config.Config, error) {
	var text []byte
	var err error
	switch file {
	case "":
		return config.Default(), nil
	case "-":
		text, err = io.ReadAll(os.Stdin)
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	return config.Parse(text)
}

// run works in the namespace. An error means that nothing could be tried.
func (o *applyOptions) run(cfg *config.Config, path string, host ns.NetNS) (status int, err error) {
	if same, err := plugin.IsCurrent(host); err != nil || same && !o.host {
		return exitUsage, errors.Join(err, fmt.Errorf("%s is the namespace railtune itself runs in: say --host if that is meant", path))
	}
	here, err := ns.GetCurrentNS()
	if err != nil {
		return exitUsage, err
	}
	defer here.Close()
	enter := func(f func() error) error { return here.Do(func(ns.NetNS) error { return f() }) }
	fleet := &attach.Fleet{Config: cfg, Enter: enter}
	k, err := kernel.Open()
	if err != nil {
		return exitUsage, err
	}
	defer k.Close()
	names, err := attach.Select(k, o.rails, o.undo)
	if err != nil {
		return exitUsage, err
	}
	for _, name := range names {
		k, err := kernel.Open()
		if err != nil {
			return exitUsage, err
		}
		defer k.Close()
		log := plugin.NewLogger(cfg, "apply", path, name)
		defer log.Close()
		fleet.Rails = append(fleet.Rails, &attach.Rail{
			IfName: name, NetNS: path, Kernel: k, Files: sysctl.Proc{}, Log: log,
			Neighbours: attach.Wire{}, Firewall: firewall.IPTables{}, RDMA: plugin.RDMAFinder(host), Parent: plugin.ParentFinder(host),
		})
	}
	if o.undo {
		return o.undoAll(fleet), nil
	}
	return o.applyAll(fleet), nil
}

// applyAll prints the plans, carries them out, and returns the exit status.
func (o *applyOptions) applyAll(fleet *attach.Fleet) int {
	prepared, err := fleet.Prepare()
	for _, p := range prepared {
		fmt.Printf("# %s: %d of %d to do\n%s\n", p.IfName(), p.Missing, p.Wanted, p)
	}
	if err != nil {
		return cannot(err, "nothing was changed")
	}
	if o.dryRun {
		fmt.Println("# dry run: nothing was changed")
		return exitGood
	}
	// Interrupted, it puts everything back before it ends.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	changes, err := fleet.Apply(ctx, prepared)
	if err != nil {
		if errors.Is(err, attach.ErrNotRestored) {
			return cannot(err, "some rails are changed: see above, or remove it all with --undo")
		}
		return cannot(err, "every rail is as it was")
	}
	fmt.Printf("# done and proven: %d rails, %d changes\n", len(prepared), changes)
	return exitGood
}

// undoAll removes what is railtune's of each rail, prints it, and returns the exit status.
func (o *applyOptions) undoAll(fleet *attach.Fleet) int {
	var errs []error
	for _, r := range fleet.Rails {
		lines, err := r.Undo(o.dryRun)
		fmt.Printf("# %s: %d to remove\n", r.IfName, len(lines))
		for _, line := range lines {
			fmt.Println(line)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.IfName, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return cannot(err, "what is listed was removed")
	}
	if o.dryRun {
		fmt.Println("# dry run: nothing was removed")
		return exitGood
	}
	fmt.Println("# removed; interface settings (net.ipv4.conf.IFNAME.* and the like) stay as they are")
	return exitGood
}

// cannot reports why rails could not be done, with the evidence, and what that leaves.
func cannot(err error, leaves string) int {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		fmt.Fprintln(os.Stderr, "railtune apply:", err)
		var e *cnierr.Error
		if errors.As(err, &e) && e.Details != "" {
			fmt.Fprintln(os.Stderr, "    "+strings.ReplaceAll(e.Details, "\n", "\n    "))
		}
	}
	fmt.Fprintln(os.Stderr, "railtune apply:", leaves)
	return exitFindings
}
