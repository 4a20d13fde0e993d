package sysctl

import "math"

// rule is how the kernel makes one effective value of conf/all and the
// interface's own file.
type rule int

const (
	alone           rule = iota // the interface's file; a write to all copies or does nothing
	maximum                     // the larger of the two
	minimum                     // the smaller of the two
	either                      // on where one of the two is
	both                        // on where both are
	acceptRedirects             // both where the interface forwards, else either
	allFirst                    // conf/all where it is not 0
	lowestSet                   // the smaller of those that are not 0
)

// unit is how a value comes back from the kernel, which keeps some times in
// jiffies and rounds what is written.
type unit int

const (
	exact    unit = iota
	millis        // milliseconds, rounded up to a jiffy of at most 10 ms
	ticks         // 1/100 s (USER_HZ), rounded down by at most 1 where HZ is not a multiple of 100
	readOnly      // mode 0444
	secret        // cannot be read back before it was set once, nor unset
)

// setting is what is known of one leaf. min to max, and also where that is not
// 0, are the values with a meaning; the kernel itself takes any int for most.
type setting struct {
	leaf     string
	min, max int64
	also     int64
	rule     rule
	unit     unit
}

const (
	maxInt  = math.MaxInt32
	maxUint = math.MaxUint32
)

// ipv4Conf: meanings and ranges from Documentation/networking/ip-sysctl.rst,
// combination from the IN_DEV_ macros in include/linux/inetdevice.h, except
// for force_igmp_version (IGMP_V1_SEEN, IGMP_V2_SEEN in net/ipv4/igmp.c).
var ipv4Conf = []setting{
	{leaf: "accept_local", max: 1, rule: either},
	{leaf: "accept_redirects", max: 1, rule: acceptRedirects},
	{leaf: "accept_source_route", max: 1, rule: both},
	{leaf: "arp_accept", max: 2, rule: maximum},
	{leaf: "arp_announce", max: 2, rule: maximum},
	{leaf: "arp_evict_nocarrier", max: 1, rule: both},
	{leaf: "arp_filter", max: 1, rule: either},
	{leaf: "arp_ignore", max: 3, also: 8, rule: maximum}, // 4–7 are reserved and mean 0
	{leaf: "arp_notify", max: 1, rule: maximum},
	{leaf: "bc_forwarding", max: 1, rule: both},
	{leaf: "bootp_relay", max: 1, rule: both},
	{leaf: "disable_policy", max: 1, rule: either},
	{leaf: "disable_xfrm", max: 1, rule: either},
	{leaf: "drop_gratuitous_arp", max: 1, rule: either},
	{leaf: "drop_unicast_in_l2_multicast", max: 1, rule: either},
	{leaf: "force_igmp_version", max: 3, rule: lowestSet},
	{leaf: "forwarding", max: 1},
	{leaf: "igmpv2_unsolicited_report_interval", max: maxInt},
	{leaf: "igmpv3_unsolicited_report_interval", max: maxInt},
	{leaf: "ignore_routes_with_linkdown", max: 1, rule: either},
	{leaf: "log_martians", max: 1, rule: either},
	{leaf: "mc_forwarding", max: 1, rule: both, unit: readOnly},
	{leaf: "medium_id", min: -1, max: maxInt},
	{leaf: "promote_secondaries", max: 1, rule: either},
	{leaf: "proxy_arp", max: 1, rule: either},
	{leaf: "proxy_arp_pvlan", max: 1, rule: either},
	{leaf: "route_localnet", max: 1, rule: either},
	{leaf: "rp_filter", max: 2, rule: maximum},
	{leaf: "secure_redirects", max: 1, rule: either},
	{leaf: "send_redirects", max: 1, rule: either},
	{leaf: "shared_media", max: 1, rule: either},
	{leaf: "src_valid_mark", max: 1, rule: either},
	{leaf: "tag", min: math.MinInt32, max: maxInt},
}

// ipv6Conf: meanings and ranges from ip-sysctl.rst and the addrconf_sysctl
// table in net/ipv6/addrconf.c. IPv6 uses the interface alone, except where
// devconf_all is read beside it: accept_dad, keep_addr_on_down, optimistic_dad
// and use_optimistic (addrconf.c), ndisc_notify and ndisc_evict_nocarrier and
// proxy_ndp (ndisc.c), force_mld_version (mcast.c), disable_policy (route.c),
// accept_source_route, seg6_enabled and rpl_seg_enabled (exthdrs.c).
var ipv6Conf = []setting{
	{leaf: "accept_dad", min: -1, max: 2, rule: maximum},
	{leaf: "accept_ra", max: 2},
	{leaf: "accept_ra_defrtr", max: 1},
	{leaf: "accept_ra_from_local", max: 1},
	{leaf: "accept_ra_min_hop_limit", max: 255},
	{leaf: "accept_ra_min_lft", max: maxInt},
	{leaf: "accept_ra_mtu", max: 1},
	{leaf: "accept_ra_pinfo", max: 1},
	{leaf: "accept_ra_rt_info_max_plen", min: -1, max: 128},
	{leaf: "accept_ra_rt_info_min_plen", min: -1, max: 128},
	{leaf: "accept_ra_rtr_pref", max: 1},
	{leaf: "accept_redirects", max: 1},
	{leaf: "accept_source_route", min: -1, max: 1, rule: minimum},
	{leaf: "accept_untracked_na", max: 2},
	{leaf: "addr_gen_mode", max: 3},
	{leaf: "autoconf", max: 1},
	{leaf: "dad_transmits", max: maxInt},
	{leaf: "disable_ipv6", max: 1},
	{leaf: "disable_policy", max: 1, rule: either},
	{leaf: "drop_unicast_in_l2_multicast", max: 1},
	{leaf: "drop_unsolicited_na", max: 1},
	{leaf: "enhanced_dad", max: 1},
	{leaf: "force_forwarding", max: 1},
	{leaf: "force_mld_version", max: 2, rule: allFirst},
	{leaf: "force_tllao", max: 1},
	{leaf: "forwarding", max: 1},
	{leaf: "hop_limit", min: 1, max: 255},
	{leaf: "ignore_routes_with_linkdown", max: 1},
	{leaf: "ioam6_enabled", max: 1},
	{leaf: "ioam6_id", max: math.MaxUint16},
	{leaf: "ioam6_id_wide", max: maxUint},
	{leaf: "keep_addr_on_down", min: -1, max: 1, rule: allFirst},
	{leaf: "max_addresses", max: maxInt},
	{leaf: "max_desync_factor", max: maxInt},
	{leaf: "mc_forwarding", max: 1, unit: readOnly},
	{leaf: "mldv1_unsolicited_report_interval", max: maxInt, unit: millis},
	{leaf: "mldv2_unsolicited_report_interval", max: maxInt, unit: millis},
	{leaf: "mtu", min: 1280, max: math.MaxUint16 + 1}, // up to the link's own; loopback has 65536
	{leaf: "ndisc_evict_nocarrier", max: 1, rule: both},
	{leaf: "ndisc_notify", max: 1, rule: either},
	{leaf: "ndisc_tclass", max: 255},
	{leaf: "optimistic_dad", max: 1, rule: either},
	{leaf: "proxy_ndp", max: 1, rule: either},
	{leaf: "ra_defrtr_metric", min: 1, max: maxUint},
	{leaf: "ra_honor_pio_life", max: 1},
	{leaf: "ra_honor_pio_pflag", max: 1},
	{leaf: "regen_max_retry", max: maxInt},
	{leaf: "regen_min_advance", max: maxInt},
	{leaf: "router_probe_interval", max: maxInt},
	{leaf: "router_solicitation_delay", max: maxInt},
	{leaf: "router_solicitation_interval", max: maxInt},
	{leaf: "router_solicitation_max_interval", max: maxInt},
	{leaf: "router_solicitations", min: -1, max: maxInt}, // -1: without end
	{leaf: "rpl_seg_enabled", max: 1, rule: minimum},
	{leaf: "seg6_enabled", max: 1, rule: minimum},
	{leaf: "seg6_require_hmac", min: -1, max: 1},
	{leaf: "stable_secret", unit: secret},
	{leaf: "suppress_frag_ndisc", max: 1},
	{leaf: "temp_prefered_lft", max: maxInt},
	{leaf: "temp_valid_lft", max: maxInt},
	{leaf: "use_oif_addrs_only", max: 1},
	{leaf: "use_optimistic", max: 1, rule: either},
	{leaf: "use_tempaddr", min: -1, max: 2},
}

// neighBoth: neigh_sysctl_template in net/core/neighbour.c. There is no
// neigh/all, so the interface's file stands alone.
var neighBoth = []setting{
	{leaf: "anycast_delay", max: maxInt, unit: ticks},
	{leaf: "app_solicit", max: maxInt},
	{leaf: "base_reachable_time", max: maxInt},
	{leaf: "base_reachable_time_ms", max: maxInt, unit: millis},
	{leaf: "delay_first_probe_time", max: maxInt},
	{leaf: "gc_stale_time", max: maxInt},
	{leaf: "interval_probe_time_ms", min: 1, max: maxInt, unit: millis},
	{leaf: "locktime", max: maxInt, unit: ticks},
	{leaf: "mcast_resolicit", max: maxInt},
	{leaf: "mcast_solicit", max: maxInt},
	{leaf: "proxy_delay", max: maxInt, unit: ticks},
	{leaf: "proxy_qlen", max: maxInt},
	{leaf: "retrans_time", max: maxInt, unit: ticks},
	{leaf: "retrans_time_ms", max: maxInt, unit: millis},
	{leaf: "ucast_solicit", max: maxInt},
	{leaf: "unres_qlen", max: maxInt},
	{leaf: "unres_qlen_bytes", max: maxInt},
}

func settings(f Family, t Tree) []setting {
	switch {
	case t == Neigh:
		return neighBoth
	case f == IPv4:
		return ipv4Conf
	case f == IPv6:
		return ipv6Conf
	}
	return nil
}

// known returns what the tables hold for k, or nil: the kernel may be newer
// than they are.
func (k Key) known() *setting {
	list := settings(k.Family, k.Tree)
	for i := range list {
		if list[i].leaf == k.Leaf {
			return &list[i]
		}
	}
	return nil
}
