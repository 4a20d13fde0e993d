package attach_test

import (
	"context"
	"os"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/neigh"
)

// fakeAskingWire looks at the settings of links as the proof does, when late has come.
type fakeAskingWire struct {
	fakeWire
	late func() (ifindex int, err error)
	seen []string
}

func (f *fakeAskingWire) Prove(ctx context.Context, req neigh.Request) (neigh.Report, error) {
	ifindex, err := f.late()
	if err != nil {
		return neigh.Report{}, err
	}
	f.seen = []string{req.EffectiveARPIgnore(ifindex), req.EffectiveARPIgnore(1 << 20)}
	return f.fakeWire.Prove(ctx, req)
}

// TestLatecomersSetting: the setting of a link that came after the observation is found,
// and that of one that is gone is not.
func TestLatecomersSetting(t *testing.T) {
	pod := newPod(t)
	wire := &fakeAskingWire{fakeWire: fakeWire{found: neigh.Result{Role: neigh.Own, Verdict: neigh.OK}}}
	if err := with(t, pod, func(r *attach.Rail) error {
		wire.late = func() (int, error) {
			if _, err := pod.Run(t.Context(), "ip", "link", "add", "late", "type", "veth", "peer", "name", "latep"); err != nil {
				return 0, err
			}
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/late/arp_ignore", []byte("2"), 0o644); err != nil {
				return 0, err
			}
			links, err := r.Kernel.Links()
			for _, l := range links {
				if l.Name == "late" {
					return l.Index, err
				}
			}
			return 0, err
		}
		r.Neighbours = wire
		return addAs(r, `{"cniVersion":"1.0.0","type":"railtune"}`)
	}); err != nil {
		t.Fatal(err)
	}
	if len(wire.seen) != 2 || wire.seen[0] != "2" || wire.seen[1] != "" {
		t.Errorf("the settings are %q, want 2 and none", wire.seen)
	}
}
