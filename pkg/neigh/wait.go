package neigh

import (
	"context"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh/internal/watch"
	"github.com/railtune/railtune/pkg/neigh/nd"
)

// WaitDAD waits, by events, until the kernel's duplicate address detection has
// ended for the IPv6 addresses among addrs. Those still tentative or optimistic
// when the context is over are returned and are no error: warn about them. A
// taken address is an error of code Neighbour at once. See nd.WaitDAD.
func WaitDAD(ctx context.Context, ifindex int, addrs []netip.Addr) (pending []netip.Addr, err error) {
	return nd.WaitDAD(ctx, ifindex, addrs)
}

// WaitCarrier waits, by events, until a link of this thread's namespace has
// carrier in the sense of Link.Carrier, or the context is over. A link that was
// just moved and set up has none for some milliseconds, and a proof in that
// moment would prove nothing. Without carrier at the end it returns false and
// no error.
func WaitCarrier(ctx context.Context, ifindex int) (carrier bool, err error) {
	k, err := kernel.Open()
	if err != nil {
		return false, err
	}
	defer k.Close()
	err = watch.Until(ctx, unix.RTNLGRP_LINK, func() (bool, error) {
		link, err := k.Link(ifindex)
		if errors.Is(err, unix.ENODEV) {
			return false, cnierr.New(cnierr.Link, "the link with ifindex %d is gone: %w", ifindex, err)
		}
		carrier = link.Carrier
		return carrier, err
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return carrier, nil
	}
	return carrier, err
}
