package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
)

// rtmsg is struct rtmsg (include/uapi/linux/rtnetlink.h) and, with kind as the action
// and without protocol and scope, struct fib_rule_hdr (include/uapi/linux/fib_rules.h).
type rtmsg struct {
	family, dstLen, srcLen, tos  uint8
	table, protocol, scope, kind uint8
	flags                        uint32
}

func (h rtmsg) bytes() []byte {
	b := []byte{h.family, h.dstLen, h.srcLen, h.tos, h.table, h.protocol, h.scope, h.kind}
	return binary.NativeEndian.AppendUint32(b, h.flags)
}

// parseRtmsg splits an answer into its header and its attributes.
func parseRtmsg(m []byte) (h rtmsg, attrs []byte, err error) {
	if len(m) < unix.SizeofRtMsg {
		return rtmsg{}, nil, nl.ErrShort
	}
	return rtmsg{
		family: m[0], dstLen: m[1], srcLen: m[2], tos: m[3],
		table: m[4], protocol: m[5], scope: m[6], kind: m[7],
		flags: nl.Uint32(m[8:]),
	}, m[unix.SizeofRtMsg:], nil
}

// wideTable is the first table number that the header's byte cannot say.
const wideTable = 256
