package testbed

import (
	"errors"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
)

// await looks, and again after every event of the groups in the calling thread's
// namespace, until look is content or the time is over. So much can happen at once that
// events are lost: the next look sees what they were about.
func await(longest time.Duration, look func() (content bool, err error), groups ...uint) (inTime bool, err error) {
	limit := time.Now().Add(longest)
	// Subscribing comes before the first look: what that does not see yet is an event.
	events, err := nl.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return false, err
	}
	defer events.Close()
	for _, g := range groups {
		if err := events.Subscribe(g); err != nil {
			return false, err
		}
	}
	for {
		content, err := look()
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		if err != nil || content {
			return content, err
		}
		left := time.Until(limit)
		if left <= 0 {
			return false, nil
		}
		if err := nextEvent(events, left); err != nil {
			return false, err
		}
	}
}

// nextEvent waits for an event, or as long as it may, and throws away what has come.
func nextEvent(events *nl.Socket, longest time.Duration) error {
	set := []unix.PollFd{{Fd: int32(events.FD()), Events: unix.POLLIN}}
	if _, err := unix.Poll(set, int(longest.Milliseconds())+1); err != nil && err != unix.EINTR {
		return err
	}
	return events.Drain()
}
