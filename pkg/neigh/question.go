package neigh

import (
	"bytes"
	"net/netip"
	"slices"
	"time"
)

// question is one address to ask about, and what was heard about it. Heard is
// evidence of the current round only; what earlier rounds heard and this one
// did not is kept apart, so that a verdict rests on the last round.
type question struct {
	addr netip.Addr
	role Role
	// owner is the link an own or sibling address belongs to.
	owner Link
	// ask sends the question once; nil if there is none to send.
	ask func() error
	// insist makes every question of a round be sent, answered or not.
	insist bool
	// skip says why the address is not asked about; cause is the error behind it.
	skip  string
	cause error
	// silent says why nobody can answer, without asking.
	silent string
	// failed: the kernel's duplicate address detection found another station.
	failed bool
	// sender is the own address a gateway or peer is asked from.
	sender netip.Addr
	// calm explains an ok verdict where that needs explaining.
	calm string

	first time.Time // of all questions sent
	sent  int
	heard map[mac]time.Duration
	past  map[mac]time.Duration

	round int       // questions sent in this round
	due   time.Time // of the next question; zero for none
	busy  int       // consecutive refusals by a full queue
}

// begin starts a round: the question is due now and nothing is heard yet.
func (q *question) begin(now time.Time) {
	for m, after := range q.heard {
		if q.past == nil {
			q.past = map[mac]time.Duration{}
		}
		if _, known := q.past[m]; !known {
			q.past[m] = after
		}
	}
	q.heard, q.round, q.busy, q.due = nil, 0, 0, time.Time{}
	if q.askable() {
		q.due = now
	}
}

func (q *question) askable() bool { return q.ask != nil && q.skip == "" && q.silent == "" }

// hear takes an answer and says whether its MAC is new in this round.
func (q *question) hear(m mac, now time.Time) bool {
	if _, known := q.heard[m]; known {
		return false
	}
	if q.heard == nil {
		q.heard = map[mac]time.Duration{}
	}
	after, known := q.past[m]
	if !known && !q.first.IsZero() {
		after = now.Sub(q.first)
	}
	q.heard[m] = after
	return true
}

// settled says that the round needs nothing more from this question.
func (q *question) settled() bool { return len(q.heard) > 0 || !q.askable() }

// believePast takes back what an earlier round heard: the round that was to
// confirm it heard nothing at all, which proves nothing.
func (q *question) believePast() {
	if len(q.heard) == 0 {
		q.heard, q.past = q.past, nil
	}
}

// macs are the MACs heard in the last round, in order.
func (q *question) macs() []mac {
	list := make([]mac, 0, len(q.heard))
	for m := range q.heard {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mac) int { return bytes.Compare(a[:], b[:]) })
	return list
}

// answers are all MACs ever heard, in order.
func (q *question) answers(owners *owners) []Answer {
	var list []Answer
	for m, after := range q.heard {
		list = append(list, Answer{MAC: hardware(m), Owner: owners.name(m), After: after})
	}
	for m, after := range q.past {
		if _, still := q.heard[m]; !still {
			list = append(list, Answer{MAC: hardware(m), Owner: owners.name(m), After: after, Stopped: true})
		}
	}
	slices.SortFunc(list, func(a, b Answer) int { return bytes.Compare(a.MAC, b.MAC) })
	return list
}
