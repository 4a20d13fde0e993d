package firewall

import (
	"errors"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

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
	req := nl.NewNetlinkRequest(getTable, unix.NLM_F_DUMP)
	req.AddRawData(make([]byte, headerLength))
	messages, err := req.Execute(unix.NETLINK_NETFILTER, newTable)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil, nil // a kernel without nftables has none
	}
	if err != nil {
		return nil, nil, err
	}
	present = map[policy.Family][]string{}
	for _, m := range messages {
		if len(m) < headerLength {
			continue
		}
		attrs, err := nl.ParseRouteAttr(m[headerLength:])
		if err != nil {
			return nil, nil, err
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.NFTA_TABLE_NAME {
				name := unix.ByteSliceToString(a.Value)
				switch {
				case isIPTables(m[0], name):
					present[familyOf(m[0])] = append(present[familyOf(m[0])], name)
				case !isOther(m[0], name):
					foreign = append(foreign, familyName(m[0])+" "+name)
				}
			}
		}
	}
	return present, foreign, nil
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
