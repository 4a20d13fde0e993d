package gather

import (
	"net/netip"
	"slices"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/rdma"
)

// rdmaDevices finds the RDMA device of each link that may be a rail, by the link's index.
func (l *look) rdmaDevices() map[int]*facts.RDMA {
	out := map[int]*facts.RDMA{}
	view, err := rdma.Open()
	if err != nil {
		l.note("RDMA devices and GIDs: %v", err)
		return out
	}
	defer view.Close()
	ports, err := view.Ports()
	if err != nil {
		l.note("RDMA devices and GIDs: %v", err)
		return out
	}
	for i := range l.links {
		link := &l.links[i]
		if link.Loopback || len(l.opt.Rails) > 0 && !l.named(link.Name) {
			continue
		}
		device, err := deviceOf(view, ports, link)
		if err != nil {
			l.note("RDMA device of %s: %v", link.Name, err)
		}
		if device != nil {
			out[link.Index] = device
		}
	}
	return out
}

// named says that --rail names the link.
func (l *look) named(name string) bool {
	return slices.ContainsFunc(l.opt.Rails, func(pattern string) bool { return matches(pattern, name) })
}

// deviceOf returns the port that carries the link's addresses, nil if none does. A node
// has hundreds of links that are no rails, so that only stacked ones, whose port is that
// of another link, are looked into one by one.
func deviceOf(view *rdma.View, ports []rdma.Port, link *netstate.Link) (*facts.RDMA, error) {
	for _, p := range ports {
		if p.IfIndex == link.Index {
			return gidsOf(view, p, link)
		}
	}
	if !rdma.Stacked(link) {
		return nil, nil
	}
	found, err := rdma.ForLink(link, nil)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	if len(found.Ports) == 0 {
		return nil, nil
	}
	return gidsOf(found.View, found.Ports[0], link)
}

// gidsOf lists what a port's GID table has of a link, until it has all addresses: a table
// has 256 to 1024 entries, and each costs several files.
func gidsOf(view *rdma.View, port rdma.Port, link *netstate.Link) (*facts.RDMA, error) {
	missing := map[netip.Addr]bool{}
	for _, a := range link.Addrs {
		missing[a.Prefix.Addr()] = true
	}
	out := &facts.RDMA{Device: port.Device, State: port.State, GIDs: []facts.GID{}}
	for g, err := range view.GIDs(port) {
		if err != nil {
			return out, err
		}
		if g.Version != rdma.RoCEv2 || g.NetDev != link.Name {
			continue
		}
		out.GIDs = append(out.GIDs, facts.GID{Port: port.Number, Index: g.Index, GID: gidText(g.Addr), Addr: g.Addr})
		if delete(missing, g.Addr); len(missing) == 0 {
			break
		}
	}
	return out, nil
}

// gidText is the GID as show_gids and ib_write_bw print it: an IPv4 address mapped.
func gidText(a netip.Addr) string {
	return netip.AddrFrom16(a.As16()).StringExpanded()
}
