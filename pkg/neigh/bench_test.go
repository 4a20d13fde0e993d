package neigh

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// median runs the proof b.N times in the pod and reports the median beside the
// mean, which a busy machine spoils.
func median(b *testing.B, p *pod, req Request, want Verdict) {
	var times []time.Duration
	p.in(p.ns, func() error {
		b.ResetTimer()
		for range b.N {
			start := time.Now()
			report, err := Prove(context.Background(), req)
			times = append(times, time.Since(start))
			if err != nil {
				return err
			}
			for _, r := range report.Results {
				if (r.Role == Gateway || r.Role == Peer) && r.Verdict != want {
					return fmt.Errorf("want %s, got %s", want, r)
				}
			}
		}
		b.StopTimer()
		return nil
	})
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
}

// BenchmarkClean: one of two rails, no gateway, no peers: what every ADD pays.
func BenchmarkClean(b *testing.B) {
	p, _ := twoPods(b, 2)
	median(b, p, p.request(1), OK)
}

// BenchmarkAnswering17: a gateway and sixteen peers that all answer.
func BenchmarkAnswering17(b *testing.B) {
	p, peer := twoPods(b, 16)
	gateway := p.lab.pod()
	gateway.rail("10.61.0.1/16")
	req := p.request(1)
	req.Timeout = DefaultTimeout
	req.Gateways, req.Peers = addrs("10.61.0.1"), addrs(peersOf(peer)...)
	median(b, p, req, OK)
}

// BenchmarkSilent16: sixteen peers of which none answers, one default timeout.
func BenchmarkSilent16(b *testing.B) {
	p, _ := twoPods(b, 1)
	req := p.request(1)
	req.Timeout = DefaultTimeout
	for i := range 16 {
		req.Peers = append(req.Peers, addrs(fmt.Sprintf("10.61.77.%d", i+1))...)
	}
	median(b, p, req, Silent)
}
