package doctor_test

import (
	"fmt"

	"github.com/railtune/railtune/pkg/doctor/check"
)

const allSetups = "multus multus-subnets host host-subnets dranet pod-sysctls"

var breakages = []breakage{
	// A value is missing.
	{
		name: "arp_ignore missing", code: check.SettingMissing, setups: "multus multus-subnets host host-subnets dranet",
		do: script("echo 0 > /proc/sys/net/ipv4/conf/net2/arp_ignore"),
	},
	{
		name: "arp_announce missing", code: check.SettingMissing, setups: "multus host dranet",
		do: script("echo 0 > /proc/sys/net/ipv4/conf/net2/arp_announce"),
	},
	{
		name: "all arp_announce missing", code: check.SettingMissing, setups: "pod-sysctls",
		do: script("echo 0 > /proc/sys/net/ipv4/conf/all/arp_announce"),
	},
	{
		name: "all values missing", code: check.SettingsReset, setups: "pod-sysctls",
		do: script("echo 0 > /proc/sys/net/ipv4/conf/all/arp_announce; echo 0 > /proc/sys/net/ipv4/conf/all/arp_ignore"),
	},
	{
		name: "accept_ra missing", code: check.RAIgnored, setups: "host-ra",
		do: script("echo 1 > /proc/sys/net/ipv6/conf/net2/accept_ra"),
	},
	{
		name: "accept_ra off", code: check.RAIgnored, setups: "host-ra dranet-ra",
		do: script("echo 0 > /proc/sys/net/ipv6/conf/net2/accept_ra"),
	},

	// conf/all overrides.
	{
		name: "all arp_ignore 8", code: check.AllOverrides, setups: allSetups,
		do: script("echo 8 > /proc/sys/net/ipv4/conf/all/arp_ignore"),
	},
	{
		name: "all proxy_arp", code: check.AllOverrides, setups: allSetups,
		do: script("echo 1 > /proc/sys/net/ipv4/conf/all/proxy_arp"),
	},
	{
		name: "all arp_filter without rules", code: check.AllOverrides, setups: "host dranet",
		do: script(noRules + "echo 1 > /proc/sys/net/ipv4/conf/all/arp_filter"),
	},
	{
		name: "all rp_filter without rules", code: check.AllOverrides, setups: "host dranet",
		do: script(noRules + "echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter"),
	},

	// Rules without a device.
	{
		name: "copied rules without device, arp_filter", code: check.RuleWithoutDevice, setups: "host dranet pod-sysctls host-subnets",
		do: func(b *bed) { b.withoutDevice(); b.set("ipv4/conf/IFNAME/arp_filter", "1") },
	},
	{
		name: "copied rules without device, rp_filter", code: check.RuleWithoutDevice, setups: "host dranet pod-sysctls",
		do: func(b *bed) { b.withoutDevice(); b.set("ipv4/conf/IFNAME/rp_filter", "1") },
	},
	{
		name: "rule of others before railtune's", code: check.ForeignRuleWins, setups: "multus multus-subnets",
		do: script("ip route add 10.61.0.0/16 dev net3 table 55; ip rule add priority 55 lookup 55"),
	},

	// Forwarding switched on late.
	{
		name: "forwarding late", code: check.RAIgnored, setups: "dranet-ra",
		do: script("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"),
	},
	{
		name: "forwarding late, accept_ra 1", code: check.RAIgnored, setups: "host-ra",
		do: func(b *bed) {
			b.set("ipv6/conf/IFNAME/accept_ra", "1")
			b.sh("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
		},
	},
	{
		name: "forwarding before the first advertisement", code: check.RAIgnored, setups: "dranet-ra",
		do: script("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; ip -6 addr flush dev net2 scope global"),
	},

	// A namespace move reset the values.
	{
		name: "moved", code: check.SettingsReset, setups: "multus multus-subnets host host-subnets dranet",
		do: func(b *bed) { b.move("net2") },
	},

	// A stale neighbour.
	{
		name: "neighbour with an own MAC", code: check.NeighbourStale, setups: allSetups,
		do: func(b *bed) { b.neighbour("net2", 99, b.mac("net1"), "stale") },
	},
	{
		name: "peers with one MAC", code: check.NeighbourShared, setups: allSetups,
		do: func(b *bed) {
			b.peers("net2", 99, 98)
			b.neighbour("net2", 99, "02:00:00:00:00:99", "stale")
			b.neighbour("net2", 98, "02:00:00:00:00:99", "permanent")
		},
	},
	{
		name: "one neighbour, two MACs", code: check.NeighbourFlux, setups: "multus host dranet",
		do: func(b *bed) {
			b.neighbour("net1", 99, "02:00:00:00:00:99", "stale")
			b.neighbour("net2", 99, "02:00:00:00:00:98", "stale")
		},
	},

	// A DROP policy.
	{name: "policy DROP", code: check.FirewallDrops, setups: allSetups, do: script("iptables-nft -P INPUT DROP")},
	{name: "legacy policy DROP", code: check.FirewallDrops, setups: "multus host", do: script("iptables-legacy -P OUTPUT DROP")},
	{name: "raw table", code: check.FirewallDrops, setups: "multus", do: script("iptables-nft -t raw -A PREROUTING -i net+ -p udp -j DROP")},
	{name: "multi-networkpolicy", code: check.FirewallDrops, setups: "multus multus-subnets", do: script(multiNetworkPolicy)},
	{name: "IPv6 policy DROP", code: check.FirewallDropsND, setups: "host-ra dranet-ra multus-ra", do: script("ip6tables-nft -P INPUT DROP")},
	{
		name: "router advertisements blocked", code: check.FirewallDropsND, setups: "host-ra",
		do: script("ip6tables-nft -A INPUT -i net2 -p icmpv6 --icmpv6-type router-advertisement -j DROP"),
	},

	// A purged route, a second default.
	{
		name: "default route purged", code: check.RADefaultMissing, setups: "host-ra dranet-ra multus-ra",
		do: script("ip -6 route del default dev net2 proto ra"),
	},
	{
		name: "second default route", code: check.DefaultCompetes, setups: allSetups,
		do: func(b *bed) {
			b.sh(fmt.Sprintf("ip route del default; ip route add default via 169.254.1.1 dev eth0 metric 100; ip route add default via %s dev net2",
				b.near("net2", 254)))
		},
	},
	{
		name: "second IPv6 default route", code: check.DefaultCompetes, setups: "host-ra dranet-ra",
		do: func(b *bed) { // eth0's comes first: with the same metric a second one could not be added by hand
			b.sh("for i in 1 2 3; do ip -6 route del default dev net$i; done; ip -6 route add default via fe80::99 dev eth0 metric 1024")
			b.advertise()
		},
	},

	// Links and addresses.
	{
		name: "down", code: check.RailDown, setups: "host-subnets pod-sysctls", do: script("ip link set net2 down"),
		heal: func(b *bed) { b.settle() },
	},
	{
		name: "no carrier", code: check.NoCarrier, setups: "multus host-subnets", still: true,
		do: func(b *bed) { b.shIn(b.fabric.Switches, "ip link set A2 down") },
	},
	{
		name: "two rails, one MAC", code: check.MACConflict, setups: "host dranet", heal: func(b *bed) { b.settle() },
		do: func(b *bed) { b.sh("ip link set net2 address " + b.mac("net1")); b.settle() },
	},
	{
		name: "no address", code: check.AddressMissing, setups: "host-subnets pod-sysctls", still: true,
		do: script("ip addr flush dev net2 scope global"),
	},
	{
		name: "one address on two rails", code: check.AddressTwice, setups: "host-subnets pod-sysctls",
		do: script("ip addr add 10.61.1.11/32 dev net2"),
	},
	{name: "duplicate IPv6 address", code: check.DADFailed, setups: "multus host-subnets", do: func(b *bed) { b.failDAD() }},

	// Settings.
	{name: "proxy_arp", code: check.ProxyARP, setups: allSetups, do: script("echo 1 > /proc/sys/net/ipv4/conf/net2/proxy_arp")},
	{
		name: "default rp_filter", code: check.DefaultInherited, setups: "host dranet",
		do: script("echo 1 > /proc/sys/net/ipv4/conf/default/rp_filter"),
	},
	{
		name: "default accept_ra", code: check.DefaultInherited, setups: "host-ra dranet-ra",
		do: script("echo 0 > /proc/sys/net/ipv6/conf/default/accept_ra"),
	},
	{
		name: "arp_filter without rules", code: check.ARPDependsOnRoutes, setups: "host dranet",
		do: func(b *bed) { b.sh(noRules); b.set("ipv4/conf/IFNAME/arp_filter", "1") },
	},

	// Rules and routes.
	{
		name: "no address, and the node forwards", code: check.AddressMissing, setups: "host-subnets", still: true,
		do: script("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; ip addr flush dev net2 scope global"),
	},
	{
		name: "a rule with a destination before railtune's", code: check.ForeignRuleWins, setups: "multus",
		do: script("ip rule add priority 30 fwmark 7 lookup 7; ip rule add priority 31 from 10.61.10.2 lookup 8; " +
			"ip route add 10.61.0.0/16 dev net3 table 55; ip rule add priority 55 to 10.61.0.0/17 from 10.61.10.2 lookup 55"),
	},
	{
		name: "a rule that refuses before railtune's", code: check.ForeignRuleWins, setups: "multus",
		do: script("ip rule add priority 55 from 10.61.10.2 prohibit"),
	},
	{name: "orphans", code: check.Orphan, setups: "multus multus-subnets", do: script("ip link del net2")},
	{
		name: "rule deleted", code: check.RuleMissing, setups: "multus multus-subnets",
		do: script("ip rule del priority 720 from $(ip -4 -o addr show net2 | sed 's/.*inet //; s,/.*,,')"),
	},
	{
		name: "guard deleted", code: check.RuleMissing, setups: "multus",
		do: script("ip rule del priority 722 from 10.61.10.2"),
	},
	{
		name: "link flap", code: check.RouteMissing, setups: "multus", heal: func(b *bed) { b.settle() },
		do: func(b *bed) { b.sh("ip link set net2 down; ip link set net2 up"); b.settle() },
	},
	{name: "no source rules", code: check.SourceRuleMissing, setups: "host dranet", do: script(noRules)},
	{
		name: "rule to another rail's table", code: check.WrongWay, setups: "host dranet",
		do: script("ip rule add priority 50 from 10.61.10.2 lookup 101"),
	},
	{
		name: "private routes deleted", code: check.SupernetMissing, setups: "multus-subnets",
		do: script("t=$(ip rule show priority 721 | sed -n 's/.*oif net2 lookup \\([0-9]*\\).*/\\1/p'); " +
			"ip route del default table $t; ip route del 10.61.0.0/16 table $t"),
	},
	{
		name: "peer without route", code: check.PeerUnreachable, setups: "host-subnets",
		do: func(b *bed) {
			for _, r := range b.pod.Rails {
				b.sh(fmt.Sprintf("ip route add 10.62.%d.0/24 via %s dev %s", r.Index, r.Gateway, r.Name))
			}
			b.options.Peers = append(b.options.Peers, addr("10.63.0.1"))
		},
	},
	{
		name: "next hop is this pod", code: check.NextHopLoops, setups: "multus host host-subnets dranet pod-sysctls",
		do: func(b *bed) {
			b.sh(fmt.Sprintf("ip route add 10.99.0.0/16 via %s dev net2", b.rail("net2").Addr.Addr()))
		},
	},
	{
		name: "next hop has a rail's MAC", code: check.NextHopLoops, setups: "multus-subnets",
		do: func(b *bed) { b.neighbour("net2", 254, b.mac("net1"), "permanent") },
	},

	// Neighbours.
	{
		name: "gateway failed", code: check.GatewaySilent, setups: "multus-subnets",
		do: func(b *bed) { b.sh("ip neigh replace 10.61.2.254 dev net2 nud failed") },
	},
	{
		name: "asked: the entry is stale", code: check.NeighbourStale, setups: "multus host dranet",
		do: func(b *bed) {
			b.peerAnswers(99)
			b.neighbour("net2", 99, "02:00:00:00:00:99", "stale")
		},
	},
	{
		name: "asked: nobody answers", code: check.PeerSilent, setups: "host-subnets", still: true,
		do: func(b *bed) { b.peers("net2", 99); b.options.Probe = true },
	},
	{
		name: "asked: another station has the address", code: check.AddressConflict, setups: "multus host", still: true,
		do: func(b *bed) {
			b.shIn(b.fabric.Switches, "ip addr add 10.61.10.2/32 dev leafA")
			b.options.Probe = true
		},
	},
	{
		name: "asked: the gateway's MAC is a rail's", code: check.NeighbourFlux, setups: "multus-subnets", still: true,
		do: func(b *bed) { b.twoGateways("net2"); b.options.Probe = true },
	},
	{
		name: "more peers than the table holds", code: check.NeighbourFull, setups: "multus", still: true,
		do: func(b *bed) { b.manyPeers() },
	},
}

// noRules takes away the node's source rules.
const noRules = "for p in 1000 1001 1002; do ip rule del priority $p; done; "

// multiNetworkPolicy is what multi-networkpolicy-iptables writes for a policy that lets
// one address in on net2 (names, marks and order as its release 1.0 has them).
const multiNetworkPolicy = `
iptables-nft -N MULTI-INGRESS
iptables-nft -N MULTI-0-INGRESS
iptables-nft -N MULTI-0-INGRESS-0-PORTS
iptables-nft -N MULTI-0-INGRESS-0-FROM
iptables-nft -A INPUT -i net2 -j MULTI-INGRESS
iptables-nft -A MULTI-INGRESS -i net2 -m comment --comment "policy:rails net-attach-def:default/rail-2" -j MULTI-0-INGRESS
iptables-nft -A MULTI-0-INGRESS -j MARK --set-xmark 0x0/0x30000
iptables-nft -A MULTI-0-INGRESS -j MULTI-0-INGRESS-0-PORTS
iptables-nft -A MULTI-0-INGRESS -j MULTI-0-INGRESS-0-FROM
iptables-nft -A MULTI-0-INGRESS -m mark --mark 0x30000/0x30000 -j RETURN
iptables-nft -A MULTI-0-INGRESS -j DROP
iptables-nft -A MULTI-0-INGRESS-0-PORTS -m comment --comment "no ingress ports, skipped" -j MARK --set-xmark 0x10000/0x10000
iptables-nft -A MULTI-0-INGRESS-0-FROM -s 10.99.0.7/32 -i net2 -j MARK --set-xmark 0x20000/0x20000
`
