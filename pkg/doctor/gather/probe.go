package gather

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/sysctl"
)

// atOnce is how many rails ask at the same time: enough that sixteen with a silent
// gateway each take two seconds and not eight, few enough that answers are not lost.
const atOnce = 4

// ask asks on the wire, for each rail, what ADD asks.
func (l *look) ask(ctx context.Context) error {
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	errs := make([]error, len(l.Rails))
	for i := range l.Rails {
		request := l.request(&l.Rails[i])
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = l.opt.Enter(func() error {
				return withoutAdmin(func() error { return prove(ctx, request, &l.Rails[i]) })
			})
		})
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			l.note("neighbour proof on %s: %v", l.Rails[i].Name, err)
		}
	}
	return nil
}

func prove(ctx context.Context, request neigh.Request, r *facts.Rail) error {
	report, err := neigh.Prove(ctx, request)
	if err != nil {
		return err
	}
	for _, res := range report.Results {
		q := facts.Question{Address: res.Addr, Role: res.Role, Verdict: res.Verdict, Message: res.Message, MACs: []string{}}
		for _, a := range res.Answers {
			if !a.Stopped {
				q.MACs = append(q.MACs, a.MAC.String())
			}
		}
		r.Proof = append(r.Proof, q)
	}
	return nil
}

func (l *look) request(r *facts.Rail) neigh.Request {
	req := neigh.Request{Rail: neighRail(&r.Link), EffectiveARPIgnore: l.arpIgnore}
	for i := range l.links {
		if k := &l.links[i]; k.Index != r.Index && !k.Loopback && k.Up && len(k.Addrs) > 0 {
			req.Siblings = append(req.Siblings, neighRail(k))
		}
	}
	for _, g := range r.Gateways {
		if l.Owner(g.Address) == "" {
			req.Gateways = append(req.Gateways, g.Address)
		}
	}
	for _, p := range l.Peers {
		if slices.ContainsFunc(r.Addresses, func(a facts.Address) bool { return a.OnLink.Contains(p) }) {
			req.Peers = append(req.Peers, p)
		}
	}
	if l.opt.Parent != nil {
		req.Parent = l.opt.Parent(&r.Link)
	}
	return req
}

func neighRail(link *netstate.Link) neigh.Rail {
	out := neigh.Rail{Link: attach.NeighLink(link), Addrs: []netip.Prefix{}}
	for _, a := range link.Addrs {
		out.Addrs = append(out.Addrs, a.Prefix)
	}
	return out
}

// arpIgnore is for messages about siblings that answer.
func (l *look) arpIgnore(ifindex int) string {
	v, err := sysctl.Effective(l.opt.Files, sysctl.ARPIgnore, l.nameOf(ifindex))
	if err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	return v.Effective
}
