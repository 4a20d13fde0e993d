package gather

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/doctor/facts"
	"github.com/railtune/railtune/pkg/policy"
)

// maxEntries bounds how many neighbour entries of one rail are shown; with --peer those
// of peers always are.
const maxEntries = 256

// neighbours reads the rails' neighbour entries.
func (l *look) neighbours() error {
	for i := range l.Rails {
		r := &l.Rails[i]
		r.Entries = []facts.Entry{}
		for _, f := range l.families() {
			if err := l.entries(r, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries appends one family's. Multicast entries are the kernel's own bookkeeping.
func (l *look) entries(r *facts.Rail, f policy.Family) error {
	found, err := l.kernel.Neighbours(f, r.Index)
	for _, n := range found {
		if n.State&unix.NUD_NOARP != 0 || n.Addr.IsMulticast() || len(r.Entries) >= maxEntries && !slices.Contains(l.Peers, n.Addr) {
			continue
		}
		r.Entries = append(r.Entries, facts.Entry{Address: n.Addr, MAC: n.MAC.String(), State: stateText(n.State)})
	}
	return err
}

// stateText names a NUD_ state as ip neigh does.
func stateText(state uint16) string {
	switch {
	case state&unix.NUD_PERMANENT != 0:
		return "PERMANENT"
	case state&unix.NUD_REACHABLE != 0:
		return "REACHABLE"
	case state&unix.NUD_FAILED != 0:
		return "FAILED"
	case state&unix.NUD_INCOMPLETE != 0:
		return "INCOMPLETE"
	case state&unix.NUD_DELAY != 0:
		return "DELAY"
	case state&unix.NUD_PROBE != 0:
		return "PROBE"
	}
	return "STALE"
}

// neighbourTables reads how full the host's neighbour tables are. They are the same in
// every namespace, though gc_thresh3 itself is a file of the host's only.
func (l *look) neighbourTables() {
	l.NeighbourTables = []facts.NeighbourTable{}
	for _, f := range l.families() {
		t, ok, err := l.kernel.NeighbourTable(f)
		switch {
		case err != nil:
			l.note("%s neighbour table: %v", f, err)
		case ok:
			l.NeighbourTables = append(l.NeighbourTables, facts.NeighbourTable{Family: f, Name: f.String(), Entries: t.Entries, Limit: t.Limit})
		}
	}
}
