package neigh

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/internal/packet"
	"github.com/railtune/railtune/pkg/neigh/nd"
)

// Announce tells the link that addrs are at the link's MAC: for IPv4 with both
// gratuitous forms of ARP, for IPv6 with an unsolicited neighbour advertisement
// that overrides. A peer that learned another MAC before the settings held is
// right from then on, without waiting for its entry to expire. It must be
// called on a thread in the link's namespace.
//
// Nothing is sent where nobody could hear or use it: no Ethernet, no carrier,
// down. An IPv6 address that is still tentative is left out, as it must not be
// claimed yet; the kernel announces none itself.
func Announce(link Link, addrs []netip.Addr) error {
	if link.unaskable() != "" || !link.Carrier || len(addrs) == 0 {
		return nil
	}
	socket, err := packet.Open(link.Index, 0, nil)
	if err != nil {
		return unopened(link, err)
	}
	defer func() { _ = socket.Close() }()
	return announce(socket, link, addrs)
}

func announce(via port, link Link, addrs []netip.Addr) error {
	var states map[netip.Addr]nd.State
	var errs []error
	for _, a := range addrs {
		a = a.Unmap().WithZone("")
		if a.Is4() {
			for _, packet := range arp.Announcements(link.ethernet(), a) {
				errs = append(errs, sendSoon(via, arp.EtherType, arp.Broadcast, packet.Marshal()))
			}
			continue
		}
		if states == nil {
			var err error
			if states, err = statesOnce(link.Index); err != nil {
				errs = append(errs, err)
				break
			}
		}
		if s, present := states[a]; !present || s == nd.Tentative || s == nd.Optimistic || s == nd.Failed {
			continue
		}
		m, err := nd.Advertisement(link.ethernet(), a, isRouter(link.Name))
		if err == nil {
			err = sendSoon(via, nd.EtherType, m.To, m.Packet)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return cnierr.New(cnierr.Link, "announcing the addresses of %s: %w; peers that learned a wrong MAC keep it "+
			"until it expires", link.Name, err)
	}
	return nil
}

// SolicitRouter asks the routers on the link to advertise now (RFC 4861 section
// 6.3.7). The kernel sends none by itself when accept_ra is switched on after
// the link came up, and the rail would wait minutes for its default route. It
// must be called on a thread in the link's namespace.
func SolicitRouter(link Link) error {
	if link.unaskable() != "" || !link.Carrier {
		return nil
	}
	states, err := statesOnce(link.Index)
	if err != nil {
		return cnierr.New(cnierr.Link, "soliciting a router on %s: %w", link.Name, err)
	}
	p := proof{states: states}
	source := p.linkLocal()
	if !source.IsValid() {
		source = netip.IPv6Unspecified()
	}
	m, err := nd.RouterSolicitation(link.ethernet(), source)
	if err != nil {
		return err
	}
	socket, err := packet.Open(link.Index, 0, nil)
	if err != nil {
		return unopened(link, err)
	}
	defer func() { _ = socket.Close() }()
	if err := sendSoon(socket, nd.EtherType, m.To, m.Packet); err != nil {
		return cnierr.New(cnierr.Link, "soliciting a router on %s: %w", link.Name, err)
	}
	return nil
}

// sendSoon sends at once, or as soon as a full transmit queue has room, for at
// most 62 ms.
func sendSoon(via port, etherType uint16, to mac, payload []byte) error {
	for try := 0; ; try++ {
		err := via.Send(etherType, to, payload)
		if !errors.Is(err, packet.ErrBusy) || try == busyTries {
			return err
		}
		time.Sleep(busyPause << try)
	}
}

// isRouter reads /proc/sys/net/ipv6/conf/<link>/forwarding, which is what the
// kernel's own advertisements go by. Where it cannot be read the link is taken
// for a host's.
func isRouter(link string) bool {
	b, err := os.ReadFile(filepath.Join("/proc/sys/net/ipv6/conf", filepath.Base(link), "forwarding"))
	return err == nil && strings.TrimSpace(string(b)) != "0"
}
