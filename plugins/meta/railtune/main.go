// Command railtune is a chained CNI meta-plugin that makes and proves the settings,
// rules and routes of a RoCE rail, and a command line tool around the same plan.
//
// With CNI_COMMAND set it is a CNI plugin and nothing else.
package main

import (
	"fmt"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

func main() {
	if os.Getenv("CNI_COMMAND") == "" && len(os.Args) > 1 {
		os.Exit(run(os.Args[1:]))
	}
	if err := plugin(); err != nil {
		if printErr := err.Print(); printErr != nil {
			fmt.Fprintln(os.Stderr, "railtune:", err, "(and stdout cannot be written:", printErr, ")")
		}
		os.Exit(1)
	}
}

// supported are the versions of the CNI specification whose results pass through.
var supported = version.PluginSupports("0.3.1", "0.4.0", "1.0.0", "1.1.0")

// deletable adds the versions a DEL may still come with: Multus sends an empty
// cniVersion, which the library reads as 0.1.0, when it has lost the configuration.
// A DEL that fails leaks the device, so it is served all the same.
var deletable = version.PluginSupports("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")

// plugin runs the verb that CNI_COMMAND names.
func plugin() *types.Error {
	versions := supported
	if os.Getenv("CNI_COMMAND") == "DEL" {
		versions = deletable
	}
	verbs := skel.CNIFuncs{Add: cmdAdd, Check: cmdCheck, Del: cmdDel, GC: cmdGC, Status: cmdStatus}
	return skel.PluginMainFuncsWithError(verbs, versions, about())
}
