package neigh

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/neigh/nd"
	"github.com/railtune/railtune/pkg/policy"
)

// arpEthernet is ARPHRD_ETHER.
const arpEthernet = 1

// proof is a request turned into questions.
type proof struct {
	req    Request
	kernel *lists
	owners *owners
	// states are the rail's IPv6 addresses as the kernel has them now.
	states map[netip.Addr]nd.State
	seen   map[netip.Addr]*question

	own, siblings, gateways, peers []*question
	table                          overflow
	// full has, for each family with silent neighbours, the limit of the
	// neighbour table if that overflowed while they were asked, else 0.
	full map[policy.Family]uint32
	// throughParent: phase 1 is asked from the parent of an ipvlan rail.
	throughParent bool
}

// plan decides about each address whether and how it is asked about. What it returns
// must be closed.
func plan(req Request) (*proof, error) {
	req.Rail, req.Siblings = normal(req.Rail), normalAll(req.Siblings)
	var k lists
	p := &proof{
		req: req, kernel: &k, owners: newOwners(req, k.links), seen: map[netip.Addr]*question{}, table: overflow{read: k.table},
	}
	if err := p.readStates(); err != nil {
		p.close()
		return nil, err
	}
	for _, a := range req.Rail.Addrs {
		if q := p.question(a.Addr(), Own, req.Rail.Link); q != nil {
			q.insist = true
			p.own = append(p.own, q)
		}
	}
	for _, s := range req.Siblings {
		for _, a := range s.Addrs {
			addr := a.Addr()
			if addr.Is4() && p.inSubnet(addr) {
				if q := p.question(addr, Sibling, s.Link); q != nil {
					p.siblings = append(p.siblings, q)
				}
			}
		}
	}
	for _, a := range req.Gateways {
		if q := p.question(a, Gateway, Link{}); q != nil {
			p.gateways = append(p.gateways, q)
		}
	}
	for _, a := range req.Peers {
		if q := p.peer(a); q != nil {
			p.peers = append(p.peers, q)
		}
	}
	p.prepare()
	return p, nil
}

func (p *proof) close() { p.kernel.close() }

// question makes a question about an address that has none yet. An address that
// is a gateway and a peer is asked about once, as a gateway.
func (p *proof) question(addr netip.Addr, role Role, owner Link) *question {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() || p.seen[addr] != nil {
		return nil
	}
	// A placeholder: connect puts the real one where the question is askable.
	q := &question{addr: addr, role: role, owner: owner, ask: func() error { return nil }}
	p.seen[addr] = q
	return q
}

// peer is question, but an own or sibling address among the peers (the peers
// may be a whole subnet) gets a result of its own that says so.
func (p *proof) peer(addr netip.Addr) *question {
	addr = addr.Unmap().WithZone("")
	for _, s := range append([]Rail{p.req.Rail}, p.req.Siblings...) {
		for _, a := range s.Addrs {
			if a.Addr() == addr {
				return &question{addr: addr, role: Peer, skip: fmt.Sprintf("it is this namespace's own, on %s", s.Link.Name)}
			}
		}
	}
	return p.question(addr, Peer, Link{})
}

// all lists the questions in the order of the report.
func (p *proof) all() []*question {
	return append(p.selves(), p.neighbours()...)
}

// selves are the questions of phase 1.
func (p *proof) selves() []*question { return append(slices.Clone(p.own), p.siblings...) }

// neighbours are the questions of phase 2.
func (p *proof) neighbours() []*question { return append(slices.Clone(p.gateways), p.peers...) }

// inSubnet says whether the rail has an address in the same subnet.
func (p *proof) inSubnet(addr netip.Addr) bool {
	for _, a := range p.req.Rail.Addrs {
		if a.Contains(addr) {
			return true
		}
	}
	return false
}

func (p *proof) ownIPv4() (list []netip.Addr) {
	for _, a := range p.req.Rail.Addrs {
		if addr := a.Addr(); addr.Is4() {
			list = append(list, addr)
		}
	}
	return list
}

func (p *proof) asksIPv6() bool {
	for _, q := range p.all() {
		if q.addr.Is6() && q.askable() {
			return true
		}
	}
	return false
}

// readStates reads the kernel's IPv6 addresses where IPv6 is asked about: own
// addresses for their state, and the link-local one as a possible source.
func (p *proof) readStates() (err error) {
	wanted := false
	for _, a := range p.req.Rail.Addrs {
		wanted = wanted || a.Addr().Is6()
	}
	for _, a := range append(slices.Clone(p.req.Gateways), p.req.Peers...) {
		wanted = wanted || a.Unmap().Is6()
	}
	if wanted {
		p.states, err = p.kernel.states(p.req.Rail.Link.Index)
	}
	return err
}

// skipSelf gives all of phase 1 a reason for not being asked.
func (p *proof) skipSelf(reason string) {
	p.throughParent = false
	for _, q := range p.selves() {
		if q.addr.Is4() && q.skip == "" {
			q.skip = reason
		}
	}
}

// skipNeighbours leaves phase 2 out: its questions carry an own address as the
// sender, and would overwrite the rightful owner's entry at all who hear them.
func (p *proof) skipNeighbours(contested netip.Addr) {
	for _, q := range p.neighbours() {
		if q.askable() {
			q.skip = fmt.Sprintf("somebody else answers for %s, from which it would be asked", contested)
		}
	}
}

// normal takes IPv4 addresses out of their 16-byte form, in which the results
// of CNI plugins carry them at times. Their prefix length may count either.
func normal(r Rail) Rail {
	addrs := make([]netip.Prefix, 0, len(r.Addrs))
	for _, a := range r.Addrs {
		if addr := a.Addr(); addr.Is4In6() {
			bits := a.Bits()
			if bits > 32 {
				bits -= 96
			}
			a = netip.PrefixFrom(addr.Unmap(), bits)
		}
		addrs = append(addrs, a)
	}
	r.Addrs = addrs
	return r
}

func normalAll(rails []Rail) []Rail {
	list := make([]Rail, 0, len(rails))
	for _, r := range rails {
		list = append(list, normal(r))
	}
	return list
}
