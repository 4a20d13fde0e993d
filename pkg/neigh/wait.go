package neigh

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
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

// carrierFlags are what Link.Carrier means: the driver's carrier, and the
// operational state that the kernel derives from it a moment later. Between the
// two a link has no queue yet, and what is sent vanishes without an error
// (net/core/link_watch.c, linkwatch_do_dev).
const carrierFlags = unix.IFF_LOWER_UP | unix.IFF_RUNNING

// WaitCarrier waits, by events, until a link of this thread's namespace has
// carrier in the sense of Link.Carrier, or the context is over. A link that was
// just moved and set up has none for some milliseconds, and a proof in that
// moment would prove nothing. Without carrier at the end it returns false and
// no error.
func WaitCarrier(ctx context.Context, ifindex int) (carrier bool, err error) {
	err = watch.Until(ctx, unix.RTNLGRP_LINK, func() (bool, error) {
		link, err := netlink.LinkByIndex(ifindex)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return false, cnierr.New(cnierr.Link, "the link with ifindex %d is gone: %w", ifindex, err)
		}
		if err != nil {
			return false, fmt.Errorf("reading the link with ifindex %d: %w", ifindex, err)
		}
		carrier = link.Attrs().RawFlags&carrierFlags == carrierFlags
		return carrier, nil
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return carrier, nil
	}
	return carrier, err
}
