package neigh

import (
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/policy"
)

// Each message is one line: what was found, what it means for RDMA, what to do.

func busyReason(link string) string {
	return fmt.Sprintf("the kernel took no question for it (ENOBUFS): the transmit queue of %s "+
		"or the neighbour table is full; this says nothing about the neighbour", link)
}

func saySkipped(q *question) string {
	return fmt.Sprintf("%s was not asked about: %s", q.addr, q.skip)
}

func saySilent(q *question) string {
	return fmt.Sprintf("nobody can answer for %s: %s", q.addr, q.silent)
}

func (p *proof) sayNotReached(q *question) string {
	return fmt.Sprintf("%s was not asked about: the timeout of %s came before its turn; raise it or declare fewer peers",
		q.addr, p.req.Timeout)
}

func (p *proof) sayUnanswered(q *question) string {
	text := fmt.Sprintf("nobody answered for %s on %s within %s (%d asked): ", q.addr, p.req.Rail.Link.Name, p.req.Timeout, q.sent)
	family := policy.FamilyOf(q.addr)
	if limit := p.full[family]; limit > 0 {
		return text + fmt.Sprintf("neighbour table full (limit %d, all namespaces of this host together): a station on this "+
			"host could not answer and RDMA cannot resolve it; raise net.%s.neigh.default.gc_thresh3 on the host",
			limit, strings.ToLower(family.String()))
	}
	return text + "its station may not be up yet, or is not on this link"
}

// sayOurs is about an own or sibling address nobody else answers for.
func (p *proof) sayOurs(q *question) string {
	text := fmt.Sprintf("nobody else on %s answers for %s", p.wire(), q.addr)
	if q.calm != "" {
		text = fmt.Sprintf("%s: %s", q.addr, q.calm)
	}
	for _, a := range q.answers(p.owners) {
		if a.Stopped {
			return text + fmt.Sprintf("; %s did at first and stopped", p.who(a.Owner, mac(a.MAC)))
		}
	}
	return text
}

// wire names the link that phase 1 was asked on.
func (p *proof) wire() string {
	if p.throughParent {
		return fmt.Sprintf("%s, the parent of %s,", p.req.Parent.Link.Name, p.req.Rail.Link.Name)
	}
	return p.req.Rail.Link.Name
}

func (p *proof) sayDADFailed(q *question) string {
	return fmt.Sprintf("another station has %s: the kernel's duplicate address detection on %s failed; "+
		"the address is not usable; find who else was given it and free it", q.addr, p.req.Rail.Link.Name)
}

func (p *proof) sayDuplicate(q *question, m mac) string {
	return fmt.Sprintf("%s of %s is also answered by %s, a station outside this namespace: two stations with one "+
		"address take each other's RDMA connections down; find who has that MAC and was given the address too "+
		"and free it, or list the MAC in anycastMACs if it is a switch that answers for everybody", q.addr, q.owner.Name, hardware(m))
}

func (p *proof) saySiblingAnswers(q *question, m mac) string {
	link := p.owners.name(m)
	return fmt.Sprintf("%s of %s is answered by %s (%s) of the same pod: %s; peers that learn this MAC send to the "+
		"wrong rail and RDMA connections hang; %s", q.addr, q.owner.Name, link, hardware(m), p.why(m), p.remedy(m))
}

// why says what lets a sibling answer for an address it does not own.
func (p *proof) why(m mac) string {
	switch v := p.owners.ignore(m); v {
	case "":
		return "it answers ARP for addresses of other links"
	case "0":
		return "its arp_ignore is 0"
	default:
		return fmt.Sprintf("its arp_ignore is %s, so it has the address too or answers as a proxy", v)
	}
}

func (p *proof) remedy(m mac) string {
	link := p.owners.name(m)
	if v := p.owners.ignore(m); v != "" && v != "0" {
		return fmt.Sprintf("take the address off %s and set its proxy_arp to 0", link)
	}
	return fmt.Sprintf("set arp_ignore=1 and arp_announce=2 on %s, or chain railtune there too", link)
}

func (p *proof) sayAnswered(q *question) string {
	var parts []string
	for _, m := range q.macs() {
		parts = append(parts, hardware(m).String())
	}
	text := fmt.Sprintf("%s is answered by %s only", q.addr, strings.Join(parts, ", "))
	for _, a := range q.answers(p.owners) {
		if a.Stopped {
			return text + "; others answered at first and stopped"
		}
	}
	return text
}

func (p *proof) sayFlux(q *question) string {
	macs := q.macs()
	var list []string
	ours := ""
	for _, m := range macs {
		list = append(list, hardware(m).String())
		if ours == "" && p.owners.inside(m) {
			ours = fmt.Sprintf("; %s is %s of the same pod: %s", hardware(m), p.owners.name(m), p.why(m))
		}
	}
	text := fmt.Sprintf("%s is answered by %d MACs (%s)%s; RDMA connections to it would reach the wrong rail and hang",
		q.addr, len(macs), strings.Join(list, ", "), ours)
	if q.role == Gateway {
		return text + "; give the gateway one MAC, or list a virtual router's MACs in anycastMACs"
	}
	return text + "; set arp_ignore=1 and arp_announce=2 on the peer's rails"
}

func (p *proof) sayWrongRail(q *question, m mac) string {
	return fmt.Sprintf("%s is answered by %s (%s) of this very pod, which is not its owner: %s; RDMA connections to it "+
		"would never leave the host; %s", q.addr, p.owners.name(m), hardware(m), p.why(m), p.remedy(m))
}

func (p *proof) saySharedWithUs(q *question) string {
	return fmt.Sprintf("%s answers with %s, the MAC of %s itself: the switch sees one station on two ports and RDMA "+
		"retries run out; give each NIC a MAC of its own", q.addr, hardware(p.owners.self), p.req.Rail.Link.Name)
}

func (p *proof) sayShared(q *question, owners []*question) string {
	var others []string
	for _, o := range owners {
		if o.addr != q.addr {
			others = append(others, o.addr.String())
		}
	}
	return fmt.Sprintf("%s and %s are answered by one MAC, %s, though declared as different NICs: RDMA connections to "+
		"one of them reach the wrong rail; check the peers' arp_ignore and MACs, or list a proxy's MAC in anycastMACs",
		q.addr, enumerate(others), hardware(q.macs()[0]))
}

func (p *proof) sayProxied(q *question) string {
	return fmt.Sprintf("the gateway answers for %s (%s): the peer is reached through the switch's proxy ARP, "+
		"not on this link", q.addr, hardware(q.macs()[0]))
}

func (p *proof) sayProxiedToo(q *question, m mac) string {
	return fmt.Sprintf("%s is answered by itself (%s) and by the gateway's proxy ARP: either MAC may be used; "+
		"turn proxy ARP off where the peers are on the link", q.addr, hardware(m))
}

func (p *proof) who(link string, m mac) string {
	if link == "" {
		return hardware(m).String()
	}
	return fmt.Sprintf("%s (%s)", link, hardware(m))
}

// enumerate keeps a message readable where a proxy answers for a whole subnet.
func enumerate(list []string) string {
	const most = 4
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// String is one line about the result, for logs.
func (r Result) String() string {
	return fmt.Sprintf("%s %s: %s: %s", r.Role, r.Addr, r.Verdict, r.Message)
}
