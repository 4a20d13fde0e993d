package paths

import (
	"errors"
	"slices"
	"time"
)

const (
	// atOnce bounds the requests that wait for an answer, so that neither the
	// neighbour tables nor anybody's buffers are filled.
	atOnce = 128
	// waiting is how long a request counts as one of them. It is taken into account
	// whenever its answer comes.
	waiting = 50 * time.Millisecond
	// apart is the least time from one round to the next where not all is answered: a
	// wrong neighbour entry is seen by the second request, not by the first.
	apart = 200 * time.Millisecond
)

// echoAll sends Count rounds of requests over all paths, and waits for the answers
// until all are there or the time is over.
func (r *run) echoAll(until time.Time) error {
	if err := r.firstHops(); err != nil {
		return err
	}
	for round := range r.Count {
		began := time.Now()
		for w := range (pair{}).ways {
			for _, p := range r.pairs {
				if err := r.echo(&p.ways[w], p, until); err != nil {
					return err
				}
			}
		}
		next := began.Add(apart)
		if round == r.Count-1 || next.After(until) {
			next = until
		}
		if r.answered() {
			continue
		}
		if err := r.hear(next, r.answered); err != nil {
			return err
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// echo sends one more request over a path, once there is room for it. What has failed
// for certain is not asked again: routers limit their error messages.
func (r *run) echo(w *way, p *pair, until time.Time) error {
	refused := func(e *echo) bool { return e.class != noError || e.sendErr != nil }
	if !w.usable || slices.ContainsFunc(w.echoes, refused) {
		return nil
	}
	for r.inFlight() >= atOnce && time.Now().Before(until) {
		room := func() bool { return r.inFlight() < atOnce }
		if err := errors.Join(r.hear(time.Now().Add(waiting/10), room), r.ctx.Err()); err != nil {
			return err
		}
	}
	e := &echo{line: w.line, to: p.peer.Addr}
	w.echoes = append(w.echoes, e)
	if err := r.send(e); err != nil {
		return err
	}
	return r.hear(time.Now(), nil)
}

// inFlight counts the requests that were sent of late and have no answer.
func (r *run) inFlight() (n int) {
	since := time.Now().Add(-waiting)
	for _, e := range slices.Backward(r.sent) {
		if e.sentAt.Before(since) {
			break
		}
		if !e.over() {
			n++
		}
	}
	return n
}

// answered tells whether no request of a path waits for anything.
func (r *run) answered() bool { return r.open == 0 }
