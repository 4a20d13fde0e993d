// Package neigh proves, before an interface is handed to a pod, that the link's
// neighbours are as RDMA needs them: nobody else claims this rail's addresses,
// the gateway has one MAC, and each declared peer answers with one MAC of its
// own. It needs no CNI: it is given links and addresses, asks on the wire, and
// returns what it found. The caller judges.
//
// # What is asked
//
// Phase 1 asks who has this rail's IPv4 addresses, and its siblings' (the other
// rails of the same namespace) in the same subnet, with sender 0.0.0.0. Such a
// probe (RFC 5227) leaves no entry at those who hear it, so that an address
// that turns out to be somebody else's has poisoned nobody. Silence is the good
// case, so the phase has a fixed length.
//
// Phase 2 runs only if nobody else answered for this rail's own addresses. It
// asks the gateways and peers, IPv4 by ARP with an own address as sender, IPv6
// by neighbour solicitation, and it collects every answer, not only the first:
// one untuned host answers once per rail. Claims to the own addresses are
// listened for all along.
//
// Own IPv6 addresses rely on the kernel's duplicate address detection, whose
// state is reported. Linux answers neighbour solicitations only on the owning
// interface, so siblings are not asked about IPv6.
//
// What is found wrong is asked once more before it is believed. A sibling that
// answers has until the timeout to be tuned, since its own ADD may be about to
// do so: its setting is looked at until it changes, and then asked again.
//
// # Which verdicts can fail an ADD
//
//	role     ok  duplicate  flux    wrong-rail  shared  proxied  silent    skipped
//	own      -   severe     severe
//	sibling  -   report     report  report
//	gateway  -              severe  severe      severe           by choice  -
//	peer     -              severe  severe      severe  report   by choice  -
//
// "severe" is what Result.Severe returns: surely wrong, to be judged by
// verify.mode (own, gateway) or verify.peerMode (peer). "by choice" is silence,
// which fails only with requireReply: a peer that is not started yet is
// healthy. What is wrong with a sibling is reported; the sibling's own proof
// fails for it, and this rail keeps its promise without it. An empty cell
// cannot occur.
//
// # Threads
//
// Sockets belong to the network namespace of the thread that opens them. Every
// function here must be called on a goroutine locked to a thread in the rail's
// namespace, and uses that thread only.
package neigh
