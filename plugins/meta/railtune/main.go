// Command railtune is a chained CNI meta-plugin that makes and proves the settings,
// rules and routes of a RoCE rail, and a command line tool around the same plan.
//
// With CNI_COMMAND set it is a CNI plugin and nothing else: package ahead then ends the
// process before main, but for the few calls that need a part which only main has.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/railtune/railtune/pkg/ahead"
	"github.com/railtune/railtune/pkg/cnicall/versions"
	"github.com/railtune/railtune/pkg/firewall"
	"github.com/railtune/railtune/pkg/plugin"
	"github.com/railtune/railtune/pkg/prevresult/convert"
)

func main() {
	switch {
	case ahead.Left != nil:
		status, err := ahead.Left.Run(plugin.Parts{Firewall: firewall.IPTables{}, Convert: convert.Result})
		if err != nil {
			fmt.Fprintln(os.Stderr, "railtune:", err)
			status = 1
		}
		os.Exit(status)
	case len(os.Args) > 1:
		os.Exit(run(os.Args[1:]))
	}
	fmt.Fprintf(os.Stderr, "%s\nCNI protocol versions supported: %s\n", about(), strings.Join(versions.Spoken, ", "))
}
