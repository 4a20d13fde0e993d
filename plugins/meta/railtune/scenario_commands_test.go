package main_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/railtune/railtune/pkg/testbed"
)

// commands are the scripts' own commands.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"rail":     cmdRail,
	"conf":     cmdConf,
	"prev":     cmdPrev,
	"version":  cmdVersion,
	"ip":       cmdIP,
	"wire":     cmdWire,
	"in":       cmdIn,
	"sysctl":   cmdSysctl,
	"add":      cmdAddRail,
	"check":    cmdCheckRail,
	"del":      cmdDelRail,
	"call":     cmdCall,
	"warned":   cmdWarned,
	"printed":  cmdPrinted,
	"restored": cmdRestored,
}

func bedOf(ts *testscript.TestScript) *bed { return ts.Value(bedKey{}).(*bed) }

func noNeg(ts *testscript.TestScript, neg bool) {
	if neg {
		ts.Fatalf("this command has no negation")
	}
}

// cmdConf sets fields of railtune's entry: conf NAME '{"table": 500}', or a file, or
// none to start over.
func cmdConf(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	text, r := args[1], bedOf(ts).rail(args[0])
	if text == "none" {
		r.conf = map[string]any{}
		return
	}
	if !strings.HasPrefix(text, "{") {
		text = os.Expand(ts.ReadFile(text), ts.Getenv)
	}
	ts.Check(json.Unmarshal([]byte(text), &r.conf))
}

// cmdPrev replaces the prevResult: prev NAME FILE, prev NAME none, or JSON.
func cmdPrev(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	text := args[1]
	switch {
	case text == "none":
		text = ""
	case text != "null" && !strings.HasPrefix(text, "{"):
		text = os.Expand(ts.ReadFile(text), ts.Getenv)
	}
	bedOf(ts).rail(args[0]).prev = &text
}

// cmdVersion sets the cniVersion of what follows.
func cmdVersion(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	bedOf(ts).version = args[0]
}

// cmdIP runs ip in the pod; what it prints can be matched with stdout.
func cmdIP(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, append([]string{"ip", "-n", bedOf(ts).pod.Name}, args...))
}

// cmdWire runs ip at the far end of the rails.
func cmdWire(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, append([]string{"ip", "-n", bedOf(ts).wire.Name}, args...))
}

// cmdIn runs any command in the pod's network namespace.
func cmdIn(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, append([]string{"ip", "netns", "exec", bedOf(ts).pod.Name}, args...))
}

func run(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[0], args[1:]...)
	if (err != nil) != neg {
		ts.Fatalf("%s: unexpected outcome: %v", strings.Join(args, " "), err)
	}
}

// cmdSysctl sets a value of the pod, or asserts it:
//
//	sysctl ipv4/conf/all/rp_filter 1
//	sysctl ipv4/conf/all/rp_filter == 1
func cmdSysctl(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	pod := bedOf(ts).pod
	if args[1] != "==" {
		ts.Check(pod.SetSysctl(args[0], args[1]))
		return
	}
	got, err := pod.Sysctl(args[0])
	ts.Check(err)
	if got != args[2] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[2])
	}
}

// cmdWarned asserts a text on the last verb's stderr.
func cmdWarned(ts *testscript.TestScript, neg bool, args []string) {
	contains(ts, neg, "stderr", bedOf(ts).last.Stderr, args[0])
}

// cmdPrinted asserts a text on the last verb's stdout.
func cmdPrinted(ts *testscript.TestScript, neg bool, args []string) {
	contains(ts, neg, "stdout", bedOf(ts).last.Stdout, args[0])
}

func contains(ts *testscript.TestScript, neg bool, where, text, want string) {
	if strings.Contains(text, want) == neg {
		ts.Fatalf("%s has %q: %v\n%s", where, want, !neg, text)
	}
}

// cmdRestored asserts that the pod is as before the first verb, but for settings of
// the interfaces named, which nothing resets.
func cmdRestored(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b := bedOf(ts)
	now, err := b.pod.Snapshot(context.Background())
	ts.Check(err)
	var own []string
	for _, name := range args {
		own = append(own, settingsOf(name)...)
	}
	if d := testbed.Diff(*b.baseline, now).Except(own...); len(d) > 0 {
		ts.Fatalf("the pod is not as before:\n%s", d)
	}
}
