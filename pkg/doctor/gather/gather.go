// Package gather reads a network namespace into facts: links, settings, rules, routes,
// lookups, neighbours, RDMA devices and iptables chains. It changes nothing: while it
// reads, its thread has given up CAP_NET_ADMIN, so the kernel would refuse any change
// over netlink. What cannot be read is said in Namespace.NotLookedAt.
package gather

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/doctor/firewall"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
)

// Options say what to look at.
type Options struct {
	// Path is the namespace's path, for messages.
	Path string
	// Rails are names or patterns (path.Match) of the interfaces to judge; empty: those
	// with an RDMA device and those railtune has rules for.
	Rails []string
	// Peers are addresses of other hosts' rails, each of a NIC of its own.
	Peers []netip.Addr
	// Firewall says whether iptables chains are read.
	Firewall bool
	// Probe asks on the wire. Enter runs a function on a thread of its own in the
	// namespace; Parent finds an ipvlan rail's parent. Both are for Probe only.
	Probe  bool
	Enter  func(func() error) error
	Parent func(*netstate.Link) *neigh.Parent
	// Files reaches the settings; nil for the kernel's own.
	Files sysctl.Files
}

// ErrNoRail says that nothing is recognised as a rail.
var ErrNoRail = errors.New("no rail recognised")

// look is one gathering.
type look struct {
	opt Options
	*facts.Namespace
	kernel *kernel.Netlink
	links  []netstate.Link
	// index finds a rail's place in Rails by interface index.
	index map[int]int
}

// Look reads the calling thread's namespace; the thread must be locked. An error means
// that it could not be looked at. Where no rail is recognised the error is ErrNoRail, and
// what can be said without rails (orphans) is returned all the same.
func Look(ctx context.Context, o Options) (*facts.Namespace, error) {
	if o.Files == nil {
		o.Files = sysctl.Proc{}
	}
	l := &look{opt: o, Namespace: &facts.Namespace{
		Path: o.Path, Peers: o.Peers, Probed: o.Probe, Firewall: o.Firewall,
		Rails: []facts.Rail{}, Others: []string{}, NotLookedAt: []string{}, Chains: []facts.Chain{},
		Defaults: []facts.Setting{},
	}}
	// iptables is another program with rights of its own, and nfnetlink answers nobody
	// without CAP_NET_ADMIN: it comes before that is given up.
	if o.Firewall {
		chains, notes := firewall.Read()
		l.Chains, l.NotLookedAt = append(l.Chains, chains...), append(l.NotLookedAt, notes...)
	} else {
		l.NotLookedAt = append(l.NotLookedAt, "firewall: switched off")
	}
	var noRail error
	err := withoutAdmin(func() (err error) {
		noRail, err = l.read(ctx)
		return err
	})
	if err == nil {
		err = noRail
	}
	return l.Namespace, err
}

func (l *look) read(ctx context.Context) (noRail, err error) {
	if l.kernel, err = kernel.Open(); err != nil {
		return nil, err
	}
	defer l.kernel.Close()
	if l.links, err = l.kernel.Links(); err != nil {
		return nil, err
	}
	l.Links = l.links
	if err := l.rules(); err != nil {
		return nil, err
	}
	noRail = l.recognise()
	for _, step := range []func() error{l.settings, l.routes, l.lookups, l.neighbours} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.neighbourTables()
	if l.opt.Probe && noRail == nil {
		return nil, l.ask(ctx)
	}
	return noRail, nil
}

// note records what was not looked at.
func (l *look) note(format string, args ...any) {
	l.NotLookedAt = append(l.NotLookedAt, fmt.Sprintf(format, args...))
}

// recognise decides which links are rails.
func (l *look) recognise() error {
	l.index = map[int]int{}
	devices := l.rdmaDevices()
	for i := range l.links {
		link := &l.links[i]
		if link.Loopback {
			continue
		}
		because := l.because(link, devices[link.Index])
		if because == "" {
			l.Others = append(l.Others, link.Name)
			continue
		}
		l.index[link.Index] = len(l.Rails)
		l.Rails = append(l.Rails, l.rail(link, because, devices[link.Index]))
	}
	for _, pattern := range l.opt.Rails {
		if !slices.ContainsFunc(l.links, func(k netstate.Link) bool { return matches(pattern, k.Name) }) {
			return fmt.Errorf("%w: no interface is called %q; there are %s", ErrNoRail, pattern, orNone(l.Others))
		}
	}
	if len(l.Rails) == 0 && len(l.opt.Rails) > 0 {
		return fmt.Errorf("%w: a loopback interface is none", ErrNoRail)
	}
	if len(l.Rails) == 0 {
		return fmt.Errorf("%w: no interface has an RDMA device or rules of railtune's; name the rails, for example "+
			"--rail 'net*'; there are %s", ErrNoRail, orNone(l.Others))
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	const shown = 12 // a node has one for each pod
	if more := len(names) - shown; more > 0 {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// because says why a link is a rail; "" if it is none.
func (l *look) because(link *netstate.Link, device *facts.RDMA) string {
	if len(l.opt.Rails) > 0 {
		for _, pattern := range l.opt.Rails {
			if matches(pattern, link.Name) {
				return "--rail " + pattern
			}
		}
		return ""
	}
	if device != nil {
		return "RDMA device " + device.Device
	}
	for _, r := range l.Rules {
		if r.Ours && (r.OIF == link.Name || r.From.IsValid() && link.Has(r.From.Addr())) {
			return "railtune's rules"
		}
	}
	return ""
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == name || err == nil && ok
}

func (l *look) rail(link *netstate.Link, because string, device *facts.RDMA) facts.Rail {
	r := facts.Rail{
		Name: link.Name, Index: link.Index, Because: because, Kind: link.Kind, MAC: link.MAC.String(), MTU: link.MTU,
		Up: link.Up, Carrier: link.Carrier, Driver: driver(link.Name), Parent: l.parentOf(link), RDMA: device, Link: *link,
		Addresses: []facts.Address{}, Settings: []facts.Setting{}, Lookups: []facts.Lookup{}, Gateways: []facts.Gateway{},
	}
	for _, a := range link.Addrs {
		state := "usable"
		switch {
		case a.DADFailed:
			state = "dadfailed"
		case a.Tentative:
			state = "tentative"
		}
		r.Addresses = append(r.Addresses, facts.Address{Address: a.Prefix, OnLink: a.Connected(), State: state, FromRA: a.FromRA})
	}
	return r
}

func (l *look) parentOf(link *netstate.Link) string {
	switch {
	case link.Parent == 0 || link.Kind == "veth":
		return ""
	case link.ParentNSID >= 0:
		return fmt.Sprintf("if%d in namespace %d", link.Parent, link.ParentNSID)
	}
	return l.nameOf(link.Parent)
}

func (l *look) nameOf(index int) string {
	for i := range l.links {
		if l.links[i].Index == index {
			return l.links[i].Name
		}
	}
	return fmt.Sprintf("if%d", index)
}

// families are those the kernel has.
func (l *look) families() []policy.Family {
	if l.opt.Files.Exists("net/ipv6/conf") {
		return []policy.Family{policy.IPv4, policy.IPv6}
	}
	return []policy.Family{policy.IPv4}
}
