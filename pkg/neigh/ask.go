package neigh

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/neigh/arp"
	"github.com/railtune/railtune/pkg/neigh/nd"
)

// askARP returns a question that is built once and sent as often as needed.
func askARP(via port, from mac, sender, target netip.Addr) func() error {
	b := arp.Question(from, sender, target).Marshal()
	return func() error { return via.Send(arp.EtherType, arp.Broadcast, b) }
}

func askND(via port, from mac, source, target netip.Addr) func() error {
	m, err := nd.Solicitation(from, source, target)
	return func() error {
		if err != nil {
			return err
		}
		return via.Send(nd.EtherType, m.To, m.Packet)
	}
}
