package main_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/railtune/railtune/pkg/testbed"
)

// Commands about what surrounds the pod and the plugin.
func init() {
	maps.Copy(commands, map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"refused":   cmdRefused,
		"namespace": cmdNamespace,
		"at":        cmdAt,
		"steady":    cmdSteady,
		"around":    cmdAround,
		"plugin":    cmdPlugin,
	})
}

// cmdRefused runs an ADD that must fail, with further fields for this call only, taken
// as the text they are: refused NAME JSON CODE TEXT….
func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b, r := bedOf(ts), bedOf(ts).rail(args[0])
	config := strings.TrimSuffix(b.config(r, b.prevResult(r)), "}") + "," + strings.TrimPrefix(args[1], "{")
	before, after := b.call(ts, "ADD", r, config)
	mustFail(ts, b.last, args[2:])
	mustEqual(ts, "I4: a refused ADD changed the pod", before, after)
}

// cmdCall runs a verb with stdin from a file and further environment, for what the
// commands above cannot say: call VERB NAME FILE [VAR=VALUE]…
func cmdCall(ts *testscript.TestScript, neg bool, args []string) {
	b, r := bedOf(ts), bedOf(ts).rail(args[1])
	stdin := strings.NewReplacer("$NETNS", b.pod.Path()).Replace(ts.ReadFile(args[2]))
	before, after := b.call(ts, args[0], r, stdin, args[3:]...)
	if neg {
		mustFail(ts, b.last, nil)
		// An IPv6 address becomes final, or fails, by itself while a verb runs.
		if d := testbed.Diff(before, after).Except("addr "+r.name+" inet6 ", "route6 local "); len(d) > 0 {
			ts.Fatalf("I4: a failed verb changed the pod:\n%s", d)
		}
		return
	}
	if b.last.Exit != 0 {
		ts.Fatalf("exit %d: %s", b.last.Exit, b.last.Stdout)
	}
}

// cmdNamespace makes another network namespace and puts its name into a variable:
// "namespace PEER", then "at $PEER ip …".
func cmdNamespace(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	n, err := testbed.NewNamespace(strings.ToLower(args[0]))
	ts.Check(err)
	ts.Setenv(args[0], n.Name)
	ts.Defer(func() {
		if err := n.Close(); err != nil {
			ts.Logf("%v", err)
		}
	})
}

// cmdAt runs any command in a namespace: "at $PEER ping -c1 10.61.1.1".
func cmdAt(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, append([]string{"ip", "netns", "exec"}, args...))
}

// cmdAround runs shell commands in a mount namespace of the plugin's own before each
// of its calls: "around 'mount -t tmpfs none /proc/sys/net/ipv6'"; "around nothing"
// ends that. The CNI_ variables are set.
func cmdAround(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b := bedOf(ts)
	binary, err := testbed.FindRailtune()
	ts.Check(err)
	b.binary = binary
	if args[0] == "nothing" {
		return
	}
	b.binary = ts.MkAbs("railtune-around")
	// A child writes it: a descriptor of ours that another test's fork has inherited
	// would make it busy.
	script := "#!/bin/sh\nexec unshare -m sh -ec '" + args[0] + "\nexec " + binary + "'\n"
	ts.Check(ts.Exec("sh", "-c", `printf %s "$1" >"$2" && chmod 755 "$2"`, "sh", script, b.binary))
}

// cmdPlugin runs another plugin of the chain, in the wire's namespace as its node:
//
//	plugin VERB TYPE NAME [JSON|FILE]
//
// What its ADD returns is NAME's prevResult from then on. It gets the prevResult as it
// stands, or none where NAME was not made by rail.
func cmdPlugin(ts *testscript.TestScript, neg bool, args []string) {
	b := bedOf(ts)
	verb, kind, name := args[0], args[1], args[2]
	_, made := b.rails[name]
	r := b.rail(name)
	config := map[string]any{"cniVersion": b.version, "name": "rail-" + name, "type": kind}
	if len(args) > 3 {
		text := args[3]
		if !strings.HasPrefix(text, "{") {
			text = os.Expand(ts.ReadFile(text), ts.Getenv)
		}
		ts.Check(json.Unmarshal([]byte(text), &config))
	}
	switch {
	case verb != "ADD" && r.result != "":
		config["prevResult"] = json.RawMessage(r.result)
	case made:
		config["prevResult"] = json.RawMessage(b.prevResult(r))
	}
	tools, err := testbed.FindTools()
	ts.Check(err)
	folder, _, _ := strings.Cut(tools.Path, ":")
	out, err := testbed.Call{
		Plugin: filepath.Join(folder, kind), Command: verb, ContainerID: "c-" + b.pod.Name, NetNS: b.pod.Path(),
		IfName: name, Config: config, Host: b.wire,
	}.Run(context.Background())
	ts.Check(err)
	ts.Logf("%s %s %s: exit %d\n%s%s", kind, verb, name, out.Exit, out.Stdout, out.Stderr)
	if (out.Exit != 0) != neg {
		ts.Fatalf("%s %s: unexpected exit %d", kind, verb, out.Exit)
	}
	if verb == "ADD" && out.Exit == 0 {
		r.prev = &out.Stdout
		ts.Check(b.pod.SettleAddresses(name))
	}
}
