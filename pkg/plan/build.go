package plan

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/prevresult"
)

// Input is everything a plan depends on.
type Input struct {
	Config *config.Config
	// IPs are prevResult's addresses for this interface, Routes all its routes.
	IPs    []prevresult.IP
	Routes []prevresult.Route
	State  *netstate.State
}

// Build computes the plan. Its errors come before any change and carry the code
// Link where the interface is not as prevResult says, and Config where the
// configuration cannot be carried out on it.
func Build(in Input) (*Plan, error) {
	state := *in.State // settle changes it
	in.State = &state
	b := &builder{Input: in, plan: &Plan{IfName: in.State.Rail.Name, IfIndex: in.State.Rail.Index}}
	b.plan.Warnings = append(b.plan.Warnings, in.Config.Notes...)
	for _, step := range []func() error{
		b.checkLink,
		b.settle,
		b.addresses,
		b.groupByGateway,
		b.numberTables,
		b.wantedSupernets,
		b.settings,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for _, g := range b.groups {
		b.privateTable(g)
		b.rules(g)
		b.lookups(g)
	}
	b.mainTable()
	b.warnAboutDefaults()
	return b.plan, nil
}

// builder carries the intermediate results of Build.
type builder struct {
	Input
	plan      *Plan
	addrs     []*address
	groups    []*group
	supernets []supernet
	// perGroup[g] are the supernets that group g installs, with their next hops.
	perGroup map[*group][]hop
}

// address is a rail address with what was found out about it.
type address struct {
	ip prevresult.IP
	// connected is the prefix on the link because of it.
	connected netip.Prefix
	// gw is its next hop; the zero Addr where none is known.
	gw netip.Addr
}

func (a *address) addr() netip.Addr      { return a.ip.Address.Addr() }
func (a *address) family() policy.Family { return policy.FamilyOf(a.addr()) }

// group is the addresses of one family that share a next hop, and so a table.
type group struct {
	family policy.Family
	gw     netip.Addr
	addrs  []*address
	table  uint32
}

// hop is a destination and the next hop towards it.
type hop struct {
	dst netip.Prefix
	gw  netip.Addr
}

func (b *builder) checkLink() error {
	l := &b.State.Rail
	if l.Loopback {
		return cnierr.New(cnierr.Link, "%s is a loopback interface, not a rail", l.Name)
	}
	if !l.Up {
		return cnierr.New(cnierr.Link, "%s is down in %s: the plugin that made it has to set it up before railtune runs",
			l.Name, b.State.NetNS)
	}
	return nil
}

// addresses keeps the addresses that get rules, after comparing each with the link:
// a plugin's word for an address is not the address (RoCE has no GID without it).
func (b *builder) addresses() error {
	l := &b.State.Rail
	for _, ip := range b.IPs {
		a := ip.Address.Addr()
		if a.Is6() {
			if err := b.ipv6Usable(a); err != nil {
				return err
			}
		}
		have, ok := l.Find(a)
		if !ok {
			return cnierr.New(cnierr.Link, "%s is not on %s in %s, although prevResult says so: "+
				"the interface plugin did not configure it, or a later plugin removed it", a, l.Name, b.State.NetNS)
		}
		if have.DADFailed {
			return cnierr.New(cnierr.Neighbour, "%s on %s failed duplicate address detection: "+
				"another station on the link has it; give the rail another address", a, l.Name)
		}
		if other, ok := b.State.Owner(a); ok {
			return cnierr.New(cnierr.Link, "%s is on %s and on %s: one address can only be on one rail; "+
				"give one of them another address", a, l.Name, other.Name)
		}
		// A router advertisement's address lives and expires with the kernel's own
		// routes in main, and a link-local one never leaves its link.
		if have.FromRA || a.IsLinkLocalUnicast() {
			continue
		}
		if have.Prefix.Bits() != ip.Address.Bits() && !have.Peer.IsValid() {
			b.plan.warn("prevResult says %s, but %s has %s: the interface's prefix is used", ip.Address, l.Name, have.Prefix)
		}
		b.addrs = append(b.addrs, &address{ip: ip, connected: have.Connected()})
		b.plan.Addresses = append(b.plan.Addresses, have.Prefix)
	}
	return nil
}

func (b *builder) ipv6Usable(a netip.Addr) error {
	name := b.State.Rail.Name
	switch {
	case !b.State.IPv6Kernel:
		return cnierr.New(cnierr.Kernel, "%s cannot be used on %s: this kernel has no IPv6", a, name)
	case !b.State.IPv6:
		return cnierr.New(cnierr.Link, "%s cannot be used on %s: the kernel keeps no IPv6 state for it; "+
			"its MTU is %d, IPv6 needs at least 1280", a, name, b.State.Rail.MTU)
	case b.State.IPv6Disabled:
		return cnierr.New(cnierr.Link, "IPv6 disabled on %s, but prevResult gives it %s: "+
			"set net.ipv6.conf.%s.disable_ipv6=0 before the address is added, or leave IPv6 out of the IPAM", name, a, name)
	}
	return nil
}

// groupByGateway puts addresses of one family and next hop together, in the order
// of their first address, so that the same input always numbers them alike.
func (b *builder) groupByGateway() error {
	for _, a := range b.addrs {
		gw, err := b.gatewayFor(a)
		if err != nil {
			return err
		}
		a.gw = gw
		g := b.groupOf(a.family(), gw)
		if g == nil {
			g = &group{family: a.family(), gw: gw}
			b.groups = append(b.groups, g)
		}
		g.addrs = append(g.addrs, a)
	}
	return nil
}

func (b *builder) groupOf(f policy.Family, gw netip.Addr) *group {
	for _, g := range b.groups {
		if g.family == f && g.gw == gw {
			return g
		}
	}
	return nil
}

// numberTables derives the table of each group. The families number separately:
// their tables are distinct in the kernel even where the number is the same.
func (b *builder) numberTables() error {
	base := uint64(b.Config.Table)
	if base == 0 {
		if b.plan.IfIndex >= GroupStep {
			return cnierr.New(cnierr.Config, "%s has interface index %d, too high to derive a table from: set \"table\"",
				b.plan.IfName, b.plan.IfIndex)
		}
		base = TableBase + uint64(b.plan.IfIndex)
	}
	count := map[policy.Family]uint64{}
	seen := map[uint32]bool{}
	for _, g := range b.groups {
		table := base + count[g.family]*GroupStep
		if table > maxTable {
			return cnierr.New(cnierr.Config, "%s has addresses with more than %d different gateways: "+
				"the kernel's table numbers do not reach that far", b.plan.IfName, count[g.family])
		}
		count[g.family]++
		g.table = uint32(table)
		if !seen[g.table] {
			seen[g.table] = true
			b.plan.Tables = append(b.plan.Tables, g.table)
		}
	}
	return nil
}

// maxTable is the largest table number: fib_rule tables are 32 bits wide, and
// 2^32-1 is left alone as many tools use it for "none".
const maxTable = 1<<32 - 2

// IndexOf returns the interface index a derived table belongs to. ok is false for a
// number that no interface derives.
func IndexOf(table uint32) (index int, ok bool) {
	if table < TableBase {
		return 0, false
	}
	index = int((table - TableBase) % GroupStep)
	return index, index > 0
}
