package check

import (
	"bytes"
	"strings"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/sysctl"
)

// links judges what is below IP.
func (j *judge) links() {
	for i := range j.Rails {
		r := &j.Rails[i]
		switch {
		case !r.Up:
			f := j.find(RailDown, r.Name, "%s is down", r.Name)
			j.run(f, "ip link set %s up", Quoted(r.Name))
			f.advise("its routes went when it went down: delete the pod, or run railtune's ADD again")
		case !r.Carrier:
			j.find(NoCarrier, r.Name, "%s is up and has no carrier", r.Name).
				advise("look at the cable, the switch port, and for a virtual function at the physical function's state on the node")
		}
		j.station(r, j.Rails[:i])
	}
}

// station finds rails that are one station to the switch.
func (j *judge) station(r *facts.Rail, earlier []facts.Rail) {
	var before []neigh.Rail
	for i := range earlier {
		before = append(before, neighRail(&earlier[i].Link))
	}
	err := neigh.SameMAC(neighRail(&r.Link), before)
	if err == nil {
		return
	}
	f := j.find(MACConflict, r.Name, "%v", err)
	for i := range earlier {
		if bytes.Equal(earlier[i].Link.MAC, r.Link.MAC) {
			f.saw("%s and %s have MAC %s", earlier[i].Name, r.Name, r.MAC)
		}
	}
	mac := append([]byte(nil), r.Link.MAC...)
	if len(mac) != 6 {
		f.advise("set a MAC on the virtual function on the node: ip link set PF vf N mac ADDRESS")
		return
	}
	// A locally administered unicast address (IEEE 802, bits 1 and 0 of the first octet)
	// that tells the rails apart by their index.
	mac[0] = mac[0]&^1 | 2
	mac[4], mac[5] = byte(r.Index>>8)^mac[4], byte(r.Index)^mac[5]^0x80
	j.run(f, "ip link set %s address %x:%x:%x:%x:%x:%x", Quoted(r.Name), mac[0], mac[1], mac[2], mac[3], mac[4], mac[5])
}

func neighRail(l *netstate.Link) neigh.Rail {
	out := neigh.Rail{Link: attach.NeighLink(l)}
	for _, a := range l.Addrs {
		out.Addrs = append(out.Addrs, a.Prefix)
	}
	return out
}

// addresses judges what RDMA takes its GIDs from.
func (j *judge) addresses() {
	for i := range j.Rails {
		r := &j.Rails[i]
		for _, a := range r.Addresses {
			addr := a.Address.Addr()
			if a.State == "dadfailed" {
				f := j.find(DADFailed, r.Name, "%s on %s failed duplicate address detection: another station has it", addr, r.Name).
					saw("%s is dadfailed: the kernel does not use it", a.Address)
				j.run(f, "ip addr del %s dev %s", a.Address, Quoted(r.Name))
				f.advise("then give the rail an address that is free")
			}
			if other := j.otherOwner(r, a); other != "" {
				f := j.find(AddressTwice, r.Name, "%s is on %s and on %s", addr, r.Name, other).
					saw("%s on %s", a.Address, r.Name)
				j.run(f, "ip addr del %s dev %s", a.Address, Quoted(r.Name))
				f.advise("then give %s an address of its own", r.Name)
			}
		}
		if r.Up && !global(r) && !(j.expectsRA(r) && !acceptsRA(r)) {
			f := j.find(AddressMissing, r.Name, "%s has no address but link-local ones: RDMA has no GID that a peer can reach", r.Name).
				saw("addresses: %s", addressList(r))
			if j.expectsRA(r) {
				f.saw("accept_ra=%s is right, and no router advertisement has given an address", r.Effective(sysctl.AcceptRA))
				j.solicit(f, r)
				continue
			}
			f.advise("look at the IPAM of the interface plugin: ip addr add ADDRESS/LENGTH dev %s", r.Name)
		}
	}
}

// otherOwner returns an interface of lower index that has the address as well.
func (j *judge) otherOwner(r *facts.Rail, a facts.Address) string {
	if a.Address.Addr().IsLinkLocalUnicast() {
		return ""
	}
	for k := range j.Links {
		l := &j.Links[k]
		if l.Index != r.Index && l.Has(a.Address.Addr()) {
			if _, rail := j.Rail(l.Name); !rail || l.Index < r.Index {
				return l.Name
			}
		}
	}
	return ""
}

// gids looks for addresses that the RDMA device has no RoCE v2 GID for.
func (j *judge) gids() {
	for i := range j.Rails {
		r := &j.Rails[i]
		if r.RDMA == nil || !r.Up {
			continue
		}
		for _, a := range r.Addresses {
			if a.State != "usable" || a.Address.Addr().IsLinkLocalUnicast() || hasGID(r, a) {
				continue
			}
			f := j.find(GIDMissing, r.Name, "%s has no RoCE v2 GID for %s", r.RDMA.Device, a.Address.Addr())
			for _, g := range r.RDMA.GIDs {
				f.saw("port %d index %d: %s", g.Port, g.Index, g.GID)
			}
			// The kernel makes a GID when an address is added (drivers/infiniband/core/roce_gid_mgmt.c).
			j.run(f, "ip addr del %s dev %s", a.Address, Quoted(r.Name))
			j.run(f, "ip addr add %s dev %s", a.Address, Quoted(r.Name))
		}
	}
}

func hasGID(r *facts.Rail, a facts.Address) bool {
	for _, g := range r.RDMA.GIDs {
		if g.Addr == a.Address.Addr() {
			return true
		}
	}
	return false
}

func addressList(r *facts.Rail) string {
	if len(r.Addresses) == 0 {
		return "none"
	}
	var list []string
	for _, a := range r.Addresses {
		list = append(list, a.Address.String())
	}
	return strings.Join(list, " ")
}
