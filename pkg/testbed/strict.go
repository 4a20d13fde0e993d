package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
)

// Strict makes the pod take packets as a RoCE NIC does: what arrives on a rail
// for an address that is not that rail's own is dropped, although the kernel
// would have delivered it. Echo requests that pass are counted for Measure.
func (p *Pod) Strict(ctx context.Context) error {
	_, err := p.Feed(ctx, `table inet strict {
	set arrived {
		type ipv4_addr . ipv4_addr
		size 65535
		flags dynamic
		counter
	}
	chain arrive {
		type filter hook prerouting priority raw
		iifname "net*" fib daddr . iif type != { local, broadcast, multicast } counter drop
		iifname "net*" icmp type echo-request add @arrived { ip saddr . ip daddr }
	}
}
`, "nft", "-f", "-")
	p.strict = err == nil
	return err
}

// StrictSource also drops what leaves by a rail with a source address that is
// not that rail's own, as a NIC with the other rail's GID would never send it.
func (p *Pod) StrictSource(ctx context.Context) error {
	_, err := p.Feed(ctx, `table inet strict {
	chain leave {
		type filter hook postrouting priority raw
		oifname "net*" fib saddr . oif type != local counter drop
	}
}
`, "nft", "-f", "-")
	return err
}

func (p *Pod) forgetArrivals(ctx context.Context) error {
	if !p.strict {
		return nil
	}
	_, err := p.Run(ctx, "nft", "flush", "set", "inet", "strict", "arrived")
	return err
}

// arrivals reads how many echo requests each source sent to each of the pod's
// rails, over the rail that owns the destination.
func (p *Pod) arrivals(ctx context.Context) (map[[2]netip.Addr]int, error) {
	if !p.strict {
		return nil, nil
	}
	out, err := p.Run(ctx, "nft", "-j", "list", "set", "inet", "strict", "arrived")
	if err != nil {
		return nil, err
	}
	var listing struct {
		Nftables []struct {
			Set struct {
				Elem []struct {
					Elem struct {
						Val     struct{ Concat []netip.Addr }
						Counter struct{ Packets int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &listing); err != nil {
		return nil, fmt.Errorf("nft's set of arrivals in %s: %w", p.Name, err)
	}
	counts := map[[2]netip.Addr]int{}
	for _, object := range listing.Nftables {
		for _, e := range object.Set.Elem {
			if len(e.Elem.Val.Concat) != 2 {
				return nil, errors.New("nft's set of arrivals has elements of another shape than source and destination")
			}
			counts[[2]netip.Addr(e.Elem.Val.Concat)] = e.Elem.Counter.Packets
		}
	}
	return counts, nil
}
