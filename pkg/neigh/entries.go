package neigh

import (
	"bytes"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/policy"
)

// removeContradicted deletes the kernel's neighbour entries on the rail whose MAC
// is another than the one that was proven. The kernel resolves the address anew
// when it is next used. Entries an administrator made (permanent, noarp) stay.
//
// Best effort: a wrong entry that cannot be removed expires, and the proof of
// who is on the link stands without it.
func (p *proof) removeContradicted(results []Result) (removed []Entry) {
	proven := map[netip.Addr]Result{}
	families := map[policy.Family]bool{}
	for _, r := range results {
		if (r.Role == Gateway || r.Role == Peer) && (r.Verdict == OK || r.Verdict == Proxied) {
			proven[r.Addr] = r
			families[policy.FamilyOf(r.Addr)] = true
		}
	}
	if len(proven) == 0 {
		return nil
	}
	k, err := p.kernel.open()
	if err != nil {
		return nil
	}
	for _, family := range []policy.Family{policy.IPv4, policy.IPv6} {
		if !families[family] {
			continue
		}
		entries, err := k.Neighbours(family, p.req.Rail.Link.Index)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if r, asked := proven[e.Addr]; asked && contradicts(e, r) && k.DelNeighbour(e) == nil {
				removed = append(removed, Entry{Addr: e.Addr, MAC: e.MAC})
			}
		}
	}
	return removed
}

// contradicts says whether none of the MACs that answer is the entry's.
func contradicts(e kernel.Neighbour, r Result) bool {
	if len(e.MAC) == 0 || e.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 {
		return false
	}
	for _, a := range r.Answers {
		if !a.Stopped && bytes.Equal(a.MAC, e.MAC) {
			return false
		}
	}
	return true
}
