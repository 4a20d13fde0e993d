package main_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

// TestScenarios runs the real binary on the situations in testdata/scenarios, each a
// script for a namespace of its own. Besides testscript's commands (exec, stdout,
// grep, …) a script has those in commands below; testdata/scenarios/README.md tells
// how to read one. Every add, check and del is held to the invariants in
// invariants_test.go whatever the script asserts.
func TestScenarios(t *testing.T) {
	testbed.NeedRoot(t)
	binary := testbed.MustRailtune(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "../../../testdata/scenarios",
		WorkdirRoot:         t.TempDir(), // removed also where only some of the scripts run
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			b, err := newBed(binary)
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := b.close(); err != nil {
					env.T().Log(err)
				}
			})
			env.Values[bedKey{}] = b
			env.Setenv("POD", b.pod.Name)
			env.Setenv("WIRE", b.wire.Name)
			env.Setenv("RAILTUNE", binary)
			return nil
		},
		Cmds: commands,
	})
}

type bedKey struct{}

// bed is what one script works on: a pod, and the far ends of its rails.
type bed struct {
	binary  string
	pod     *testbed.Namespace
	wire    *testbed.Namespace
	version string
	rails   map[string]*rail
	last    testbed.Outcome
	// baseline is the pod before the first verb.
	baseline *testbed.Snapshot
}

// rail is what a script said of one interface.
type rail struct {
	name   string
	conf   map[string]any
	ips    []map[string]any
	routes []map[string]any
	// prev replaces the prevResult made from the above: raw JSON, "" for none.
	prev *string
	// added are railtune's rules and routes after the last add.
	added []string
	// result is what the last add printed.
	result string
}

func newBed(binary string) (*bed, error) {
	pod, err := testbed.NewNamespace("pod")
	if err != nil {
		return nil, err
	}
	wire, err := testbed.NewNamespace("wire")
	if err != nil {
		return nil, errors.Join(err, pod.Close())
	}
	b := &bed{binary: binary, pod: pod, wire: wire, version: "1.0.0", rails: map[string]*rail{}}
	// A rail's link-local address is there at once; those with "dad" ask for more.
	return b, errors.Join(pod.SetSysctl("ipv6/conf/default/accept_dad", "0"), wire.SetSysctl("ipv6/conf/default/accept_dad", "0"),
		wire.SetSysctl("ipv4/conf/all/arp_ignore", "1"), b.makeEth0())
}

// makeEth0 gives the pod the first interface of field-cases: a /32 and a default
// route through 169.254.1.1, as Calico does.
func (b *bed) makeEth0() error {
	for _, args := range [][]string{
		{"link", "add", "eth0", "type", "veth", "peer", "name", "eth0p", "netns", b.wire.Name},
		{"link", "set", "eth0", "up"},
		{"addr", "add", "172.20.0.5/32", "dev", "eth0"},
		{"route", "add", "169.254.1.1", "dev", "eth0"},
		{"route", "add", "default", "via", "169.254.1.1", "dev", "eth0"},
	} {
		if err := b.ip(b.pod, args...); err != nil {
			return err
		}
	}
	if err := b.ip(b.wire, "link", "add", "br0", "type", "bridge"); err != nil {
		return err
	}
	return errors.Join(b.ip(b.wire, "link", "set", "br0", "up"), b.ip(b.wire, "link", "set", "eth0p", "up"),
		b.pod.SettleAddresses("eth0"))
}

func (b *bed) ip(n *testbed.Namespace, args ...string) error {
	_, err := n.Run(context.Background(), "ip", args...)
	if err != nil {
		return fmt.Errorf("ip %v in %s: %w", args, n.Name, err)
	}
	return nil
}

func (b *bed) close() error { return errors.Join(b.pod.Close(), b.wire.Close()) }

// rail returns what is known of an interface, at first a plain railtune entry.
func (b *bed) rail(name string) *rail {
	r, ok := b.rails[name]
	if !ok {
		r = &rail{name: name, conf: map[string]any{}}
		b.rails[name] = r
	}
	return r
}
