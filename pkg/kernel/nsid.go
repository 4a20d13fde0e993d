package kernel

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
)

// NSID is the number that this namespace knows another by, as in netstate.Link's
// ParentNSID; -1 for one it has no number for. fd is an open descriptor of the other
// (include/uapi/linux/net_namespace.h; net/core/net_namespace.c, rtnl_net_getid).
func (k *Netlink) NSID(fd int) (id int, err error) {
	m := nl.NewMessage(unix.RTM_GETNSID, make([]byte, 4)) // struct rtgenmsg, padded
	m.Uint32(unix.NETNSA_FD, uint32(fd))
	id = unix.NETNSA_NSID_NOT_ASSIGNED
	err = k.socket.Do(m, 0, func(kind uint16, body []byte) error {
		if kind != unix.RTM_NEWNSID || len(body) < 4 {
			return nil
		}
		return nl.EachAttr(body[4:], func(kind uint16, v []byte) {
			if kind == unix.NETNSA_NSID && len(v) == 4 {
				id = int(int32(binary.NativeEndian.Uint32(v)))
			}
		})
	})
	if err != nil {
		return unix.NETNSA_NSID_NOT_ASSIGNED, fmt.Errorf("asking for a network namespace's number: %w", err)
	}
	return id, nil
}
