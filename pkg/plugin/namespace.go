package plugin

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// inNamespace runs f on this thread in the pod's namespace, with the namespace that
// railtune itself was called in. A namespace that cannot be entered is an error with the
// code Environment, and so is the one railtune itself runs in, unless override
// (CNI_NETNS_OVERRIDE) says that is meant: a wrong CNI_NETNS must not tune the node.
//
// The thread is the caller's: one more, which ns.NetNS.Do takes, is a tenth of what an
// ADD costs (docs/speed.md).
func inNamespace(path string, override bool, f func(host ns.NetNS) error) error {
	// Locked, the runtime starts no other thread from it, which would be in the pod too.
	runtime.LockOSThread()
	back := true
	defer func() {
		if back { // a thread that stays locked ends with its goroutine
			runtime.UnlockOSThread()
		}
	}()
	host, err := ns.GetCurrentNS()
	if err != nil {
		return fmt.Errorf("the network namespace that railtune is called in: %w", err)
	}
	defer host.Close()
	pod, err := ns.GetNS(path)
	if err != nil {
		return cnierr.New(cnierr.Environment, "CNI_NETNS %s cannot be entered: %w", path, err)
	}
	defer pod.Close()
	if same, err := IsCurrent(pod); err != nil || same && !override {
		if err == nil {
			err = errors.New("it is the namespace that the runtime itself runs in")
		}
		return cnierr.New(cnierr.Environment, "CNI_NETNS %s is refused: %w", path, err)
	}
	if err := pod.Set(); err != nil { // a namespace, and not one of networks
		return cnierr.New(cnierr.Environment, "CNI_NETNS %s cannot be entered: %w", path, err)
	}
	err = f(host)
	if stuck := host.Set(); stuck != nil {
		back = false
		err = errors.Join(err, fmt.Errorf("going back to the network namespace that railtune is called in: %w", stuck))
	}
	return err
}

// IsCurrent reports whether a namespace is the calling thread's.
func IsCurrent(pod ns.NetNS) (bool, error) {
	var theirs, ours unix.Stat_t
	if err := unix.Fstat(int(pod.Fd()), &theirs); err != nil {
		return false, err
	}
	if err := unix.Stat("/proc/thread-self/ns/net", &ours); err != nil {
		return false, err
	}
	return theirs.Dev == ours.Dev && theirs.Ino == ours.Ino, nil
}

// namespaceGone reports whether a path names no namespace: empty, missing, or a
// plain file that something left there. The path is only looked at, never created.
func namespaceGone(path string) (bool, error) {
	if path == "" {
		return true, nil
	}
	err := ns.IsNSorErr(path)
	var noNS ns.NSPathNotNSErr
	var noPath ns.NSPathNotExistErr
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &noNS), errors.As(err, &noPath), errors.Is(err, os.ErrNotExist):
		return true, nil
	}
	return false, err
}
