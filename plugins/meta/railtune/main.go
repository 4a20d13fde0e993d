// Command railtune is a chained CNI meta-plugin that makes and proves the settings,
// rules and routes of a RoCE rail, and a command line tool around the same plan.
//
// With CNI_COMMAND set it is a CNI plugin and nothing else.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/railtune/railtune/pkg/cnicall"
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

// plugin runs the verb that CNI_COMMAND names.
func plugin() *types.Error {
	if os.Getenv("CNI_COMMAND") == "" {
		fmt.Fprintf(os.Stderr, "%s\nCNI protocol versions supported: %s\n", about(), strings.Join(cnicall.Versions, ", "))
		return nil
	}
	c, err := cnicall.Read(os.Getenv, os.Stdin)
	if err == nil {
		err = verb(c)
	}
	return cniError(err)
}

func verb(c *cnicall.Call) error {
	switch c.Verb {
	case cnicall.Add:
		return cmdAdd(c)
	case cnicall.Check:
		return cmdCheck(c)
	case cnicall.Del:
		return cmdDel(c)
	case cnicall.Status:
		return cmdStatus(c)
	case cnicall.Version:
		_, err := os.Stdout.WriteString(cnicall.VersionResult())
		return err
	}
	return nil // GC: railtune keeps nothing that could outlive its namespace
}
