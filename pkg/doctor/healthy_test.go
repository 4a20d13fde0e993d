package doctor_test

import (
	"fmt"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestNoFalseAlarm: what people have on healthy nodes and pods besides, and what looks
// wrong and is not. Each script is run on a healthy setup, which stays clean.
func TestNoFalseAlarm(t *testing.T) {
	for _, c := range []struct {
		name   string
		setups []string
		do     func(b *bed)
	}{
		{"OCI template: conf/all values, later rails inherit them", []string{"multus", "multus-subnets"}, script(
			"cd /proc/sys/net/ipv4/conf/all; echo 1 > arp_ignore; echo 2 > arp_announce; echo 1 > arp_filter; echo 1 > accept_local")},
		{"loose rp_filter everywhere", []string{"multus", "host", "host-subnets", "pod-sysctls"}, script(
			"cd /proc/sys/net/ipv4/conf; for d in *; do echo 2 > $d/rp_filter; done")},
		{"strict rp_filter with source rules", []string{"multus", "host"}, func(b *bed) { b.set("ipv4/conf/IFNAME/rp_filter", "1") }},
		{"strict rp_filter, a subnet each", []string{"host-subnets", "pod-sysctls"}, script(
			"echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter; echo 1 > /proc/sys/net/ipv4/conf/default/rp_filter")},
		{"arp_ignore 2", []string{"multus", "host"}, func(b *bed) { b.set("ipv4/conf/IFNAME/arp_ignore", "2") }},
		{"a CNI's own rules", []string{"multus", "multus-subnets", "host-subnets"}, script(
			"ip rule add priority 512 to 172.20.0.5 lookup main; ip rule add priority 1000 lookup 500; " +
				"ip rule add priority 1536 from 172.20.0.5 lookup 2; ip rule add priority 32000 from 10.61.9.9 lookup 1153; " +
				"ip rule add priority 9 fwmark 0x200/0xf00 lookup 2004; ip rule add priority 100 lookup local")},
		{"sbr after railtune: its rules come first and lead the same way", []string{"multus"}, script(
			"for i in 1 2 3; do ip route add 10.61.0.0/16 dev net$i table 10$i; ip rule add from 10.61.10.$i table 10$i; done")},
		{"route-override flushed main", []string{"multus", "multus-subnets"}, script(
			"for i in 1 2 3; do ip route flush dev net$i table main; done")},
		{"a default route on a rail with a higher metric", []string{"multus-subnets", "host-subnets"}, script(
			"for i in 1 2 3; do ip route add default via 10.61.$i.254 dev net$i metric 20$i; done")},
		{"permanent neighbours", []string{"dranet", "multus"}, func(b *bed) {
			b.neighbour("net1", 99, "02:00:00:00:00:99", "permanent")
			b.neighbour("net2", 99, "02:00:00:00:00:99", "permanent")
		}},
		{"a neighbour on two addresses of one NIC", []string{"multus", "host"}, func(b *bed) {
			b.neighbour("net1", 99, "02:00:00:00:00:99", "stale")
			b.neighbour("net1", 98, "02:00:00:00:00:99", "stale")
		}},
		{"siblings know each other", []string{"multus", "host"}, func(b *bed) {
			b.sh("ip neigh replace 10.61.10.1 dev net2 lladdr " + b.mac("net1") + " nud stale")
		}},
		{"a rail that arrives later, where conf/all has the values", []string{"pod-sysctls"}, func(b *bed) { b.move("net2") }},
		{"advertised default routes not wanted", []string{"dranet-ra"}, func(b *bed) {
			b.set("ipv6/conf/IFNAME/accept_ra_defrtr", "0")
			b.sh("for i in 1 2 3; do ip -6 route del default dev net$i; done")
		}},
		{"IPv6 off", []string{"multus", "host-subnets"}, script("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")},
		{"forwarding, IPv4 rails", []string{"multus", "host-subnets", "pod-sysctls"}, script(
			"echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; echo 1 > /proc/sys/net/ipv4/ip_forward")},
		{"a jumbo MTU and one too small for IPv6", []string{"multus", "host-subnets"}, script(
			"ip link set net1 mtu 9000; ip link set net2 mtu 1000")},
		{"iptables of a node", []string{"host", "host-ra", "pod-sysctls"}, script(nodeFirewall)},
		{"a policy that lets the rails' subnet in", []string{"multus"}, script(
			"iptables-nft -P INPUT DROP; iptables-nft -A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT; iptables-nft -A INPUT -s 10.61.0.0/16 -i net+ -j ACCEPT")},
		{"iptables listed by hand before", []string{"multus"}, script("iptables-legacy -S; ip6tables-legacy -t raw -S; iptables-nft -A INPUT -j ACCEPT")},
		{"a second address on a rail, with a host prefix", []string{"host-subnets", "pod-sysctls"}, script("ip addr add 10.200.0.7/32 dev net2")},
		{"no default route at all", []string{"multus", "host-subnets"}, script("ip route del default")},
		{"other interfaces of every state", []string{"multus", "host-subnets"}, script(
			"ip link add va type veth peer name vb; ip link set va up; ip link add br0 type bridge; ip addr add 192.168.7.1/24 dev br0")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range c.setups {
				t.Run(name, func(t *testing.T) {
					b := setupNamed(t, name)
					c.do(b)
					b.mustBeClean()
				})
			}
		})
	}
}

// nodeFirewall is what a Kubernetes node has, reduced to what could match a rail.
const nodeFirewall = `
for ipt in iptables-nft ip6tables-nft; do
$ipt -N KUBE-FIREWALL; $ipt -N cali-INPUT; $ipt -N cali-wl
$ipt -A INPUT -m conntrack --ctstate INVALID -j DROP
$ipt -A INPUT -j cali-INPUT
$ipt -A INPUT -j KUBE-FIREWALL
$ipt -A cali-INPUT -i cali+ -g cali-wl
$ipt -A cali-INPUT -m mark --mark 0x10000/0x10000 -j ACCEPT
$ipt -A cali-wl -j DROP
$ipt -A KUBE-FIREWALL -m comment --comment "dropping marked packets -j DROP" -m mark --mark 0x8000/0x8000 -j DROP
$ipt -P FORWARD DROP
done
iptables-nft -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
iptables-nft -A INPUT -i eth0 -p tcp --dport 10250 -j DROP
`

// TestDualStack: static addresses of both families, each with a gateway or none, on rails
// of railtune's, and the same after the IPv6 half has lost a rule.
func TestDualStack(t *testing.T) {
	t.Parallel()
	b := newBed(t, testbed.PerRail)
	for i, r := range b.pod.Rails {
		six := fmt.Sprintf("fd5a:%d::11/64", i+1)
		b.sh("ip -6 addr add " + six + " dev " + r.Name + " nodad")
		ips := fmt.Sprintf(`{"interface":0,"address":%q,"gateway":%q},{"interface":0,"address":%q,"gateway":"fd5a:%d::1"},{"interface":0,"address":%q}`,
			r.Addr, r.Gateway, six, i+1, fmt.Sprintf("10.65.%d.1/31", i))
		b.sh(fmt.Sprintf("ip addr add 10.65.%d.1/31 dev %s", i, r.Name))
		if err := b.pod.SettleAddresses(r.Name, addr(fmt.Sprintf("fd5a:%d::11", i+1))); err != nil {
			t.Fatal(err)
		}
		b.add(r.Name, ips, "10.56.0.0/13", "fd5a::/16")
	}
	b.mustBeClean()
	for _, breakage := range []string{
		"ip -6 rule del priority 720 from fd5a:2::11",
		"ip -6 rule del priority 722 from fd5a:2::11",
		"ip rule del priority 720 from 10.65.1.1",
	} {
		b.sh(breakage)
		b.mend(b.mustFind("rule-missing"))
		b.mustBeClean()
	}
	b.sh("ip addr del 10.65.1.1/31 dev net2")
	b.mend(b.mustFind("orphan"))
	b.mustBeClean()
}
