package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// A command is one subcommand. It writes its findings to stdout and what went wrong
// to stderr, and returns the exit status.
type command struct {
	name string
	// synopsis is what follows "railtune NAME" in the usage line.
	synopsis string
	// says is one line for the list of commands.
	says string
	run  func(args []string) int
}

// The exit statuses that every subcommand keeps to.
const (
	exitGood     = 0
	exitFindings = 1 // what was asked about is not as it should be
	exitUsage    = 2 // it could not be looked at, or the command line makes no sense
)

func commands() []command {
	return []command{
		{"doctor", doctorSynopsis, "say which rail is wrong, why, and how to mend it; changes nothing", runDoctor},
		{"paths", pathsSynopsis, "ping every rail of the peers from every rail here: which paths work", runPaths},
		{"generate", generateSynopsis, "print network attachments, sysctl.d files and more for a set of rails", runGenerate},
		{"apply", applySynopsis, "make the settings where no CNI chain runs: hostNetwork, DRANET", runApply},
		{"install", installSynopsis, "copy this binary to a node's folder of CNI plugins", runInstall},
		{"uninstall", uninstallSynopsis, "remove it from there", runUninstall},
		{"version", "", "print the version", func([]string) int { fmt.Println(about()); return exitGood }},
	}
}

// run runs a subcommand and returns the exit status.
func run(args []string) int {
	name := strings.TrimLeft(args[0], "-")
	switch name {
	case "help", "h":
		usage(os.Stdout)
		return exitGood
	case "v":
		name = "version"
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(args[1:])
		}
	}
	fmt.Fprintf(os.Stderr, "railtune: unknown command %q\n\n", args[0])
	usage(os.Stderr)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, `railtune is a chained CNI meta-plugin: put {"type":"railtune"} after the plugin that
makes the interface, in the same "plugins" list. A CNI runtime calls it then.

As a command line tool:

`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  railtune %-10s %s\n", c.name, c.says)
	}
	fmt.Fprint(w, "\n\"railtune COMMAND --help\" explains a command.\n")
}

// flags returns a flag set that prints the command's usage, and more, to stdout when
// it is asked for help and to stderr after a mistake.
func flags(name, synopsis, more string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "usage: railtune %s %s\n\n%s\n", name, synopsis, strings.TrimSpace(more))
		fmt.Fprintln(fs.Output())
		fs.PrintDefaults()
	}
	return fs
}

// parse reads a command line without surplus arguments. ok false means that the
// command is to end with the given status.
func parse(fs *flag.FlagSet, args []string) (status int, ok bool) {
	err := fs.Parse(args)
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	switch {
	case err == nil:
		return exitGood, true
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(os.Stdout)
		fs.Usage()
		return exitGood, false
	}
	return complain(fs.Name(), err), false
}

// complain reports why a command could not do its work.
func complain(name string, err error) int {
	fmt.Fprintf(os.Stderr, "railtune %s: %v\n", name, err)
	return exitUsage
}
