package nl

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// dumpAttempts bounds how often an interrupted dump is repeated. Each repetition
// sees a newer state; a namespace that changes during all of them is changing
// faster than it can be read.
const dumpAttempts = 10

// Dump calls f until it is not interrupted. f must start over at every call. It is
// the one gate for dumps: an interrupted one may have missed entries, and must never
// pass for the whole. The error after the last attempt carries the code TryAgain.
func Dump(what string, f func() error) error {
	var err error
	for range dumpAttempts {
		if err = f(); !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("list of %s: %w", what, err)
			}
			return nil
		}
	}
	return cnierr.New(cnierr.TryAgain, "list of %s changed while it was read, %d times in a row: "+
		"something changes this namespace all the time: %w", what, dumpAttempts, err)
}
