package dump

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestWhole(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for name, c := range map[string]struct {
		errs  []error // of each reading, the last one for all that follow
		want  error
		calls int
	}{
		"at once":         {[]error{nil}, nil, 1},
		"the third time":  {[]error{netlink.ErrDumpInterrupted, netlink.ErrDumpInterrupted, nil}, nil, 3},
		"never":           {[]error{netlink.ErrDumpInterrupted}, netlink.ErrDumpInterrupted, attempts},
		"another error":   {[]error{other}, other, 1},
		"interrupted, it": {[]error{netlink.ErrDumpInterrupted, other}, other, 2},
	} {
		calls := 0
		got, err := Whole(func() (int, error) {
			err := c.errs[min(calls, len(c.errs)-1)]
			calls++
			return calls, err
		})
		if !errors.Is(err, c.want) || (c.want == nil && err != nil) || calls != c.calls || got != calls {
			t.Errorf("%s: %d readings, error %v, got %d", name, calls, err, got)
		}
	}
}
