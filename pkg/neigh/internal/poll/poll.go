// Package poll waits for descriptors, a time and a context at once, on the
// calling thread. The neighbour proof must not open sockets on another thread
// than the one in the rail's namespace, and needs no goroutine to wait either.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Waiter waits until one of several things happens. It belongs to one goroutine.
type Waiter struct {
	ctx  context.Context
	stop func() bool
	done chan struct{}
	wake int
}

// New returns a waiter that a cancelled context interrupts.
func New(ctx context.Context) (*Waiter, error) {
	w := &Waiter{ctx: ctx, wake: -1}
	if ctx.Done() == nil {
		return w, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("an eventfd to be woken by: %w", err)
	}
	w.wake, w.done = fd, make(chan struct{})
	w.stop = context.AfterFunc(ctx, func() {
		defer close(w.done)
		// A write to an eventfd wakes the poll. It can only fail on overflow,
		// when the poll is awake already.
		_, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	return w, nil
}

// Close lets go of the context.
func (w *Waiter) Close() {
	if w.wake < 0 {
		return
	}
	if !w.stop() {
		<-w.done // the descriptor's number may be another file's once closed
	}
	_ = unix.Close(w.wake)
}

// Wait returns when one of fds is readable or has an error to report, or when
// until has come; the zero time never comes. The error is the context's once
// that is over.
func (w *Waiter) Wait(until time.Time, fds ...int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	set := make([]unix.PollFd, 0, len(fds)+1)
	for _, fd := range fds {
		set = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if w.wake >= 0 {
		set = append(set, unix.PollFd{Fd: int32(w.wake), Events: unix.POLLIN})
	}
	for {
		var timeout *unix.Timespec
		if !until.IsZero() {
			left := unix.NsecToTimespec(max(0, time.Until(until)).Nanoseconds())
			timeout = &left
		}
		_, err := unix.Ppoll(set, timeout, nil)
		if errors.Is(err, unix.EINTR) {
			continue // the Go runtime interrupts threads to preempt goroutines
		}
		if err != nil {
			return fmt.Errorf("waiting for neighbours to answer: %w", err)
		}
		return w.ctx.Err()
	}
}
