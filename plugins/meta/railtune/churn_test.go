package main_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestChurn attaches and detaches rails, some coming while others go, in a namespace
// where 200 veth pairs, their addresses and other tools' rules come and go all the
// while. A second pod has the same addresses and is not touched by it.
func TestChurn(t *testing.T) {
	testbed.MustRailtune(t)
	fabric := testbed.MustFabric(t, testbed.Options{Pods: 1, Direct: true})
	twin := testbed.MustFabric(t, testbed.Options{Pods: 1, Direct: true})
	pod, other := fabric.Pods[0], twin.Pods[0]
	attachAll(t, other)
	untouched := testbed.MustSnapshot(t, other.Namespace)
	before := testbed.MustSnapshot(t, pod.Namespace)

	stop := churn(t, pod.Namespace)
	half := len(pod.Rails) / 2
	attachSome := func(rails []testbed.Rail, command string) func() error {
		return func() error {
			return eachAtOnce(rails, chained(t, pod, command))
		}
	}
	attachAll(t, pod)
	for range 5 {
		mustBoth(t, attachSome(pod.Rails[half:], "ADD"), attachSome(pod.Rails[:half], "DEL"))
		mustBoth(t, attachSome(pod.Rails[:half], "ADD"), attachSome(pod.Rails[half:], "DEL"))
	}
	if err := attachSome(pod.Rails[half:], "ADD")(); err != nil {
		t.Error(err)
	}
	stop()
	mustHaveAll(t, pod)
	detachAll(t, pod)
	untune(t, pod)
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod.Namespace)); len(d) > 0 {
		t.Errorf("left:\n%s", d)
	}
	if d := testbed.Diff(untouched, testbed.MustSnapshot(t, other.Namespace)); len(d) > 0 {
		t.Errorf("the other pod changed:\n%s", d)
	}
}

func mustBoth(t *testing.T, a, b func() error) {
	t.Helper()
	var first error
	var wait sync.WaitGroup
	wait.Go(func() { first = a() })
	second := b()
	wait.Wait()
	if err := errors.Join(first, second); err != nil {
		t.Error(err)
	}
}

func eachAtOnce(rails []testbed.Rail, f func(testbed.Rail) error) error {
	var wait sync.WaitGroup
	errs := make([]error, len(rails))
	for i, r := range rails {
		wait.Go(func() {
			if err := f(r); err != nil {
				errs[i] = fmt.Errorf("%s: %w", r.Name, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// churn lets links, addresses and rules come and go until the function it returns is
// called, which takes the last of them away.
func churn(t *testing.T, n *testbed.Namespace) (stop func()) {
	t.Helper()
	const pairs = 200
	var come, leave strings.Builder
	for i := range pairs {
		fmt.Fprintf(&come, "link add c%d type veth peer name d%d\naddr add 192.0.2.%d/32 dev c%d\nrule add priority 5000 from 192.0.2.%d lookup 4000\n", i, i, i+1, i, i+1)
		fmt.Fprintf(&leave, "rule del priority 5000 from 192.0.2.%d\nlink del c%d\n", i+1, i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ctx.Err() == nil; first = false {
			for _, batch := range []string{come.String(), leave.String()} {
				if _, err := n.Feed(t.Context(), batch, "ip", "-batch", "-"); err != nil {
					t.Errorf("churn: %v", err)
					cancel()
				}
				if first && batch == come.String() {
					close(started)
				}
			}
		}
	}()
	<-started
	return func() { cancel(); <-done }
}
