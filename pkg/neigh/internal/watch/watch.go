// Package watch turns rtnetlink notifications into wake-ups: subscribe, look,
// and look again on each event. What an event says is never parsed; the list
// read after it is the truth, and a notification lost to an overrun is only
// one more reason to look.
package watch

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/neigh/internal/poll"
	"github.com/railtune/railtune/pkg/nl"
)

// Until calls look until it says settled, once right after subscribing to the
// rtnetlink group and then after each event of that group, so that a change
// between looking and listening cannot be missed. It returns nil when settled,
// the context's error when that was over first, or look's error. The socket is
// opened on the calling thread.
func Until(ctx context.Context, group uint, look func() (settled bool, err error)) error {
	events, err := nl.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer events.Close()
	if err := events.Subscribe(group); err != nil {
		return err
	}
	waiter, err := poll.New(ctx)
	if err != nil {
		return err
	}
	defer waiter.Close()
	for {
		if settled, err := look(); err != nil || settled {
			return err
		}
		if err := waiter.Wait(time.Time{}, events.FD()); err != nil {
			return err
		}
		if err := events.Drain(); err != nil {
			return err
		}
	}
}
