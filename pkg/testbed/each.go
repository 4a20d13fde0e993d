package testbed

import (
	"errors"
	"fmt"
	"sync"
)

// EachPod calls do for all pods at once and returns what failed.
func (f *Fabric) EachPod(do func(*Pod) error) error {
	errs := make([]error, len(f.Pods))
	var wait sync.WaitGroup
	for i, p := range f.Pods {
		wait.Go(func() { errs[i] = do(p) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// eachRail calls do for all rails of all pods at once.
func (f *Fabric) eachRail(do func(*Pod, Rail) error) error {
	var (
		wait sync.WaitGroup
		lock sync.Mutex
		errs []error
	)
	for _, p := range f.Pods {
		for _, r := range p.Rails {
			wait.Go(func() {
				if err := do(p, r); err != nil {
					lock.Lock()
					defer lock.Unlock()
					errs = append(errs, err)
				}
			})
		}
	}
	wait.Wait()
	const shown = 3 // what fails on one rail fails on most
	if more := len(errs) - shown; more > 0 {
		errs = append(errs[:shown], fmt.Errorf("… and %d more", more))
	}
	return errors.Join(errs...)
}
