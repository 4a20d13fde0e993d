// Package ahead runs the plugin before the command line tool around it is initialised.
//
// A runtime calls the plugin for every rail of every pod, and each call is a process of
// its own that lasts milliseconds. The tool is in the same binary, and what it is made of
// (iptables, YAML, regular expressions, tables) would be initialised for each of them,
// which took a tenth of an ADD's time and most of a megabyte (docs/speed.md).
//
// The order is the language's: of the packages whose imports are initialised, the first
// by import path is next (Go specification, "Program initialization"). The last that this
// one waits for is net/netip. What of the tool imports package net comes after it, and so
// does nearly all; the plugin must not import that itself. The tests of package main hold
// it in place: they list what may be initialised before.
package ahead

import (
	"os"

	"github.com/railtune/railtune/pkg/plugin"
	// It comes before everything else.
	_ "github.com/railtune/railtune/pkg/ahead/first"
)

// Left is the call that needs parts which only package main has, nil where there is none.
// Nothing was changed for it yet.
var Left *plugin.Call

func init() {
	if os.Getenv("CNI_COMMAND") == "" {
		return
	}
	call := plugin.Read()
	status, err := call.Run(plugin.Parts{})
	if err != nil {
		Left = call
		return
	}
	os.Exit(status)
}
