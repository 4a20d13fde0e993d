package present

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
	"github.com/railtune/railtune/pkg/policy"
)

// nft asks nf_tables, in which iptables-nft keeps its chains, for the rail's in
// each family (include/uapi/linux/netfilter/nf_tables.h, NFT_MSG_GETCHAIN).
func nft(ifname string) ([]policy.Family, error) {
	if !hasNFT("") {
		return nil, nil
	}
	s, err := nl.Open(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("nf_tables: %w", err)
	}
	defer s.Close()
	var out []policy.Family
	for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
		ok, err := askChain(s, f, Chain(ifname))
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

// askChain asks for one chain: the answer is that, or ENOENT.
func askChain(s *nl.Socket, f policy.Family, chain string) (found bool, err error) {
	m := nl.NewMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETCHAIN, []byte{byte(f), unix.NFNETLINK_V0, 0, 0}) // struct nfgenmsg
	m.Attr(unix.NFTA_CHAIN_TABLE, append([]byte(Table), 0)...)
	m.Attr(unix.NFTA_CHAIN_NAME, append([]byte(chain), 0)...)
	err = s.Do(m, 0, func(uint16, []byte) error {
		found = true
		return nil
	})
	for _, none := range []error{unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EINVAL} {
		if errors.Is(err, none) {
			return false, nil // no such chain, table, family, or subsystem
		}
	}
	return found, err
}
