package neigh

import "slices"

// intruders are the MACs that answered for an own or sibling address and should
// not have. This rail's own MAC is none: a bridge port in hairpin mode may send
// our frames back, and ipvlan children share it. Nor is one that was declared to
// answer for several addresses.
func (p *proof) intruders(q *question) []mac {
	rightful := q.owner.ethernet()
	return slices.DeleteFunc(q.macs(), func(m mac) bool {
		return m == p.owners.self || m == rightful || p.anycast(m) || (p.throughParent && m == p.req.Parent.Link.ethernet())
	})
}

// contested are the questions about own and sibling addresses that somebody
// else answered in the last round.
func (p *proof) contested(questions []*question) (list []*question) {
	for _, q := range questions {
		if len(p.intruders(q)) > 0 {
			list = append(list, q)
		}
	}
	return list
}

// outside says whether a station that is no link of this namespace contests one
// of the addresses.
func (p *proof) outside(contested []*question) bool {
	unknown := func() bool {
		return slices.ContainsFunc(contested, func(q *question) bool {
			return slices.ContainsFunc(p.intruders(q), func(m mac) bool { return !p.owners.inside(m) })
		})
	}
	if !unknown() {
		return false
	}
	p.owners.refresh()
	return unknown()
}

// inside says whether another link of this namespace contests one of the
// addresses.
func (p *proof) inside(contested []*question) bool {
	return slices.ContainsFunc(contested, func(q *question) bool {
		return slices.ContainsFunc(p.intruders(q), p.owners.inside)
	})
}

// doubtful are the gateways and peers whose own answers look wrong.
func (p *proof) doubtful(questions []*question) (list []*question) {
	for _, q := range questions {
		if v, _ := p.alone(q); v != OK && len(q.heard) > 0 {
			list = append(list, q)
		}
	}
	return list
}

// judge turns what was heard into results, in order.
func (p *proof) judge() []Result {
	owners := p.ownersOfPeers()
	var results []Result
	for _, q := range p.all() {
		var verdict Verdict
		var message string
		switch {
		case q.failed:
			verdict, message = Duplicate, p.sayDADFailed(q)
		case (q.role == Own || q.role == Sibling) && len(p.intruders(q)) > 0:
			verdict, message = p.self(q)
		case q.skip != "":
			verdict, message = Skipped, saySkipped(q)
		case q.silent != "":
			verdict, message = Silent, saySilent(q)
		case q.role == Own || q.role == Sibling:
			verdict, message = p.self(q)
		case len(q.heard) == 0 && q.sent == 0:
			verdict, message = Skipped, p.sayNotReached(q)
		case len(q.heard) == 0:
			verdict, message = Silent, p.sayUnanswered(q)
		default:
			if verdict, message = p.alone(q); verdict == OK {
				verdict, message = p.together(q, owners)
			}
		}
		results = append(results, Result{
			Addr: q.addr, Role: q.role, Verdict: verdict, Message: message,
			Answers: q.answers(p.owners), Sent: q.sent, Cause: q.cause,
		})
	}
	return results
}

// self judges an own or sibling address.
func (p *proof) self(q *question) (Verdict, string) {
	intruders := p.intruders(q)
	if len(intruders) == 0 {
		return OK, p.sayOurs(q)
	}
	for _, m := range intruders {
		if !p.owners.inside(m) {
			return Duplicate, p.sayDuplicate(q, m)
		}
	}
	if q.role == Sibling && !slices.Contains(q.macs(), q.owner.ethernet()) {
		return WrongRail, p.saySiblingAnswers(q, intruders[0])
	}
	return Flux, p.saySiblingAnswers(q, intruders[0])
}

// alone judges a gateway or peer by its own answers only.
func (p *proof) alone(q *question) (Verdict, string) {
	macs := q.macs()
	plain := slices.DeleteFunc(slices.Clone(macs), p.anycast)
	if q.role == Peer && len(plain) == 2 {
		// The peer itself and a router that answers for everybody.
		if rest := slices.DeleteFunc(slices.Clone(plain), p.gatewayMAC); len(rest) == 1 && !p.owners.inside(rest[0]) {
			return Proxied, p.sayProxiedToo(q, rest[0])
		}
	}
	switch {
	case len(macs) == 0 || len(plain) == 0:
		return OK, p.sayAnswered(q)
	case len(plain) > 1:
		return Flux, p.sayFlux(q)
	case p.owners.inside(plain[0]):
		return WrongRail, p.sayWrongRail(q, plain[0])
	case plain[0] == p.owners.self && p.req.Rail.Link.Kind != "ipvlan":
		return Shared, p.saySharedWithUs(q)
	default:
		return OK, p.sayAnswered(q)
	}
}

// together judges a gateway or peer that is well by itself among the others.
func (p *proof) together(q *question, owners map[mac][]*question) (Verdict, string) {
	macs := q.macs()
	if q.role != Peer || p.anycast(macs[0]) {
		return OK, p.sayAnswered(q)
	}
	if p.gatewayMAC(macs[0]) {
		return Proxied, p.sayProxied(q)
	}
	if others := owners[macs[0]]; len(others) > 1 {
		if p.req.Rail.Link.Kind == "ipvlan" {
			return OK, p.sayAnswered(q)
		}
		return Shared, p.sayShared(q, others)
	}
	return OK, p.sayAnswered(q)
}

// ownersOfPeers lists for each MAC the peers whose only MAC it is.
func (p *proof) ownersOfPeers() map[mac][]*question {
	owners := map[mac][]*question{}
	for _, q := range p.peers {
		if macs := q.macs(); len(macs) == 1 {
			owners[macs[0]] = append(owners[macs[0]], q)
		}
	}
	return owners
}

func (p *proof) anycast(m mac) bool {
	for _, a := range p.req.Anycast {
		if len(a) == 6 && mac(a) == m {
			return true
		}
	}
	return false
}

// gatewayMAC says whether a gateway answered with this MAC, and this rail's own
// namespace does not have it.
func (p *proof) gatewayMAC(m mac) bool {
	if p.owners.inside(m) || m == p.owners.self {
		return false
	}
	return slices.ContainsFunc(p.gateways, func(q *question) bool {
		_, heard := q.heard[m]
		return heard
	})
}
