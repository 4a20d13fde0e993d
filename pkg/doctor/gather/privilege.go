package gather

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// withoutAdmin runs f on the calling thread, which must be locked, without CAP_NET_ADMIN
// in its effective set: doctor promises to change nothing, and this way the kernel keeps
// the promise, also where code it shares with ADD would change something (the neighbour
// proof removes entries that it contradicts). What is lacking afterwards is only what a
// process without the capability lacks anyway.
func withoutAdmin(f func() error) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var was [2]unix.CapUserData
	if err := unix.Capget(&header, &was[0]); err != nil {
		return fmt.Errorf("reading this thread's capabilities: %w", err)
	}
	now := was
	now[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if now == was {
		return f()
	}
	if err := unix.Capset(&header, &now[0]); err != nil {
		return fmt.Errorf("giving up CAP_NET_ADMIN: %w", err)
	}
	defer func() { _ = unix.Capset(&header, &was[0]) }()
	return f()
}
