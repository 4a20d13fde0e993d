package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
)

// Layout says how the rails of all pods hang together.
type Layout int

const (
	// OneSubnet puts all rails in 10.61.0.0/16 on one link layer: a leaf bridge
	// per node, the leaves joined. Rail k of pod A is 10.61.10.k, of B 10.61.20.k.
	OneSubnet Layout = iota
	// PerRail gives rail k a link layer of its own with 10.61.k.0/24, .11 in pod
	// A and .12 in pod B, and a router ("computenet") with .254 that forwards
	// between them.
	PerRail
)

// Supernet covers all rails of both layouts.
var Supernet = netip.MustParsePrefix("10.61.0.0/16")

// Options of NewFabric. The zero value is two pods of 16 rails in one subnet,
// with nothing attached yet.
type Options struct {
	Layout Layout
	Pods   int // 2 when 0
	Rails  int // per pod; 16 when 0
	// Direct makes each rail a veth end in the pod, with its address, where
	// otherwise the parents wait in the node for Pod.Attach to chain plugins on.
	Direct bool
	// Down leaves the rails of Direct down: the test sets each up when it is to
	// arrive, and then waits with Settle, in Switches too.
	Down bool
	// Gateway gives the joined leaves of OneSubnet the address 10.61.0.1/16.
	Gateway bool
}

// Fabric is the whole bed: pods, their nodes, and the switches between them.
type Fabric struct {
	Options
	Pods []*Pod
	// Switches is the namespace with the bridges; with PerRail it is the router.
	Switches *Namespace
}

// Pod is a namespace with an eth0 as cluster networks make it (a /32 and a
// default route through 169.254.1.1) and, attached or not, its rails.
type Pod struct {
	*Namespace
	// Role is A, B, …
	Role string
	// Node is where the rails' parents are: cnitool runs there.
	Node  *Namespace
	Rails []Rail

	conflists string // the NETCONFPATH of the pod's rails
	strict    bool   // Strict has been called
}

// Rail is one interface of a pod.
type Rail struct {
	Index  int    // 1 … 16
	Name   string // in the pod: net1 … net16
	Parent string // in the node: rail1 … rail16
	Addr   netip.Prefix
	// Gateway is the rail's router, or invalid where there is none.
	Gateway netip.Addr
}

// NewFabric makes a fabric. Close it, or leave that to the end of the process.
func NewFabric(o Options) (*Fabric, error) {
	if o.Pods == 0 {
		o.Pods = 2
	}
	if o.Rails == 0 {
		o.Rails = 16
	}
	f := &Fabric{Options: o}
	if err := f.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("building the fabric: %w", err), f.Close())
	}
	return f, nil
}

func (f *Fabric) build() (err error) {
	role := "fabric"
	if f.Layout == PerRail {
		role = "computenet"
	}
	if f.Switches, err = NewNamespace(role); err != nil {
		return err
	}
	// All leaves of OneSubnet hear every request, and only the one that has the
	// gateway's address may answer: flux is for the pods to show.
	if err := f.Switches.SetSysctl("ipv4/conf/all/arp_ignore", "1"); err != nil {
		return err
	}
	for i := range f.Options.Pods {
		p, err := newPod(i)
		if err != nil {
			return err
		}
		f.Pods = append(f.Pods, p)
		for k := 1; k <= f.Options.Rails; k++ {
			p.Rails = append(p.Rails, f.rail(i, k))
		}
	}
	if err := f.Switches.Do(f.wire); err != nil {
		return err
	}
	for i, p := range f.Pods {
		if err := p.addEth0(i); err != nil {
			return fmt.Errorf("eth0 of pod %s: %w", p.Role, err)
		}
		if f.Direct {
			if err := p.Do(func() error { return p.addressRails(f.Down) }); err != nil {
				return fmt.Errorf("rails of pod %s: %w", p.Role, err)
			}
		}
	}
	if f.Down {
		return nil
	}
	return f.settle()
}

// rail is the plan of rail k of pod i.
func (f *Fabric) rail(i, k int) Rail {
	r := Rail{Index: k, Name: fmt.Sprintf("net%d", k), Parent: fmt.Sprintf("rail%d", k)}
	if f.Layout == PerRail {
		r.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 61, byte(k), byte(11 + i)}), 24)
		r.Gateway = netip.AddrFrom4([4]byte{10, 61, byte(k), 254})
		return r
	}
	r.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 61, byte(10 * (i + 1)), byte(k)}), 16)
	if f.Gateway {
		r.Gateway = netip.AddrFrom4([4]byte{10, 61, 0, 1})
	}
	return r
}

func newPod(i int) (p *Pod, err error) {
	p = &Pod{Role: string(rune('A' + i))}
	if p.Node, err = NewNamespace("node" + p.Role); err != nil {
		return nil, err
	}
	if p.Namespace, err = NewNamespace("pod" + p.Role); err != nil {
		return nil, errors.Join(err, p.Node.Close())
	}
	p.conflists, err = os.MkdirTemp(scratch, "net.d-")
	return p, errors.Join(err, p.Node.skipDAD(), p.skipDAD())
}

// Close removes what NewFabric made. The neighbours go first: all namespaces of the
// machine share one table of about a thousand (gc_thresh3), and the kernel empties
// a namespace in its own time.
func (f *Fabric) Close() error {
	var errs []error
	for _, p := range f.Pods {
		errs = append(errs, p.ForgetNeighbours(context.Background()), p.Namespace.Close(), p.Node.Close(), os.RemoveAll(p.conflists))
	}
	if f.Switches != nil {
		errs = append(errs, f.Switches.Close())
	}
	return errors.Join(errs...)
}

// wire makes the bridges and the cables to every pod's rails; it runs in
// Switches.
func (f *Fabric) wire() error {
	if f.Layout == PerRail {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
			return err
		}
		for k := 1; k <= f.Options.Rails; k++ {
			bridge := fmt.Sprintf("br%d", k)
			if err := addBridge(bridge); err != nil {
				return err
			}
			if err := address(bridge, netip.PrefixFrom(f.Pods[0].Rails[k-1].Gateway, 24)); err != nil {
				return err
			}
		}
	} else if err := f.addLeaves(); err != nil {
		return err
	}
	for _, p := range f.Pods {
		for _, r := range p.Rails {
			bridge := fmt.Sprintf("br%d", r.Index)
			if f.Layout == OneSubnet {
				bridge = "leaf" + p.Role
			}
			end, name := p.Node, r.Parent
			if f.Direct {
				end, name = p.Namespace, r.Name
			}
			if err := addCable(fmt.Sprintf("%s%d", p.Role, r.Index), bridge, name, end); err != nil {
				return fmt.Errorf("cable of pod %s's %s: %w", p.Role, r.Name, err)
			}
			if f.Direct {
				continue // addressRails follows
			}
			if err := end.Do(func() error { return setUp(name) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLeaves makes one bridge per node and joins each to the first.
func (f *Fabric) addLeaves() error {
	for i, p := range f.Pods {
		if err := addBridge("leaf" + p.Role); err != nil {
			return err
		}
		if i == 0 {
			if f.Gateway {
				if err := address("leaf"+p.Role, netip.PrefixFrom(p.Rails[0].Gateway, 16)); err != nil {
					return err
				}
			}
			continue
		}
		trunk := "trunk" + p.Role
		if err := addCable(trunk, "leaf"+f.Pods[0].Role, trunk+"x", f.Switches); err != nil {
			return err
		}
		if err := enslave(trunk+"x", "leaf"+p.Role); err != nil {
			return err
		}
		if err := setUp(trunk + "x"); err != nil {
			return err
		}
	}
	return nil
}
