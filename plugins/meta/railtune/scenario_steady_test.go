package main_test

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdSteady waits until a link's IPv6 addresses are usable, after a script has set it
// up or moved it: "steady net1".
func cmdSteady(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg)
	ts.Check(bedOf(ts).pod.SettleAddresses(args[0]))
}

// gateways makes a station for each gateway of a rail: an address of the wire's
// bridge that the rail is on. It is what answers where a switch would.
func (b *bed) gateways(l link) error {
	for gw, bits := range l.gateways {
		args := []string{"addr", "replace", fmt.Sprintf("%s/%d", gw, bits), "dev", l.bridge}
		if gw.Is6() {
			args = append(args, "nodad")
		}
		if err := b.ip(b.wire, args...); err != nil {
			return err
		}
		if gw.Is6() {
			if err := b.wire.SettleAddresses(l.bridge, gw); err != nil {
				return err
			}
		}
	}
	return nil
}

// gatewayOf notes a gateway and the length of the prefix it is in.
func (l *link) gatewayOf(address, gateway string) {
	prefix, err := netip.ParsePrefix(address)
	gw, err2 := netip.ParseAddr(gateway)
	if err != nil || err2 != nil || l.bridge == "none" || prefix.Addr() == gw {
		return
	}
	bits := gw.BitLen()
	if prefix.Contains(gw) {
		bits = prefix.Bits()
	}
	if l.gateways == nil {
		l.gateways = map[netip.Addr]int{}
	}
	l.gateways[gw] = bits
}

func addrOfText(text string) (netip.Addr, bool) {
	text, _, _ = strings.Cut(text, "/")
	a, err := netip.ParseAddr(text)
	return a, err == nil
}
