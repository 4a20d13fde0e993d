package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// presentNFT asks nf_tables, in which iptables-nft keeps its chains, for the rail's in
// each family (include/uapi/linux/netfilter/nf_tables.h, NFT_MSG_GETCHAIN).
func presentNFT(ifname string) ([]policy.Family, error) {
	if !hasNFT("") {
		return nil, nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("netfilter's netlink socket: %w", err)
	}
	defer unix.Close(fd)
	var out []policy.Family
	for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
		ok, err := askChain(fd, f, Chain(ifname))
		if err != nil {
			return nil, fmt.Errorf("chain %s in nf_tables: %w", Chain(ifname), err)
		}
		if ok {
			out = append(out, f)
		}
	}
	return out, nil
}

// hasNFT reports whether nf_tables can hold anything: it is loaded, or built in. Asking it
// otherwise would load it (net/netfilter/nfnetlink.c, nfnetlink_rcv_msg, asks for the
// module "nfnetlink-subsys-10"). A built-in one shows nowhere in /proc or /sys, so the
// list that comes with the kernel decides; where that cannot be read, it may be there.
func hasNFT(root string) bool {
	if exists(root+"/sys/module/nf_tables") || !exists(root+"/proc/modules") {
		return true
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return true
	}
	builtin, err := read(root + "/lib/modules/" + unix.ByteSliceToString(u.Release[:]) + "/modules.builtin")
	return err != nil || strings.Contains(builtin, "/nf_tables.ko")
}

// askChain sends one NFT_MSG_GETCHAIN and reads its answer: the chain, or ENOENT.
func askChain(fd int, f policy.Family, chain string) (bool, error) {
	m := make([]byte, unix.SizeofNlMsghdr, 128)
	m = append(m, byte(f), unix.NFNETLINK_V0, 0, 0) // struct nfgenmsg
	m = appendText(m, unix.NFTA_CHAIN_TABLE, table)
	m = appendText(m, unix.NFTA_CHAIN_NAME, chain)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETCHAIN)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	var answer [4096]byte
	n, err := receive(fd, answer[:])
	switch {
	case err != nil:
		return false, err
	case n < unix.SizeofNlMsghdr+4:
		return false, fmt.Errorf("an answer of %d bytes", n)
	case binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR:
		return true, nil
	}
	errno := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
	switch errno {
	case unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EINVAL:
		return false, nil // no such chain, table, family, or subsystem
	}
	return false, errno
}

// receive is recv(2), repeated where a signal interrupts it: the runtime sends signals
// to preempt goroutines.
func receive(fd int, buf []byte) (int, error) {
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// appendText appends a netlink attribute with a text, ended by a zero and padded.
func appendText(m []byte, kind uint16, text string) []byte {
	m = binary.NativeEndian.AppendUint16(m, uint16(unix.SizeofNlAttr+len(text)+1))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = append(m, text...)
	return append(m, make([]byte, 4-len(text)%4)...)
}
