package paths

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
)

// Run tries the paths from the calling thread's namespace; the thread must be locked.
// An error means that it could not be looked at.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := check(o.Peers); err != nil {
		return nil, err
	}
	k, links, err := open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	rails, err := namedRails(links, o.Peers)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, ctx: ctx, rails: rails, names: map[int]string{}}
	for _, l := range links {
		r.names[l.Index] = l.Name
	}
	if err := r.pair(); err != nil {
		return nil, err
	}
	r.lookUp(k)
	if r.sockets, err = openSockets(); err != nil {
		return nil, err
	}
	defer r.sockets.close()
	start := time.Now()
	if err := r.echoAll(start.Add(o.Timeout / 2)); err != nil {
		return nil, err
	}
	if r.neighbours, err = readNeighbours(); err != nil {
		return nil, err
	}
	if err := r.follow(start.Add(o.Timeout)); err != nil {
		return nil, err
	}
	// Once more: an entry that was good a while ago is used for seconds before the kernel
	// asks again (delay_first_probe_time).
	if r.neighbours, err = readNeighbours(); err != nil {
		return nil, err
	}
	return r.report(), ctx.Err()
}

// run is one run's state.
type run struct {
	Options
	ctx        context.Context // of one call; here as every wait ends with it
	rails      []Rail
	names      map[int]string // of all interfaces, by index
	pairs      []*pair
	sockets    *sockets
	sent       []*echo   // by sequence number
	open       int       // requests of paths that wait for something
	first      []*echo   // with a hop limit of one, a few from each rail
	far        []*asking // addresses asked to tell causes apart
	neighbours []neighbour
}

// pair is a path while it is tried.
type pair struct {
	rail int
	peer Peer
	ways [2]way // device, source
	hops []netip.Addr
	// reached says that following it came to the peer, last what a router said instead.
	reached bool
	last    *echo
}

// way is one of the two ways to send.
type way struct {
	line
	usable bool // the rail is up and has an address of the family
	echoes []*echo
	hop    kernel.Hop // where the kernel would send it
	hopErr error
}

// echo is one request.
type echo struct {
	line     line
	to       netip.Addr
	hopLimit int
	aside    bool // the paths' outcome does not wait for it
	sentAt   time.Time
	sendErr  error
	back     bool // a reply came in on the rail
	from     netip.Addr
	other    int // the interface of a reply that came in elsewhere
	class    class
	errFrom  netip.Addr
}

// over tells whether nothing more is to be waited for.
func (e *echo) over() bool {
	return e.back || e.other != 0 || e.class != noError || e.sendErr != nil
}

const (
	device = iota
	source
)

// pair makes the list of paths.
func (r *run) pair() error {
	for i, rail := range r.rails {
		for _, p := range r.Peers {
			if r.SameRail && p.Rail != rail.Name {
				continue
			}
			for _, own := range rail.Addrs {
				if own.Addr() == p.Addr {
					return fmt.Errorf("%s is this pod's own %s: the map is of this pod; call it with a peer's", p.Addr, rail.Name)
				}
			}
			one := &pair{rail: i, peer: p}
			from, ok := rail.source(p.Addr)
			for w := range one.ways {
				one.ways[w].line = line{rail: i, source: from, is4: p.Addr.Is4(), device: w == device}
				one.ways[w].usable = ok && rail.up
				if w == device {
					one.ways[w].source = netip.Addr{} // one socket for all that is bound to a device
				}
			}
			r.pairs = append(r.pairs, one)
		}
	}
	// A quarter of the numbers is left for following paths.
	if n := len(r.pairs) * len(pair{}.ways) * r.Count; n > math.MaxUint16*3/4 {
		return fmt.Errorf("%d rails and %d addresses of peers need %d requests, too many to tell apart; give fewer peers at a time", len(r.rails), len(r.Peers), n)
	}
	if len(r.pairs) == 0 {
		return errors.New("there is no path to try: give peers")
	}
	return nil
}

// lookUp asks the kernel where the packets of each path would leave.
func (r *run) lookUp(k *kernel.Netlink) {
	for _, p := range r.pairs {
		for w := range p.ways {
			way := &p.ways[w]
			if !way.usable {
				continue
			}
			index := 0
			if way.device {
				index = r.rails[p.rail].index
			}
			way.hop, way.hopErr = k.Lookup(p.peer.Addr, way.source, index)
		}
	}
}

// send sends an echo under a number of its own. What the kernel refuses is kept with
// it; a full buffer is not the path's fault, and is tried again. The error is one of
// the run.
func (r *run) send(e *echo) error {
	if len(r.sent) > math.MaxUint16 {
		return errors.New("no more numbers for requests")
	}
	e.sentAt = time.Now()
	seq := uint16(len(r.sent))
	r.sent = append(r.sent, e)
	if !e.aside {
		r.open++
	}
	for {
		err := r.sockets.send(e.line, r.rails[e.line.rail].Name, e.to, seq, e.hopLimit)
		if err != unix.EAGAIN && err != unix.ENOBUFS && err != unix.EINTR {
			e.sendErr = err
			if err != nil && !e.aside {
				r.open--
			}
			return r.ctx.Err()
		}
		if err == unix.ENOBUFS && time.Since(e.sentAt) > r.Timeout/2 {
			return fmt.Errorf("nothing can be sent: %w: the machine's neighbour table is full (net.ipv4.neigh.default.gc_thresh3)", err)
		}
		if err := errors.Join(r.hear(time.Now().Add(time.Millisecond), nil), r.ctx.Err()); err != nil {
			return err
		}
	}
}

// hear takes what comes in until a time, or until enough says so.
func (r *run) hear(until time.Time, enough func() bool) error {
	return r.sockets.wait(until, func(h heard) bool {
		if int(h.seq) < len(r.sent) {
			e := r.sent[h.seq]
			waited := !e.aside && !e.over()
			if e.take(h, r.rails[e.line.rail].index); waited && e.over() {
				r.open--
			}
		}
		return enough != nil && enough()
	})
}

// take notes what came in about a request.
func (e *echo) take(h heard, rail int) {
	switch {
	case !h.reply && h.to != e.to:
	case !h.reply:
		if e.class == noError {
			e.class, e.errFrom = h.class, h.from
		}
	case h.ifindex == rail:
		e.back, e.from = true, h.from
	default:
		e.other, e.from = h.ifindex, h.from
	}
}
