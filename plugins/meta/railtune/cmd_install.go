package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/railtune/railtune/pkg/install"
)

const (
	installSynopsis   = "--to DIR [--idle | --check]"
	uninstallSynopsis = "--from DIR [--idle | --check]"

	pluginName = "railtune"
	// mainPackage is what a program's build information says it was made from.
	mainPackage = "github.com/railtune/railtune/plugins/meta/railtune"
)

const installHelp = `Copies this binary to a folder of CNI plugins as "railtune", while the runtime may be starting
plugins from there: the old one serves until the new one is complete, on disk and read back. Does
nothing where it is there already. The folder must exist; what killed installations left in it is
removed. Statuses: 0 it is there, 1 --check found something else, 2 it could not be copied.`

const uninstallHelp = `Removes "railtune" from a folder of CNI plugins, if it is one, of whatever version. Not before the
last pod is gone that has railtune in its chain: a runtime deletes a pod's network with the plugin.
Statuses: 0 it is gone, 1 --check found it, 2 it could not be removed.`

// afterwards is what a container does that has nothing more to do.
type afterwards struct {
	idle, check bool
	told        chan os.Signal // to end
}

func (a *afterwards) flags(fs *flag.FlagSet) {
	fs.BoolVar(&a.idle, "idle", false, "stay until SIGTERM, as the container of a DaemonSet has to; changes nothing more")
	fs.BoolVar(&a.check, "check", false, "only say whether it is so already, as a readiness probe has to; changes nothing")
}

// parseFolder reads a command line with a folder that has to be given.
func parseFolder(fs *flag.FlagSet, args []string, flag string, dir *string, then *afterwards) (status int, ok bool) {
	if status, ok = parse(fs, args); !ok {
		return status, false
	}
	switch {
	case *dir == "":
		return complain(fs.Name(), fmt.Errorf("--%s is missing: give the runtime's folder of CNI plugins, such as /opt/cni/bin", flag)), false
	case then.idle && then.check:
		return complain(fs.Name(), fmt.Errorf("--idle and --check exclude each other: give one")), false
	}
	if then.idle {
		// From the start: who reads that it is installed may tell it to end at once.
		then.told = make(chan os.Signal, 1)
		signal.Notify(then.told, syscall.SIGTERM, syscall.SIGINT)
	}
	return exitGood, true
}

func runInstall(args []string) int {
	var dir string
	var then afterwards
	fs := flags("install", installSynopsis, installHelp)
	fs.StringVar(&dir, "to", "", "the runtime's folder of CNI plugins, a `DIR` such as /opt/cni/bin")
	then.flags(fs)
	if status, ok := parseFolder(fs, args, "to", &dir, &then); !ok {
		return status
	}
	if then.check {
		return found(install.Check(install.Self, dir, pluginName))
	}
	state, err := install.Install(install.Self, dir, pluginName)
	if err != nil {
		return complain(fs.Name(), err)
	}
	did := "was there already"
	if state.Changed {
		did = "is installed"
	}
	fmt.Printf("%s %s: %s\n", state.Path, did, about())
	return then.end()
}

func runUninstall(args []string) int {
	var dir string
	var then afterwards
	fs := flags("uninstall", uninstallSynopsis, uninstallHelp)
	fs.StringVar(&dir, "from", "", "the runtime's folder of CNI plugins, a `DIR` such as /opt/cni/bin")
	then.flags(fs)
	if status, ok := parseFolder(fs, args, "from", &dir, &then); !ok {
		return status
	}
	if then.check {
		return found(install.Gone(dir, pluginName))
	}
	removed, err := install.Uninstall(dir, pluginName, mainPackage)
	if err != nil {
		return complain(fs.Name(), err)
	}
	did := "was not in"
	if removed {
		did = "is removed from"
	}
	fmt.Println(pluginName, did, dir)
	return then.end()
}

// found prints what is not as it should be.
func found(err error) int {
	if err != nil {
		fmt.Println(err)
		return exitFindings
	}
	return exitGood
}

// end returns at once, or with --idle when it is told to: nothing is left to be done
// then, so that is no failure.
func (a *afterwards) end() int {
	if a.idle {
		<-a.told
	}
	return exitGood
}
