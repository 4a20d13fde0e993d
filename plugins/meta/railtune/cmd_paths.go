package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/railtune/railtune/pkg/paths"
)

const pathsSynopsis = "--peer-map FILE | --peer RAIL=ADDRESS… | --mine [flags]"

const pathsHelp = `
Sends echo requests from each rail to each rail of the peers, bound to the rail's device and bound
to its address, and says which are answered with the reply coming in on the same rail. Where a
path through a gateway does not work it is followed hop by hop, and a switch without a route or a
VLAN is told from a pod without a route, as far as one end can tell.

FILE (- is stdin) has a line for each rail of each peer: its name in this pod, the peer's address
on it and, if you like, the peer's name. --mine prints these lines for the pod it is called in:

  kubectl exec peer -- railtune paths --mine |
      kubectl exec -i pod -- railtune paths --peer-map -

It changes nothing, needs CAP_NET_RAW, and cannot see by which of its rails the peer was reached:
run it from both ends. Exit status: 0 all paths work, 1 one does not, 2 it could not be tried.`

func runPaths(args []string) int {
	const name = "paths"
	var (
		t            target
		file, format string
		mine         bool
		o            paths.Options
	)
	fs := flags(name, pathsSynopsis, pathsHelp)
	t.flags(fs)
	fs.StringVar(&file, "peer-map", "", "the peers' rails, from this `FILE`")
	fs.Func("peer", "a peer's rail, as `RAIL=ADDRESS`; several times, or with commas between", func(s string) error {
		more, err := paths.ParsePeers(s)
		o.Peers = append(o.Peers, more...)
		return err
	})
	fs.BoolVar(&mine, "mine", false, "print the rails of this pod as a peer map for another, and end")
	fs.StringVar(&format, "o", "table", "output: table or json")
	fs.BoolVar(&o.SameRail, "same-rail", false, "try only paths from a rail to the same one of the peer")
	fs.IntVar(&o.Count, "count", paths.DefaultCount, "requests over each path: a wrong MAC shows from the second on")
	fs.DurationVar(&o.Timeout, "timeout", paths.DefaultTimeout, "for the whole run, however many paths are silent")
	fs.IntVar(&o.MaxHops, "max-hops", paths.DefaultMaxHops, "how far a path is followed")
	if status, ok := parse(fs, args); !ok {
		return status
	}
	var err error
	switch {
	case format != "table" && format != "json":
		err = fmt.Errorf("-o %s: give table or json", format)
	case o.Count < 1 || o.Count > 100 || o.MaxHops < 1 || o.MaxHops > paths.MaxHopsShown || o.Timeout <= 0:
		err = fmt.Errorf("give --count 1 to 100, --max-hops 1 to %d, and a --timeout above 0", paths.MaxHopsShown)
	case mine:
		err = printMine(&t)
	default:
		err = mapped(file, &o)
	}
	if err != nil {
		return complain(name, err)
	}
	if mine {
		return exitGood
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var report *paths.Report
	if err := t.do(func(string, ns.NetNS) (err error) {
		report, err = paths.Run(ctx, o)
		return err
	}); err != nil {
		return complain(name, err)
	}
	if err := printPaths(report, format); err != nil {
		return complain(name, err)
	}
	if !report.Good() {
		return exitFindings
	}
	return exitGood
}

// mapped adds the peers of a file.
func mapped(file string, o *paths.Options) error {
	if file != "" {
		text, err := read(file)
		if err != nil {
			return err
		}
		more, err := paths.ParseMap(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		o.Peers = append(o.Peers, more...)
	}
	if len(o.Peers) == 0 {
		return errors.New("give --peer-map FILE or --peer RAIL=ADDRESS")
	}
	return nil
}

func printMine(t *target) error {
	return t.do(func(string, ns.NetNS) error {
		peers, err := paths.Mine()
		for _, p := range peers {
			fmt.Println(p.Rail, p.Addr)
		}
		return err
	})
}

func printPaths(report *paths.Report, format string) error {
	if format == "table" {
		return report.Table(os.Stdout)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}
