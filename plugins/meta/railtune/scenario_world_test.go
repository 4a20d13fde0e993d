package main_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/railtune/railtune/pkg/testbed"
)

// Commands about what surrounds the pod and the plugin.
func init() {
	maps.Copy(commands, map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"refused":   cmdRefused,
		"namespace": cmdNamespace,
		"around":    cmdAround,
		"plugin":    cmdPlugin,
		"within":    cmdWithin,
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

// cmdNamespace makes another network namespace and puts its name into a variable:
// "namespace PEER", then "exec ip -n $PEER …".
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
		ts.Check(steady(b.pod, name))
	}
}

// cmdWithin asserts that the last verb took no longer than that, for what must not
// grow with the number of targets or of other people's objects: "within 3s".
func cmdWithin(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	most, err := time.ParseDuration(args[0])
	ts.Check(err)
	if took := bedOf(ts).last.Took; took > most {
		ts.Fatalf("the verb took %v, want at most %v", took, most)
	}
}
