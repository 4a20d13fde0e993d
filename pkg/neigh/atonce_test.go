package neigh

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
)

// attachAtOnce makes two pods with n untuned rails each and then tunes and
// proves every rail of the first at the same time, as sixteen chains would. The
// second pod is tuned.
func attachAtOnce(t testing.TB, n int, timeout time.Duration) (reports []Report) {
	t.Helper()
	l := newLab(t)
	a, b := l.pod(), l.pod()
	gateway := l.pod()
	gateway.rail("10.61.0.1/16")
	for k := 1; k <= n; k++ {
		a.rail(fmt.Sprintf("10.61.1.%d/16", k))
		b.tune(b.rail(fmt.Sprintf("10.61.2.%d/16", k)))
	}
	reports = make([]Report, n)
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			req := a.request(i + 1)
			req.Timeout = timeout
			req.Gateways, req.Peers = addrs("10.61.0.1"), addrs(peersOf(b)...)
			err := a.ns.Do(func(ns.NetNS) (err error) {
				conf := "/proc/sys/net/ipv4/conf/" + req.Rail.Link.Name
				if err := joined(write(conf+"/arp_ignore", "1"), write(conf+"/arp_announce", "2")); err != nil {
					return err
				}
				reports[i], err = Prove(context.Background(), req)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	return reports
}

func TestSixteenRailsAtOnceRaiseNoFalseAlarm(t *testing.T) {
	for i, r := range attachAtOnce(t, 16, 2*time.Second) {
		for _, x := range r.Results {
			if x.Verdict == Silent && contains(x.Message, "neighbour table full") {
				t.Logf("rail %d: other tests on this machine fill the neighbour table: %s", i+1, x)
				continue
			}
			if x.Verdict != OK {
				t.Errorf("rail %d after %s: false alarm: %s", i+1, r.Elapsed, x)
			}
		}
	}
}
