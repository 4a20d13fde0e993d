package attach

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
)

// Status reports what this node lacks for ADD, with the code Unavailable.
func Status(k Kernel) error {
	_, err := k.RulesUpTo(policy.IPv4, 0, func(*kernel.FoundRule) bool { return false })
	if err != nil {
		return cnierr.New(cnierr.Unavailable, "%w", kernel.NoPolicyRouting(err))
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EAFNOSUPPORT):
		return cnierr.New(cnierr.Unavailable, "this kernel has no packet sockets (CONFIG_PACKET), which the neighbour proof needs: %w", err)
	case err != nil:
		return cnierr.New(cnierr.Unavailable, "no packet socket for the neighbour proof: %w; "+
			"the plugin needs CAP_NET_RAW and CAP_NET_ADMIN", err)
	}
	return unix.Close(fd)
}
