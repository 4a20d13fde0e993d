package poll

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pipe(t *testing.T) (read, write int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(p[0]), unix.Close(p[1]) })
	return p[0], p[1]
}

func TestWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, c := range map[string]context.Context{"with": ctx, "without cancellation": context.Background()} {
		w, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		read, write := pipe(t)
		// The time comes although the descriptor does not, even if it is past.
		for _, until := range []time.Time{time.Now().Add(time.Millisecond), time.Now().Add(-time.Hour)} {
			if err := w.Wait(until, read); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if time.Now().Before(until) {
				t.Errorf("%s: came back early", name)
			}
		}
		// The descriptor comes although the time does not.
		if _, err := unix.Write(write, []byte{1}); err != nil {
			t.Fatal(err)
		}
		for _, until := range []time.Time{{}, time.Now().Add(time.Hour)} {
			if err := w.Wait(until, read); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.Close()
	}
}

func TestCancelWakes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	w, err := New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	read, _ := pipe(t)
	got := make(chan error)
	go func() { got <- w.Wait(time.Time{}, read) }()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := w.Wait(time.Time{}, read); !errors.Is(err, context.Canceled) {
		t.Errorf("a second time: %v", err)
	}
	w.Close()
}
