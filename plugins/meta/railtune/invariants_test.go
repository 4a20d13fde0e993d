package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/railtune/railtune/pkg/testbed"
)

// call runs one verb and returns the pod before and after.
func (b *bed) call(ts *testscript.TestScript, verb string, r *rail, config any, env ...string) (before, after testbed.Snapshot) {
	before, err := b.pod.Snapshot(context.Background())
	ts.Check(err)
	if b.baseline == nil {
		b.baseline = &before
	}
	b.last, err = testbed.Call{
		Plugin: b.binary, Command: verb, ContainerID: "c-" + b.pod.Name, NetNS: b.pod.Path(), IfName: r.name,
		Config: config, Env: env,
	}.Run(context.Background())
	ts.Check(err)
	after, err = b.pod.Snapshot(context.Background())
	ts.Check(err)
	ts.Logf("%s %s: exit %d\n%s%s", verb, r.name, b.last.Exit, b.last.Stdout, b.last.Stderr)
	return before, after
}

// config is what the plugin gets on stdin.
func (b *bed) config(r *rail, prev string) string {
	c := map[string]any{"cniVersion": b.version, "name": "rail-" + r.name, "type": "railtune"}
	for k, v := range r.conf {
		c[k] = v
	}
	if prev != "" {
		c["prevResult"] = json.RawMessage(prev)
	}
	out, err := json.Marshal(c)
	if err != nil {
		panic(err) // a script's conf is JSON already
	}
	return string(out)
}

// prevResult is what the plugins before railtune return for the rail.
func (b *bed) prevResult(r *rail) string {
	if r.prev != nil {
		return *r.prev
	}
	p := map[string]any{
		"cniVersion": b.version,
		"interfaces": []any{map[string]any{"name": r.name, "mac": "02:a1:00:00:00:01", "sandbox": b.pod.Path()}},
		"dns":        map[string]any{"nameservers": []any{"10.96.0.10"}},
	}
	if len(r.ips) > 0 {
		for _, ip := range r.ips {
			if b.version < "1" {
				ip["version"] = "4"
				if strings.Contains(ip["address"].(string), ":") {
					ip["version"] = "6"
				}
			}
		}
		p["ips"] = r.ips
	}
	if len(r.routes) > 0 {
		p["routes"] = r.routes
	}
	out, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// cmdAddRail runs ADD: "add NAME", or "! add NAME CODE TEXT…" for one that must fail.
// A good ADD is repeated and checked as well (I1–I3, I5, I7); a failed one must leave
// nothing (I4).
func cmdAddRail(ts *testscript.TestScript, neg bool, args []string) {
	b, r := bedOf(ts), bedOf(ts).rail(args[0])
	prev := b.prevResult(r)
	before, after := b.call(ts, "ADD", r, b.config(r, prev))
	if neg {
		mustFail(ts, b.last, args[1:])
		mustEqual(ts, "I4: a failed ADD changed the pod", before, after)
		return
	}
	mustSucceed(ts, b.last)
	first := b.last
	r.result = first.Stdout
	mustPassThrough(ts, prev, first.Stdout)
	mustOwnChanges(ts, r, testbed.Diff(before, after))
	r.added = ours(testbed.Diff(before, after), "+ ", r.added)

	_, again := b.call(ts, "ADD", r, b.config(r, prev))
	mustSucceed(ts, b.last)
	mustEqual(ts, "I5: a repeated ADD changed the pod", after, again)
	if b.last.Stdout != first.Stdout {
		ts.Fatalf("I5: a repeated ADD printed\n%snot\n%s", b.last.Stdout, first.Stdout)
	}
	if b.version >= "0.4.0" {
		checkOK(ts, b, r)
	}
	b.last = first
}

func checkOK(ts *testscript.TestScript, b *bed, r *rail) {
	before, after := b.call(ts, "CHECK", r, b.config(r, r.result))
	mustSucceed(ts, b.last)
	mustEqual(ts, "I7: CHECK changed the pod", before, after)
	if b.last.Stdout != "" {
		ts.Fatalf("I7: CHECK printed %q", b.last.Stdout)
	}
}

// cmdCheckRail runs CHECK: "check NAME", or "! check NAME CODE TEXT…".
func cmdCheckRail(ts *testscript.TestScript, neg bool, args []string) {
	b, r := bedOf(ts), bedOf(ts).rail(args[0])
	if !neg {
		checkOK(ts, b, r)
		return
	}
	prev := r.result
	if r.prev != nil {
		prev = *r.prev
	}
	before, after := b.call(ts, "CHECK", r, b.config(r, prev))
	mustFail(ts, b.last, args[1:])
	mustEqual(ts, "I7: CHECK changed the pod", before, after)
}

// cmdDelRail runs DEL twice (I6): "del NAME", with "noprev" without prevResult, with
// "stripped" with nothing but name and type, as Multus sends it at times.
func cmdDelRail(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b, r := bedOf(ts), bedOf(ts).rail(args[0])
	config := b.config(r, r.result)
	if len(args) > 1 {
		switch args[1] {
		case "noprev":
			config = b.config(r, "")
		case "stripped":
			config = `{"cniVersion":"","ipam":{},"name":"rail","type":"railtune"}`
		default:
			ts.Fatalf("del: %q", args[1])
		}
	}
	before, after := b.call(ts, "DEL", r, config)
	mustDelete(ts, b.last)
	for _, line := range r.added {
		if count(after, line) > 0 && count(after, line) >= count(before, line) {
			ts.Fatalf("I6: DEL left %s", line)
		}
	}
	for _, c := range testbed.Diff(before, after) {
		if !strings.HasPrefix(c, "- ") || !strings.Contains(c, mark) {
			ts.Fatalf("I6: DEL changed what is not railtune's: %s", c)
		}
	}
	_, again := b.call(ts, "DEL", r, config)
	mustDelete(ts, b.last)
	mustEqual(ts, "I6: a repeated DEL changed the pod", after, again)
	r.added = nil
}

// mark is how iproute2 shows railtune's protocol.
const mark = "proto 72"

func settingsOf(ifname string) []string {
	var out []string
	for _, dir := range []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"} {
		out = append(out, "sysctl net/"+dir+"/"+ifname+"/")
	}
	return out
}

func mustOwnChanges(ts *testscript.TestScript, r *rail, changes testbed.Changes) {
	for _, c := range changes.Except(settingsOf(r.name)...) {
		if !strings.Contains(c, mark) {
			ts.Fatalf("I2/I3: ADD of %s changed what is not its own: %s", r.name, c)
		}
	}
}

// ours adds to have the lines of railtune's that came.
func ours(changes testbed.Changes, sign string, have []string) []string {
	for _, c := range changes {
		if line, ok := strings.CutPrefix(c, sign); ok && strings.Contains(line, mark) {
			have = append(have, line)
		}
	}
	return have
}

func count(s testbed.Snapshot, line string) int {
	n := 0
	for _, l := range s.Lines {
		if l == line {
			n++
		}
	}
	return n
}

func mustEqual(ts *testscript.TestScript, what string, before, after testbed.Snapshot) {
	if d := testbed.Diff(before, after); len(d) > 0 {
		ts.Fatalf("%s:\n%s", what, d)
	}
}

func mustSucceed(ts *testscript.TestScript, o testbed.Outcome) {
	if o.Exit != 0 {
		ts.Fatalf("exit %d: %s%s", o.Exit, o.Stdout, o.Stderr)
	}
}

func mustDelete(ts *testscript.TestScript, o testbed.Outcome) {
	mustSucceed(ts, o)
	if o.Stdout != "" {
		ts.Fatalf("I6: DEL printed %q", o.Stdout)
	}
}

// mustFail asserts one CNI error object on stdout (I4), its code (where the first text is
// a number), and texts in it.
func mustFail(ts *testscript.TestScript, o testbed.Outcome, want []string) {
	if o.Exit == 0 {
		ts.Fatalf("the verb succeeded: %s%s", o.Stdout, o.Stderr)
	}
	var e struct {
		Code    int    `json:"code"`
		Msg     string `json:"msg"`
		Details string `json:"details"`
	}
	if err := onlyJSON(o.Stdout, &e); err != nil || e.Code == 0 || e.Msg == "" {
		ts.Fatalf("I4: stdout is not one CNI error (%v): %s", err, o.Stdout)
	}
	for i, w := range want {
		if code, err := strconv.Atoi(w); i == 0 && err == nil {
			if e.Code != code {
				ts.Fatalf("code %d, want %d: %s", e.Code, code, e.Msg)
			}
		} else if !strings.Contains(e.Msg+e.Details, w) {
			ts.Fatalf("the error lacks %q: %s\n%s", w, e.Msg, e.Details)
		}
	}
}

// mustPassThrough asserts that the result is prevResult with at most routes added (I1).
func mustPassThrough(ts *testscript.TestScript, prev, out string) {
	var before, after map[string]any
	ts.Check(onlyJSON(prev, &before))
	if err := onlyJSON(out, &after); err != nil {
		ts.Fatalf("I1: stdout is not one result: %v: %q", err, out)
	}
	was, _ := before["routes"].([]any)
	is, _ := after["routes"].([]any)
	if len(is) < len(was) || len(was) > 0 && !reflect.DeepEqual(was, is[:len(was)]) {
		ts.Fatalf("I1: routes %v became %v", was, is)
	}
	delete(before, "routes")
	delete(after, "routes")
	if !reflect.DeepEqual(before, after) {
		ts.Fatalf("I1: prevResult was changed:\n%v\n%v", before, after)
	}
}

func onlyJSON(text string, v any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return io.ErrUnexpectedEOF
	}
	return nil
}
