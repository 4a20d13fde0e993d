package paths

import (
	"fmt"
	"net/netip"
	"slices"
)

// report judges every path.
func (r *run) report() *Report {
	out := &Report{Rails: r.rails}
	for _, p := range r.pairs {
		one := Pair{From: r.rails[p.rail].Name, Peer: p.peer, Via: p.ways[device].hop.GW, Hops: p.hops}
		one.Device, one.Source = r.outcome(&p.ways[device]), r.outcome(&p.ways[source])
		one.Code, one.Why = r.judge(p)
		out.Pairs = append(out.Pairs, one)
	}
	return out
}

// outcome counts what became of a way's requests.
func (r *run) outcome(w *way) (o Outcome) {
	if w.usable && w.hopErr == nil && w.hop.IfIndex != r.rails[w.rail].index {
		o.Leaves = r.names[w.hop.IfIndex]
	}
	for _, e := range w.echoes {
		o.Sent++
		if e.back {
			o.Back++
		}
		if e.other != 0 {
			o.Elsewhere = r.names[e.other]
		}
		if e.sendErr != nil {
			o.Error = e.sendErr.Error()
		}
		if e.class != noError {
			o.From, o.Says = e.errFrom, e.class.String()
		}
	}
	return o
}

func (c class) String() string {
	return [...]string{"", "no route", "host unreachable", "filtered", "time exceeded"}[c]
}

// finding is a code and its sentence.
type finding struct {
	code Code
	why  string
}

// judge says what is the matter with a path. The way bound to the device comes first:
// what is wrong with it is mostly wrong with both.
func (r *run) judge(p *pair) (Code, string) {
	rail := r.rails[p.rail]
	if !rail.up {
		return RailDown, fmt.Sprintf("%s is down or has no carrier", rail.Name)
	}
	if !p.ways[device].usable {
		return NoAddress, fmt.Sprintf("%s has no address of the family of %s", rail.Name, p.peer.Addr)
	}
	for w := range p.ways {
		if !r.outcome(&p.ways[w]).good() {
			f := r.judgeWay(p, &p.ways[w])
			if w == source {
				f.why = "bound to the address only: " + f.why
			}
			return f.code, f.why
		}
	}
	return OK, ""
}

// judgeWay goes from what is known for certain to what is only likely.
func (r *run) judgeWay(p *pair, w *way) finding {
	o := r.outcome(w)
	if f, found := r.inThisPod(p, w, o); found {
		return f
	}
	if f, found := r.said(p, w); found {
		return f
	}
	if o.Back > 0 {
		return finding{Lossy, fmt.Sprintf("%d of %d came back: a wrong neighbour entry that comes and goes (ARP flux), or loss", o.Back, o.Sent)}
	}
	if w.hop.GW.IsValid() {
		return r.behindGateway(p, w)
	}
	if r.unanswered(r.rails[p.rail], p.peer.Addr) {
		return finding{PeerSilent, fmt.Sprintf("%s answers no ARP or ND request on this rail: it is down, elsewhere, or the rail's VLAN is missing on one of the two switch ports", p.peer.Addr)}
	}
	return finding{Silent, fmt.Sprintf("%s is on the link and answers ARP or ND, but nothing comes back: it filters, or its replies take another way", p.peer.Addr)}
}

// inThisPod is what this end does wrong, or sees come in at the wrong place.
func (r *run) inThisPod(p *pair, w *way, o Outcome) (finding, bool) {
	rail, to := r.rails[p.rail], p.peer.Addr
	switch {
	case w.hopErr != nil && rail.onLink(to):
		return finding{NoRoute, "this pod has no route there, although it is on the rail's link: the rail's table has lost it (railtune doctor)"}, true
	case w.hopErr != nil:
		return finding{NoRoute, "this pod has no route there from this rail (supernets are missing in railtune's entry?)"}, true
	case o.Leaves != "":
		return finding{WrongWay, fmt.Sprintf("this pod sends it out of %s: there is no source rule for the rail's address", o.Leaves)}, true
	case !w.hop.GW.IsValid() && !rail.onLink(to) && w.device:
		// ip_route_output_key_hash_rcu, net/ipv4/route.c: a socket bound to a device, and no
		// route, is taken for on-link.
		return finding{NoRoute, "this pod has no route there from this rail, so it looks for the address on the link itself (supernets are missing in railtune's entry?)"}, true
	case o.Error != "":
		return finding{NotSent, "the kernel does not send it: " + o.Error}, true
	case o.Elsewhere != "" && w.hop.GW.IsValid():
		return finding{OtherRail, fmt.Sprintf("replies come in on %s: the peer's way back is another one (no supernet on its rail %s?)", o.Elsewhere, p.peer.Rail)}, true
	case o.Elsewhere != "":
		return finding{OtherRail, fmt.Sprintf("replies come in on %s: the peer has the MAC of that rail for this one's address (ARP flux: arp_ignore=1 and arp_announce=2 here?), or answers from another rail", o.Elsewhere)}, true
	}
	return finding{}, false
}

// said is what routers said about the path, or the kernel about its neighbour.
func (r *run) said(p *pair, w *way) (finding, bool) {
	e := p.last
	for _, one := range w.echoes {
		if one.class != noError {
			e = one
		}
	}
	if e == nil {
		return finding{}, false
	}
	if r.own(e.errFrom) { // the kernel's own, once it has asked for the neighbour in vain
		return r.noNeighbour(p, w), true
	}
	return r.reported(p, e), true
}

// reported is what a router's error means. Host unreachable is for an address that does
// not answer on the last link (RFC 1812, section 5.2.7.1), but routers also say it where
// a route of theirs is one to nowhere: whether the address answers on its own rail tells.
func (r *run) reported(p *pair, e *echo) finding {
	own := r.sibling(p)
	alive := own != nil && r.outcome(&own.ways[device]).good()
	switch {
	case e.class == noHost && alive:
		return finding{SwitchNoRoute, fmt.Sprintf("%s says that %s is unreachable, though it answers on its own rail: the switch has no route there, or not the VLAN of rail %s", e.errFrom, e.to, p.peer.Rail)}
	case e.class == noHost:
		return finding{SwitchNoHost, fmt.Sprintf("%s has a route, and says that %s does not answer there: the peer's rail %s is down, or its VLAN ends before it", e.errFrom, e.to, p.peer.Rail)}
	case e.class == noRoute:
		return finding{SwitchNoRoute, fmt.Sprintf("%s says that it has no route to %s: the switch lacks the route, or the VLAN of rail %s", e.errFrom, e.to, p.peer.Rail)}
	case e.class == filtered:
		return finding{Filtered, fmt.Sprintf("%s says that it may not pass this on to %s (an access list)", e.errFrom, e.to)}
	}
	return finding{Loop, fmt.Sprintf("%s says that the packet has been round too many hops: routers send it in a circle", e.errFrom)}
}

func (r *run) noNeighbour(p *pair, w *way) finding {
	if gw := w.hop.GW; gw.IsValid() {
		return finding{GatewaySilent, fmt.Sprintf("the gateway %s answers no ARP or ND request: it is not there, or the rail's VLAN is missing on the switch port", gw)}
	}
	return finding{PeerSilent, fmt.Sprintf("%s answers no ARP or ND request on this rail: it is down, elsewhere, or the rail's VLAN is missing on one of the two switch ports", p.peer.Addr)}
}

// own tells whether an address is one of this pod's rails.
func (r *run) own(a netip.Addr) bool {
	for _, rail := range r.rails {
		for _, p := range rail.Addrs {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// behindGateway is for a path that ends in silence behind the gateway. From one end a
// switch that drops and a peer that does not answer look the same: what other addresses
// do is what tells them apart.
func (r *run) behindGateway(p *pair, w *way) finding {
	gw := w.hop.GW
	rail := r.rails[p.rail]
	if r.unanswered(rail, gw) {
		return r.noNeighbour(p, w)
	}
	if !r.alive(p.rail, gw) {
		return finding{GatewaySilent, fmt.Sprintf("the gateway %s answers nothing and passes nothing on, to any rail: it is gone (its MAC is remembered from before), or the rail's VLAN is missing on the switch port", gw)}
	}
	if own := r.sibling(p); own != nil && !r.outcome(&own.ways[device]).good() {
		return finding{PeerSilent, fmt.Sprintf("%s does not answer on its own rail %s either: look at that path first", p.peer.Addr, p.peer.Rail)}
	}
	far := r.gatewayOf(p.peer)
	leads := r.asked(p.rail, far).answers()
	// Routers limit how often they say something, so it is taken from other paths: to the
	// same address or, where the switch does not lead there at all, from the same gateway.
	for _, e := range r.sent {
		if e.class != noError && e.class != timeExceeded && !r.own(e.errFrom) &&
			(e.to == p.peer.Addr || e.errFrom == gw && !leads) {
			f := r.reported(p, e)
			f.why = "nothing comes back, and of another path " + f.why
			return f
		}
	}
	end := gw
	for _, hop := range p.hops {
		if hop.IsValid() {
			end = hop
		}
	}
	switch {
	case !far.IsValid() || far == gw:
		return finding{Silent, fmt.Sprintf("nothing comes back from behind %s: the switch drops it, or the peer has no way back to %s", end, rail.Name)}
	case leads && r.replies(p) != nil:
		e := r.replies(p)
		return finding{NoWayBack, fmt.Sprintf("the peer's replies go from rail %s to rail %s, and on that way %s says of %s: %s", p.peer.Rail, rail.Name, e.errFrom, e.to, e.class)}
	case leads:
		return finding{NoWayBack, fmt.Sprintf("the switch leads there (%s of rail %s answers), the peer does not answer: it has no way back to this rail (no supernet on its %s?), or an access list or network policy drops it",
			far, p.peer.Rail, p.peer.Rail)}
	}
	return finding{BlackHole, fmt.Sprintf("nothing comes back from behind %s, not even from rail %s's gateway %s: the switch lacks the VLAN or the route, and drops", end, p.peer.Rail, far)}
}

// alive tells whether a gateway has done anything for a rail: answered, said something, or
// passed on what came back.
func (r *run) alive(rail int, gw netip.Addr) bool {
	if r.asked(rail, gw).answers() {
		return true
	}
	for _, p := range r.pairs {
		for w := range p.ways {
			if p.rail == rail && p.ways[w].hop.GW == gw && r.outcome(&p.ways[w]).Back > 0 {
				return true
			}
		}
	}
	return slices.ContainsFunc(r.sent, func(e *echo) bool { return e.line.rail == rail && e.errFrom == gw })
}

// replies is what a router said about the way that the replies of a path take: from the
// pod's own rail of the peer's name to the peer's rail of this one's.
func (r *run) replies(p *pair) *echo {
	for _, back := range r.pairs {
		if r.rails[back.rail].Name != p.peer.Rail || back.peer.Rail != r.rails[p.rail].Name || back.peer.Pod != p.peer.Pod {
			continue
		}
		for _, e := range append(slices.Concat(back.ways[device].echoes, back.ways[source].echoes), back.last) {
			if e != nil && e.class != noError && !r.own(e.errFrom) {
				return e
			}
		}
	}
	return nil
}

// sibling is the path to the same address from the pod's own rail of that name.
func (r *run) sibling(p *pair) *pair {
	for _, other := range r.pairs {
		if other != p && other.peer == p.peer && r.rails[other.rail].Name == p.peer.Rail {
			return other
		}
	}
	return nil
}
