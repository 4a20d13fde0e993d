package main_test

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

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
	return b.pod.SettleAddresses(name, soon...)
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
	return b.pod.SettleAddresses(name)
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
