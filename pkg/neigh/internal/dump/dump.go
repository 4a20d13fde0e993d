// Package dump reads rtnetlink lists whole.
package dump

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// attempts is how often a list is read anew when the kernel says that it
// changed under the reader (NLM_F_DUMP_INTR).
const attempts = 8

// Whole calls list until it was not interrupted. An interrupted list may lack
// entries, so it is never passed on as the truth.
func Whole[T any](list func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		got, err := list()
		if err == nil || !errors.Is(err, netlink.ErrDumpInterrupted) {
			return got, err
		}
		if try == attempts {
			return got, fmt.Errorf("the list changed under each of %d readings: %w", attempts, err)
		}
	}
}
