package config

import (
	"bytes"
	"slices"
	"time"

	"github.com/railtune/railtune/pkg/hwaddr"
)

// decode takes the verify object.
func (v *Verify) decode(n node, r *report) {
	if !n.want(r, object, `{"mode":"enforce"}`) {
		return
	}
	known := []string{"mode", "peers", "peerMode", "anycastMACs", "requireReply", "timeout", "gid"}
	for _, m := range n.fields(r, "verify", known...) {
		switch m.name {
		case "mode":
			m.oneOf(r, &v.Mode, Enforce, Warn, Off)
		case "peerMode":
			m.oneOf(r, &v.PeerMode, Enforce, Warn)
		case "gid":
			m.oneOf(r, &v.GID, Enforce, Warn, Off)
		case "requireReply":
			m.flag(r, &v.RequireReply)
		case "peers":
			v.peers(m.node, r)
		case "anycastMACs":
			v.anycastMACs(m.node, r)
		case "timeout":
			v.timeout(m.node, r)
		}
	}
}

// peers takes addresses and small prefixes. One that comes twice counts once,
// since a prefix and an address in it are a natural thing to write.
func (v *Verify) peers(n node, r *report) {
	if !n.want(r, list, `["10.0.3.7","10.0.3.16/30"]`) {
		return
	}
	for _, e := range n.elements() {
		for _, a := range peer(e, r) {
			if slices.Contains(v.Peers, a) {
				continue
			}
			if len(v.Peers) == MaxPeers {
				r.add("%s: with %s there are more than %d addresses; give fewer", n.path, e.show(), MaxPeers)
				return
			}
			v.Peers = append(v.Peers, a)
		}
	}
}

// anycastMACs takes link-layer addresses of Ethernet (6 bytes) and IP over
// InfiniBand (20 bytes). One that comes twice counts once.
func (v *Verify) anycastMACs(n node, r *report) {
	if !n.want(r, list, `["00:00:5e:00:01:01"]`) {
		return
	}
	for _, e := range n.elements() {
		if e.kind() != text {
			r.add("%s is %s, %s; give a MAC in quotes", e.path, e.kind(), e.show())
			continue
		}
		mac, err := hwaddr.ParseMAC(e.str())
		switch {
		case err != nil, len(mac) != 6 && len(mac) != 20:
			r.add("%s: %s is not a MAC of 6 or 20 bytes; give one such as \"00:00:5e:00:01:01\"", e.path, e.show())
		case isGroup(mac):
			r.add("%s is %s, which no single station has; give the MAC of a gateway", e.path, mac)
		case !slices.ContainsFunc(v.AnycastMACs, func(m hwaddr.MAC) bool { return bytes.Equal(m, mac) }):
			v.AnycastMACs = append(v.AnycastMACs, mac)
		}
	}
}

// isGroup tells whether a link-layer address is zero, broadcast or multicast:
// on Ethernet by the group bit (IEEE 802), on InfiniBand by the GID behind the
// four bytes of flags and queue pair (RFC 4391, section 9.1.1).
func isGroup(mac hwaddr.MAC) bool {
	if bytes.Count(mac, []byte{0}) == len(mac) {
		return true
	}
	if len(mac) == 6 {
		return mac[0]&1 == 1
	}
	return mac[4] == 0xff
}

func (v *Verify) timeout(n node, r *report) {
	const right = `give a duration above 0 and up to 30s, such as "500ms"`
	if n.kind() != text {
		r.add("%s is %s, %s; %s", n.path, n.kind(), n.show(), right)
		return
	}
	d, err := time.ParseDuration(n.str())
	if err != nil || d <= 0 || d > MaxTimeout {
		r.add("%s is %s; %s", n.path, n.show(), right)
		return
	}
	v.Timeout = d
}
