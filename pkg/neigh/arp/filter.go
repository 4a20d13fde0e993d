package arp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"
)

// maxClaims bounds the addresses the filter compares one by one: a jump in
// classic BPF reaches 255 instructions. A rail with more addresses than this
// simply lets all requests through.
const maxClaims = 64

// Filter returns the socket filter for a proof: every ARP reply, and of the
// requests only those whose sender is one of own. A station that asks or
// announces with our address as its own claims it just as a reply does; all
// other requests are the noise of sixteen rails starting at once.
//
// Offsets count from the ARP header: it is for a packet socket of type
// SOCK_DGRAM, whose frames come without the Ethernet header.
func Filter(own []netip.Addr) ([]bpf.RawInstruction, error) {
	const pass, drop = 0xffff, 0
	var claims []uint32
	for _, a := range own {
		if a = a.Unmap(); a.Is4() {
			b := a.As4()
			claims = append(claims, binary.BigEndian.Uint32(b[:]))
		}
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offHardware, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: hardwareEthernet, SkipTrue: 1},
		bpf.RetConstant{Val: drop},
		bpf.LoadAbsolute{Off: offProtocol, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolIPv4, SkipTrue: 1},
		bpf.RetConstant{Val: drop},
		bpf.LoadAbsolute{Off: offLengths, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: lengths, SkipTrue: 1},
		bpf.RetConstant{Val: drop},
		bpf.LoadAbsolute{Off: offOperation, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(Reply), SkipTrue: 1},
		bpf.RetConstant{Val: pass},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(Request), SkipTrue: 1},
		bpf.RetConstant{Val: drop},
	}
	if len(claims) > maxClaims {
		program = append(program, bpf.RetConstant{Val: pass})
		claims = nil
	} else {
		program = append(program, bpf.LoadAbsolute{Off: offSenderIP, Size: 4})
	}
	for _, c := range claims {
		program = append(
			program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c, SkipTrue: 1},
			bpf.RetConstant{Val: pass},
		)
	}
	program = append(program, bpf.RetConstant{Val: drop})
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("the ARP filter for %d addresses does not assemble: %w", len(claims), err)
	}
	return raw, nil
}
