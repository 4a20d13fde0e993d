package nd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh/internal/watch"
)

// State is how far duplicate address detection (RFC 4862 section 5.4) has come
// for one address, from the flags of struct ifaddrmsg.
type State int

// The states, best first.
const (
	// Proven: detection ended and found no other station.
	Proven State = iota
	// Unchecked: detection is off for this address (IFA_F_NODAD).
	Unchecked
	// Optimistic: still detecting, but the kernel uses the address (RFC 4429).
	Optimistic
	// Tentative: still detecting; the address cannot be a source.
	Tentative
	// Failed: another station has the address.
	Failed
)

// States returns the state of every IPv6 address on a link, link-local ones
// included. A link that is gone has none.
func States(k *kernel.Netlink, ifindex int) (map[netip.Addr]State, error) {
	list, err := k.IPv6Flags(ifindex)
	if err != nil {
		return nil, fmt.Errorf("the state of the addresses on the link with ifindex %d: %w", ifindex, err)
	}
	states := make(map[netip.Addr]State, len(list))
	for addr, flags := range list {
		states[addr] = stateOf(flags)
	}
	return states, nil
}

func stateOf(flags uint32) State {
	switch {
	case flags&unix.IFA_F_DADFAILED != 0:
		return Failed
	case flags&unix.IFA_F_TENTATIVE != 0 && flags&unix.IFA_F_OPTIMISTIC != 0:
		return Optimistic
	case flags&unix.IFA_F_TENTATIVE != 0:
		return Tentative
	case flags&unix.IFA_F_NODAD != 0:
		return Unchecked
	default:
		return Proven
	}
}

// WaitDAD waits by events until duplicate address detection has ended for the
// IPv6 addresses among addrs, or the context is over. What is still being
// detected then (tentative or optimistic) is returned as pending, which is not
// an error: a link without carrier stays so for good.
//
// The error has code Neighbour as soon as one address is found taken, and code
// Link when one is not on the link. It must be called on a thread of the link's
// namespace. A manual address takes about 1.9 s.
func WaitDAD(ctx context.Context, ifindex int, addrs []netip.Addr) (pending []netip.Addr, err error) {
	var wanted []netip.Addr
	for _, a := range addrs {
		if a = a.Unmap().WithZone(""); a.Is6() {
			wanted = append(wanted, a)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	k, err := kernel.Open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	err = watch.Until(ctx, unix.RTNLGRP_IPV6_IFADDR, func() (bool, error) {
		states, err := States(k, ifindex)
		if err != nil {
			return false, err
		}
		pending, err = detecting(ifindex, wanted, states)
		return len(pending) == 0, err
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return pending, nil
	}
	return nil, err
}

// detecting returns the addresses whose detection has not ended.
func detecting(ifindex int, wanted []netip.Addr, states map[netip.Addr]State) (pending []netip.Addr, err error) {
	for _, a := range wanted {
		state, present := states[a]
		switch {
		case !present:
			return pending, cnierr.New(cnierr.Link,
				"%s is not on the link with ifindex %d: the interface plugin's result names an address that is gone", a, ifindex)
		case state == Failed:
			return pending, cnierr.New(cnierr.Neighbour,
				"another station on the link has %s: duplicate address detection failed (dadfailed) on ifindex %d; "+
					"find who else was given the address and free it", a, ifindex)
		case state == Tentative || state == Optimistic:
			pending = append(pending, a)
		}
	}
	return pending, nil
}
