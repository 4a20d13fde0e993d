package paths

import (
	"fmt"
	"net/netip"
	"strings"
)

// Peer is one rail of a peer: the address it has there.
type Peer struct {
	// Pod names the peer; rails of one pod have one name.
	Pod  string     `json:"pod,omitempty"`
	Rail string     `json:"rail"`
	Addr netip.Addr `json:"addr"`
}

// MaxPeers bounds a map: what is sent grows with its square.
const MaxPeers = 256

// ParseMap reads a peer map, a line for each rail of each peer:
//
//	net1 10.61.1.12
//	net2 10.61.2.12   worker-1   # a third word names the pod
//
// Empty lines and what follows # do not count. The rail is the name it has in the pod
// that looks; railtune paths --mine prints the lines of the pod it is called in.
func ParseMap(text string) ([]Peer, error) {
	var peers []Peer
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) > 3 || len(words) < 2 {
			return nil, fmt.Errorf("line %d: %q; give RAIL ADDRESS, and the pod's name behind them if you like", number, strings.TrimSpace(line))
		}
		p, err := newPeer(words[0], words[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(words) == 3 {
			p.Pod = words[2]
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// ParsePeers reads peers given as RAIL=ADDRESS, with commas between.
func ParsePeers(list string) ([]Peer, error) {
	var peers []Peer
	for s := range strings.SplitSeq(list, ",") {
		rail, addr, found := strings.Cut(strings.TrimSpace(s), "=")
		if !found {
			return nil, fmt.Errorf("%q: give RAIL=ADDRESS, such as net1=10.61.1.12", s)
		}
		p, err := newPeer(rail, addr)
		if err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

func newPeer(rail, text string) (Peer, error) {
	// People copy addresses with their length.
	addr, err := netip.ParseAddr(text)
	if prefix, e := netip.ParsePrefix(text); e == nil {
		addr, err = prefix.Addr(), nil
	}
	switch addr = addr.Unmap(); {
	case err != nil:
		return Peer{}, fmt.Errorf("%q of %s is no address", text, rail)
	case addr.IsLinkLocalUnicast():
		return Peer{}, fmt.Errorf("%s of %s is a link-local address, which no path leads to; give the rail's own", addr, rail)
	case addr.IsUnspecified(), addr.IsMulticast(), addr.IsLoopback():
		return Peer{}, fmt.Errorf("%s of %s is no address of a rail", addr, rail)
	case rail == "":
		return Peer{}, fmt.Errorf("%s has no rail", addr)
	}
	return Peer{Rail: rail, Addr: addr}, nil
}

// check refuses more peers than can be tried, and an address that is there twice: its replies could not be told apart.
func check(peers []Peer) error {
	if len(peers) > MaxPeers {
		return fmt.Errorf("%d addresses are more than %d; give fewer peers", len(peers), MaxPeers)
	}
	seen := map[netip.Addr]string{}
	for _, p := range peers {
		if other, ok := seen[p.Addr]; ok {
			return fmt.Errorf("%s is given for %s and for %s", p.Addr, other, p.Rail)
		}
		seen[p.Addr] = p.Rail
	}
	return nil
}
