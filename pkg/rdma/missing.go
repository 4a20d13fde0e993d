package rdma

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Absent is an address without a RoCE v2 GID on a port that should have one.
type Absent struct {
	Port Port
	Addr netip.Addr
	// Others are entries with that address which do not count: of RoCE v1, or of
	// another interface.
	Others []GID
	// Used is how many entries of the port's table are in use.
	Used int
	// Full says that no entry is free.
	Full bool
}

// String names device, port and address, and what the table has instead.
func (a Absent) String() string {
	text := fmt.Sprintf("RDMA device %s has no RoCE v2 GID for %s", a.Port, a.Addr)
	if len(a.Others) > 0 {
		var list []string
		for _, g := range a.Others {
			list = append(list, fmt.Sprintf("index %d: %s of %s", g.Index, g.Version, g.NetDev))
		}
		text += " (only " + strings.Join(list, ", ") + ")"
	}
	if a.Full {
		text += fmt.Sprintf(" (all %d entries of its table are in use)", a.Used)
	}
	return text
}

// Missing returns what has no RoCE v2 GID of this link, by port and address. iWARP
// ports have no GIDs in this sense and are passed over. Where nothing is missing only
// the table's first entries are read.
func (found *Link) Missing(addrs []netip.Addr) ([]Absent, error) {
	var out []Absent
	for _, p := range found.Ports {
		if p.Protocol == "iw" {
			continue
		}
		absent, err := found.missing(p, addrs)
		if err != nil {
			return nil, err
		}
		out = append(out, absent...)
	}
	return out, nil
}

func (found *Link) missing(p Port, addrs []netip.Addr) ([]Absent, error) {
	want := make([]Absent, len(addrs))
	for i, a := range addrs {
		want[i] = Absent{Port: p, Addr: a}
	}
	used, last := 0, -1
	for g, err := range found.GIDs(p) {
		if err != nil {
			return nil, err
		}
		used, last = used+1, g.Index
		at := slices.IndexFunc(want, func(a Absent) bool { return a.Addr == g.Addr })
		switch {
		case at < 0:
		case g.Version != RoCEv2 || g.NetDev != found.Name:
			want[at].Others = append(want[at].Others, g)
		default:
			want = slices.Delete(want, at, at+1)
		}
		if len(want) == 0 {
			return nil, nil
		}
	}
	full := last == used-1 && found.sysfs.ends(p, used)
	for i := range want {
		want[i].Used, want[i].Full = used, full
	}
	return want, nil
}

// ends reports whether a port's GID table has no entry of this index.
func (s sysfs) ends(p Port, index int) bool {
	return errors.Is(unix.Faccessat(s.class, p.dir()+"/gids/"+strconv.Itoa(index), unix.F_OK, 0), unix.ENOENT)
}

// The pauses between two looks at a GID table. The kernel's work queue usually needs
// less than the first; a table that stays incomplete costs a whole reading each time.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Wait returns when nothing is Missing, or what is when the context is over, which is no
// error. It has to look again and again: the kernel makes GIDs in a work queue and tells
// nobody (the RDMA_NLDEV_GROUP_NOTIFICATION of Linux 6.12 is about devices and netdevs).
func (found *Link) Wait(ctx context.Context, addrs []netip.Addr) ([]Absent, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		absent, err := found.Missing(addrs)
		if len(absent) == 0 || err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return absent, nil
		case <-time.After(pause):
		}
	}
}
