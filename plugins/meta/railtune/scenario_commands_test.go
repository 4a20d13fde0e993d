package main_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
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

// cmdRail makes an interface as the plugin before railtune would, a veth whose far
// end is on the wire's bridge, and notes what that plugin would return:
//
//	rail NAME [ADDRESS[,gw=GATEWAY[,silent]][,noaddr][,noindex][,dad]]… [route=DST[,GATEWAY]]…
//		[mac=MAC] [index=N] [down] [nolink] [bridge=NAME|none]
//
// An address is put on the link unless noaddr is given; IPv6 duplicate address
// detection is left out unless dad is. A gateway is a station on the bridge, unless
// silent is given.
func cmdRail(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	b, r := bedOf(ts), bedOf(ts).rail(args[0])
	r.ips, r.routes, r.prev = nil, nil, nil // a second rail of that name starts over
	made := parseRail(ts, r, args[1:])
	if made.noLink {
		return
	}
	ts.Check(b.makeLink(r.name, made))
}

// link is what parseRail found out about the interface itself.
type link struct {
	mac, bridge  string
	index        string // the interface index; "" for the kernel's choice
	down, noLink bool
	dad          bool
	addrs        [][]string
	gateways     map[netip.Addr]int
}

func parseRail(ts *testscript.TestScript, r *rail, words []string) link {
	made := link{bridge: "br0"}
	for _, word := range words {
		if value, ok := strings.CutPrefix(word, "bridge="); ok {
			made.bridge = value
		}
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "route":
			dst, gw, _ := strings.Cut(value, ",")
			route := map[string]any{"dst": dst}
			if gw != "" {
				route["gw"] = gw
			}
			r.routes = append(r.routes, route)
		case "mac":
			made.mac = value
		case "bridge":
		case "index":
			made.index = value
		case "down":
			made.down = true
		case "nolink":
			made.noLink = true
		default:
			made.addAddress(ts, r, word)
		}
	}
	return made
}

func (l *link) addAddress(ts *testscript.TestScript, r *rail, word string) {
	parts := strings.Split(word, ",")
	entry := map[string]any{"address": parts[0], "interface": 0}
	add := []string{"addr", "add", parts[0], "dev", r.name}
	if strings.Contains(parts[0], ":") && !slices.Contains(parts, "dad") {
		add = append(add, "nodad")
	}
	on, station := true, true
	for _, p := range parts[1:] {
		switch {
		case strings.HasPrefix(p, "gw="):
			entry["gateway"] = p[len("gw="):]
		case p == "silent":
			station = false
		case p == "noaddr":
			on = false
		case p == "noindex":
			delete(entry, "interface")
		case p == "dad":
			l.dad = true
		default:
			ts.Fatalf("rail: %q in %q", p, word)
		}
	}
	r.ips = append(r.ips, entry)
	if on {
		l.addrs = append(l.addrs, add)
	}
	if gw, ok := entry["gateway"].(string); ok && station {
		l.gatewayOf(parts[0], gw)
	}
}

func (b *bed) makeLink(name string, l link) error {
	far := "p-" + name
	if len(far) > 15 {
		far = far[:15]
	}
	create := []string{"link", "add", name}
	if l.index != "" {
		create = append(create, "index", l.index)
	}
	if err := b.ip(b.pod, append(create, "type", "veth", "peer", "name", far, "netns", b.wire.Name)...); err != nil {
		return err
	}
	if l.mac != "" {
		if err := b.ip(b.pod, "link", "set", name, "address", l.mac); err != nil {
			return err
		}
	}
	if err := b.plug(far, l.bridge); err != nil {
		return err
	}
	if err := b.gateways(l); err != nil {
		return err
	}
	if !l.down {
		if err := b.setUp(name, l); err != nil {
			return err
		}
	}
	var soon []netip.Addr
	for _, args := range l.addrs {
		if err := b.ip(b.pod, args...); err != nil {
			return err
		}
		if a, ok := addrOfText(args[2]); ok && a.Is6() && slices.Contains(args, "nodad") {
			soon = append(soon, a)
		}
	}
	if l.down {
		return nil
	}
	return steady(b.pod, name, soon...)
}

// setUp sets a link up; the pod's default is to do without duplicate address detection.
func (b *bed) setUp(name string, l link) error {
	if l.dad {
		if err := b.pod.SetSysctl("ipv6/conf/"+name+"/accept_dad", "1"); err != nil {
			return err
		}
	}
	if err := b.ip(b.pod, "link", "set", name, "up"); err != nil {
		return err
	}
	return steady(b.pod, name)
}

// plug connects a rail's far end to a bridge of the wire, made when first named.
func (b *bed) plug(far, bridge string) error {
	if bridge == "none" {
		return b.ip(b.wire, "link", "set", far, "up")
	}
	if b.ip(b.wire, "link", "show", bridge) != nil {
		if err := b.ip(b.wire, "link", "add", bridge, "type", "bridge"); err != nil {
			return err
		}
		if err := b.ip(b.wire, "link", "set", bridge, "up"); err != nil {
			return err
		}
	}
	return b.ip(b.wire, "link", "set", far, "master", bridge, "up")
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
		text = ts.ReadFile(text)
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
