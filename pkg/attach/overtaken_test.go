package attach_test

import (
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/testbed"
)

// overtakenKernel is the real kernel, which another ADD for the rail gets to first: after
// this one has looked, and before it makes its first rule.
type overtakenKernel struct {
	attach.Kernel
	other *func() error
}

func (k overtakenKernel) AddRule(r policy.Rule) error {
	if other := *k.other; other != nil {
		*k.other = nil
		if err := other(); err != nil {
			return err
		}
	}
	return k.Kernel.AddRule(r)
}

// TestOvertaken: of two ADDs for a rail at once both are good, and DEL removes what either
// has made.
func TestOvertaken(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	other := func() error { return with(t, pod, add) }
	if err := with(t, pod, func(r *attach.Rail) error {
		r.Kernel = overtakenKernel{r.Kernel, &other}
		return add(r)
	}); err != nil {
		t.Fatal(err)
	}
	if other != nil {
		t.Fatal("nobody was there first")
	}
	if err := with(t, pod, func(r *attach.Rail) error { return check(r, conf) }); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	mustRestore(t, pod, before)
}
