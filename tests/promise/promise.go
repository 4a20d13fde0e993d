// Package promise asserts, through the ip command, what railtune promises about a
// rail: the state a user could look at, whoever attached it.
package promise

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/railtune/railtune/pkg/testbed"
)

// Rail is an interface of a pod and one of its addresses.
type Rail struct {
	Name string
	Addr netip.Prefix
}

// Kept is nil when a rail has its two settings and packets from its address leave
// by it, to each destination, and by railtune's table unless anyTable: where the
// rule of another plugin is known to come first.
func Kept(ctx context.Context, n *testbed.Namespace, r Rail, anyTable bool, to ...string) error {
	var errs []error
	for key, want := range map[string]string{"arp_ignore": "1", "arp_announce": "2"} {
		if got, err := n.Sysctl("ipv4/conf/" + r.Name + "/" + key); err != nil || got != want {
			errs = append(errs, fmt.Errorf("%s of %s is %q, want %s (%v)", key, r.Name, got, want, err))
		}
	}
	way := " dev " + r.Name + " "
	if !anyTable {
		way += "table 72"
	}
	for _, dst := range to {
		out, err := n.Run(ctx, "ip", "route", "get", dst, "from", r.Addr.Addr().String())
		if out = strings.Join(strings.Fields(out), " "); err != nil || !strings.Contains(out, way) {
			errs = append(errs, fmt.Errorf("to %s from %s: %q (%v), want%s", dst, r.Addr.Addr(), out, err, way))
		}
	}
	return errors.Join(errs...)
}

// Near is an address in the rail's subnet that no test gives anybody.
func (r Rail) Near() string {
	addr := r.Addr.Masked().Addr()
	for range 3 {
		addr = addr.Next()
	}
	return addr.String()
}

// Gone is nil when no rule and no route of railtune's is in the namespace.
func Gone(ctx context.Context, n *testbed.Namespace) error {
	var errs []error
	for _, family := range []string{"-4", "-6"} {
		for _, list := range []string{"rule show", "-d route show table all"} {
			out, err := n.Run(ctx, "ip", append([]string{family}, strings.Fields(list)...)...)
			if err != nil {
				return err
			}
			for line := range strings.Lines(out) {
				if strings.Contains(line, "proto 72") {
					errs = append(errs, fmt.Errorf("left: ip %s: %s", family, strings.TrimSpace(line)))
				}
			}
		}
	}
	return errors.Join(errs...)
}
