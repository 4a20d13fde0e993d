package firewall

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
	"github.com/railtune/railtune/pkg/policy"
)

// nftTables lists the namespace's nftables tables, which changes nothing
// (NFT_MSG_GETTABLE, include/uapi/linux/netfilter/nf_tables.h): present are those that
// iptables-nft keeps its tables filter and raw in, foreign are all that it does not show.
func nftTables() (present map[policy.Family][]string, foreign []string, err error) {
	const (
		getTable     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
		newTable     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE
		headerLength = 4 // struct nfgenmsg: family, version, resource id
	)
	s, err := nl.Open(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil, nil // a kernel without nftables has none
	}
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	err = nl.Dump("nftables tables", func() error {
		present, foreign = map[policy.Family][]string{}, nil
		return s.Do(nl.NewMessage(getTable, make([]byte, headerLength)), unix.NLM_F_DUMP, func(kind uint16, m []byte) error {
			if kind != newTable || len(m) < headerLength {
				return nil
			}
			return nl.EachAttr(m[headerLength:], func(kind uint16, value []byte) {
				if kind != unix.NFTA_TABLE_NAME {
					return
				}
				name := unix.ByteSliceToString(value)
				switch {
				case isIPTables(m[0], name):
					present[familyOf(m[0])] = append(present[familyOf(m[0])], name)
				case !isOther(m[0], name):
					foreign = append(foreign, familyName(m[0])+" "+name)
				}
			})
		})
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil, nil
	}
	return present, foreign, err
}

func familyOf(nfproto byte) policy.Family {
	if nfproto == unix.NFPROTO_IPV6 {
		return policy.IPv6
	}
	return policy.IPv4
}

// isIPTables tells the tables in which iptables-nft keeps filter and raw.
func isIPTables(nfproto byte, name string) bool {
	return (nfproto == unix.NFPROTO_IPV4 || nfproto == unix.NFPROTO_IPV6) && (name == "filter" || name == "raw")
}

// isOther tells iptables' tables that drop nothing by custom: address translation,
// mangling and labels.
func isOther(nfproto byte, name string) bool {
	return (nfproto == unix.NFPROTO_IPV4 || nfproto == unix.NFPROTO_IPV6) && slices.Contains([]string{"nat", "mangle", "security"}, name)
}

func familyName(nfproto byte) string {
	switch nfproto {
	case unix.NFPROTO_IPV4:
		return "ip"
	case unix.NFPROTO_IPV6:
		return "ip6"
	case unix.NFPROTO_INET:
		return "inet"
	case unix.NFPROTO_ARP:
		return "arp"
	case unix.NFPROTO_BRIDGE:
		return "bridge"
	}
	return "netdev"
}
