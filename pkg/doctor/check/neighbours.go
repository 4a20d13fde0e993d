package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/neigh"
	"github.com/railtune/railtune/pkg/policy"
)

// ownerOfMAC names the interface of this namespace that a neighbour entry points at: the
// kernel would send to itself. An ipvlan rail shares its MAC with its siblings in other
// pods by design.
func (j *judge) ownerOfMAC(r *facts.Rail, e facts.Entry) string {
	if e.MAC == "" || r.Kind == "ipvlan" && e.MAC == r.MAC {
		return ""
	}
	if j.Owner(e.Address) != "" {
		return "" // a sibling's address, with the sibling's MAC
	}
	for i := range j.Links {
		if l := &j.Links[i]; l.MAC.String() == e.MAC && !l.Loopback && l.Kind != "ipvlan" {
			return l.Name
		}
	}
	return ""
}

// entries judges the kernel's neighbour entries, without asking.
func (j *judge) entries() {
	for i := range j.Rails {
		r := &j.Rails[i]
		for _, e := range r.Entries {
			if owner := j.ownerOfMAC(r, e); owner != "" && !j.found(r.Name, NextHopLoops) {
				j.stale(r, e, "the MAC of "+owner+", which is in this namespace")
			}
			if (e.State == "FAILED" || e.State == "INCOMPLETE") && j.isGateway(r, e) {
				f := j.find(GatewaySilent, r.Name, "the gateway %s does not answer on %s", e.Address, r.Name).
					saw("neighbour entry %s %s", e.Address, e.State)
				f.advise("look at the switch port and its VLAN; this makes the kernel ask again:")
				j.run(f, "ip neigh del %s dev %s", e.Address, Quoted(r.Name))
			}
		}
		j.shared(r)
	}
	j.severalMACs()
}

func (j *judge) stale(r *facts.Rail, e facts.Entry, has string) {
	f := j.find(NeighbourStale, r.Name, "%s sends to %s by a wrong MAC: the neighbour entry has %s", r.Name, e.Address, has).
		saw("neighbour entry %s %s %s", e.Address, e.MAC, e.State)
	j.run(f, "ip neigh del %s dev %s", e.Address, Quoted(r.Name))
}

func (j *judge) isGateway(r *facts.Rail, e facts.Entry) bool {
	return slices.ContainsFunc(r.Gateways, func(g facts.Gateway) bool { return g.Address == e.Address })
}

// shared looks for two declared peers with one MAC: each is a NIC of its own. Other
// addresses may share one (gateways, ipvlan children, two addresses of one NIC).
func (j *judge) shared(r *facts.Rail) {
	by := map[string]facts.Entry{}
	for _, e := range r.Entries {
		if e.MAC == "" || !slices.Contains(j.Peers, e.Address) {
			continue
		}
		first, taken := by[e.MAC]
		if !taken {
			by[e.MAC] = e
			continue
		}
		f := j.find(NeighbourShared, r.Name, "the peers %s and %s have one MAC on %s: one of them is reached on the wrong rail",
			first.Address, e.Address, r.Name)
		for _, x := range []facts.Entry{first, e} {
			f.saw("neighbour entry %s %s %s", x.Address, x.MAC, x.State)
			j.run(f, "ip neigh del %s dev %s", x.Address, Quoted(r.Name))
		}
		f.advise("if it comes back, the peer's rails answer for each other: run doctor there")
	}
}

// severalMACs looks for one address that different rails know under different MACs.
func (j *judge) severalMACs() {
	type seen struct {
		rail string
		facts.Entry
	}
	by := map[string]seen{}
	for i := range j.Rails {
		r := &j.Rails[i]
		for _, e := range r.Entries {
			if e.MAC == "" || e.Address.IsLinkLocalUnicast() || j.isGateway(r, e) || j.found(r.Name, NeighbourStale, NeighbourShared, NextHopLoops) {
				continue
			}
			first, known := by[e.Address.String()]
			if !known {
				by[e.Address.String()] = seen{r.Name, e}
				continue
			}
			if first.MAC == e.MAC {
				continue
			}
			f := j.find(NeighbourFlux, r.Name, "%s is known under several MACs: its host answers on the wrong rails", e.Address).
				saw("on %s: %s %s", first.rail, first.MAC, first.State).saw("on %s: %s %s", r.Name, e.MAC, e.State)
			j.run(f, "ip neigh del %s dev %s", e.Address, Quoted(first.rail))
			j.run(f, "ip neigh del %s dev %s", e.Address, Quoted(r.Name))
			f.advise("if it comes back, run doctor on the host that has %s", e.Address)
		}
	}
}

// proof judges what the wire answered.
func (j *judge) proof() {
	for i := range j.Rails {
		r := &j.Rails[i]
		for _, q := range r.Proof {
			j.answer(r, q)
		}
	}
}

func (j *judge) answer(r *facts.Rail, q facts.Question) {
	switch q.Verdict {
	case neigh.OK, neigh.Proxied:
		for _, e := range r.Entries {
			outside := q.Role == neigh.Gateway || q.Role == neigh.Peer
			if outside && e.Address == q.Address && e.MAC != "" && len(q.MACs) > 0 && !slices.Contains(q.MACs, e.MAC) &&
				!j.found(r.Name, NeighbourStale, NeighbourShared) {
				j.stale(r, e, e.MAC+", and "+strings.Join(q.MACs, ", ")+" answers")
			}
		}
	case neigh.Duplicate:
		if q.Role == neigh.Own {
			j.find(AddressConflict, r.Name, "%s", q.Message).saw("%s is answered by %s", q.Address, strings.Join(q.MACs, ", ")).
				advise("find who else was given %s and free it, or give the rail another address", q.Address)
		}
	case neigh.Silent:
		code := PeerSilent
		if q.Role == neigh.Gateway {
			code = GatewaySilent
		}
		if !j.found(r.Name, code, NoCarrier, FirewallDropsND) {
			j.find(code, r.Name, "%s", q.Message).saw("%s (%s) did not answer on %s", q.Address, q.Role, r.Name).
				advise("look at the other end, then at the switch port and its VLAN: ping -c 3 -I %s %s", Quoted(r.Name), q.Address)
		}
	case neigh.Flux, neigh.WrongRail, neigh.Shared:
		if q.Role == neigh.Sibling || q.Role == neigh.Own && j.anyFound(SettingsReset, SettingMissing, AllOverrides, ProxyARP) {
			return // said already, of the rail that answers
		}
		f := j.find(NeighbourFlux, r.Name, "%s", q.Message).saw("%s is answered by %s", q.Address, strings.Join(q.MACs, ", "))
		f.advise("on the host that answers, for each of its rails: railtune doctor, or")
		f.advise("sysctl -w net.ipv4.conf.RAIL.arp_ignore=1 net.ipv4.conf.RAIL.arp_announce=2")
	}
}

func (j *judge) anyFound(codes ...Code) bool {
	return slices.ContainsFunc(j.findings, func(f *Finding) bool { return slices.Contains(codes, f.Code) })
}

// tables compares the host's neighbour tables with the number of peers: each rail that
// reaches a peer needs an entry for it, on this host and on the peer's.
func (j *judge) tables() {
	for _, t := range j.NeighbourTables {
		need := uint32(0)
		for i := range j.Rails {
			for _, a := range j.Rails[i].Addresses {
				for _, p := range j.Peers {
					if a.OnLink.Contains(p) && p.Is4() == (t.Family == policy.IPv4) {
						need++
					}
				}
			}
		}
		if t.Limit == 0 || need <= t.Limit && t.Entries*10 < t.Limit*9 {
			continue
		}
		f := j.find(NeighbourFull, "", "the host's %s neighbour table holds %d entries, %d are there and %d more are needed for the peers",
			t.Name, t.Limit, t.Entries, need).saw("gc_thresh3 is %d", t.Limit)
		f.advise("on the node itself: these are not namespaced")
		size := roundUp(4 * (need + t.Entries))
		family := strings.ToLower(t.Name)
		for i, share := range []uint32{4, 2, 1} {
			f.Remedy = append(f.Remedy, "sysctl -w net."+family+".neigh.default.gc_thresh"+string(rune('1'+i))+"="+itoa(size/share))
		}
	}
}

// roundUp is the next power of two, at least 1024.
func roundUp(n uint32) uint32 {
	size := uint32(1024)
	for size < n && size < 1<<20 {
		size *= 2
	}
	return size
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
