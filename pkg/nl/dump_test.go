package nl

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// TestDump: an interrupted dump is repeated, and never passes for a whole one.
func TestDump(t *testing.T) {
	for _, interrupted := range []int{0, 1, 9} {
		calls := 0
		err := Dump("things", func() error {
			if calls++; calls <= interrupted {
				return unix.EINTR
			}
			return nil
		})
		if err != nil || calls != interrupted+1 {
			t.Errorf("interrupted %d times: %v after %d calls", interrupted, err, calls)
		}
	}
	err := Dump("things", func() error { return unix.EINTR })
	if cnierr.CodeOf(err, 0) != cnierr.TryAgain {
		t.Errorf("interrupted for ever: %v", err)
	}
	calls := 0
	if err := Dump("things", func() error { calls++; return unix.EPERM }); !errors.Is(err, unix.EPERM) || calls != 1 {
		t.Errorf("another error: %v after %d calls", err, calls)
	}
}
