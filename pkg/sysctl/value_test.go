package sysctl

import (
	"strings"
	"testing"
)

func TestCheckValue(t *testing.T) {
	for _, c := range []struct {
		key  string
		good string // separated by commas
		bad  string
	}{
		{"net.ipv4.conf.IFNAME.arp_ignore", "0,1,2,3,8", "4,7,9,-1"},
		{"net.ipv4.conf.IFNAME.arp_announce", "0,1,2", "3,-1"},
		{"net.ipv4.conf.IFNAME.rp_filter", "0,1,2", "3"},
		{"net.ipv4.conf.IFNAME.arp_accept", "0,1,2", "3"},
		{"net.ipv4.conf.IFNAME.arp_notify", "0,1", "2"},
		{"net.ipv4.conf.IFNAME.arp_filter", "0,1", "2,true,yes,on"},
		{"net.ipv4.conf.IFNAME.mc_forwarding", "", "0,1"},
		{"net.ipv4.neigh.IFNAME.retrans_time_ms", "0,250,1000", "-1,2147483648,1.5,1s"},
		{"net.ipv6.conf.IFNAME.accept_ra", "0,1,2", "3,-1,auto"}, // auto is the configuration's word, not the kernel's
		{"net.ipv6.conf.IFNAME.accept_dad", "-1,0,1,2", "-2,3"},
		{"net.ipv6.conf.IFNAME.addr_gen_mode", "0,1,2,3", "4,-1"},
		{"net.ipv6.conf.IFNAME.use_tempaddr", "-1,0,1,2", "-2,3"},
		{"net.ipv6.conf.IFNAME.disable_ipv6", "0,1", "2"},
		{"net.ipv6.conf.IFNAME.mtu", "1280,9000", "1279,0"},
		{"net.ipv6.conf.IFNAME.hop_limit", "1,255", "0,256"},
		{"net.ipv6.conf.IFNAME.ra_defrtr_metric", "1,4294967295", "0,4294967296"},
		{"net.ipv6.conf.IFNAME.stable_secret", "", "2001:db8::1"},
		{"net.ipv4.conf.IFNAME.from_a_newer_kernel", "0,-7,some words,2001:db8::1", ""},
	} {
		k, err := ParseKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range fields(c.good) {
			if err := k.CheckValue(v); err != nil {
				t.Errorf("%s=%s: %v", c.key, v, err)
			}
		}
		for _, v := range fields(c.bad) {
			if err := k.CheckValue(v); err == nil {
				t.Errorf("%s=%s is accepted", c.key, v)
			} else if !strings.Contains(err.Error(), k.Leaf) {
				t.Errorf("%s=%s: the message does not name the setting: %v", c.key, v, err)
			}
		}
		// RT-53, for every setting: the kernel takes an empty write as success.
		for _, v := range []string{"", " ", " 1", "1 ", "1\n", "\t1", "1\n2", "1\x00", strings.Repeat("1", 300)} {
			if err := k.CheckValue(v); err == nil {
				t.Errorf("%s=%.20q is accepted", c.key, v)
			}
		}
	}
	for _, v := range []string{"+1", "01", "0x1", "-0", "1e0", "1.0", "١"} {
		if err := ARPIgnore.CheckValue(v); err == nil {
			t.Errorf("arp_ignore=%s is accepted; the kernel prints it differently", v)
		}
	}
}

func fields(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func TestCheckValueSaysWhatIsRight(t *testing.T) {
	for _, c := range []struct {
		k      Key
		v, say string
	}{
		{ARPIgnore, "5", `arp_ignore takes 0 to 3 or 8, not "5"`},
		{ARPFilter, "2", `arp_filter takes 0 or 1, not "2"`},
		{ARPAnnounce, "9", `arp_announce takes an integer from 0 to 2, not "9"`},
		{ARPIgnore, " 1", `give "1"`},
		{ARPIgnore, "", "blank"},
	} {
		if err := c.k.CheckValue(c.v); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v=%q: %v; want it to say %q", c.k, c.v, err, c.say)
		}
	}
}

func TestAcceptable(t *testing.T) {
	ms, tick := Key{IPv4, Neigh, "retrans_time_ms"}, Key{IPv4, Neigh, "locktime"}
	tick6, plain6 := Key{IPv6, Neigh, "locktime"}, Key{IPv6, Neigh, "retrans_time"}
	for _, c := range []struct {
		k               Key
		want, effective string
		ok              bool
	}{
		{ARPIgnore, "1", "1", true},
		{ARPIgnore, "1", "2", true}, // RT-56: 1 with one more condition
		{ARPIgnore, "1", "0", false},
		{ARPIgnore, "1", "3", false},
		{ARPIgnore, "1", "8", false},
		{ARPIgnore, "2", "1", false},
		{ARPIgnore, "0", "1", false},
		{ARPAnnounce, "2", "2", true},
		{ARPAnnounce, "1", "2", false},
		{RPFilter, "0", "1", false}, // RT-57
		{ms, "1001", "1004", true},  // rounded up to a jiffy at HZ=250
		{ms, "1", "10", true},       // at HZ=100
		{ms, "1001", "1011", false},
		{ms, "1001", "1000", false},
		{ms, "0", "4", false},
		{tick, "33", "32", true}, // rounded down at HZ=250
		{tick, "33", "31", false},
		{tick, "33", "34", false},
		{tick, "0", "-1", false},
		{tick6, "33", "32", true},
		{plain6, "33", "32", false}, // an exception in the kernel
		{Key{IPv4, Conf, "new_text"}, "some words", "some words", true},
		{Key{IPv4, Conf, "new_text"}, "some words", "words", false},
		{Key{IPv4, Conf, "new_text"}, "1", "2", false},
	} {
		if got := Acceptable(c.k, c.want, c.effective); got != c.ok {
			t.Errorf("Acceptable(%v, %q, %q) = %v", c.k, c.want, c.effective, got)
		}
	}
}

func TestSameSetting(t *testing.T) {
	key := func(f Family, leaf string) Key { return Key{f, Neigh, leaf} }
	for _, c := range []struct {
		a, b Key
		want bool
	}{
		{key(IPv4, "retrans_time"), key(IPv4, "retrans_time_ms"), true},
		{key(IPv6, "base_reachable_time_ms"), key(IPv6, "base_reachable_time"), true},
		{key(IPv4, "unres_qlen"), key(IPv4, "unres_qlen_bytes"), true},
		{key(IPv4, "retrans_time"), key(IPv6, "retrans_time_ms"), false},
		{key(IPv4, "ucast_solicit"), key(IPv4, "mcast_solicit"), false},
		{Key{IPv4, Conf, "a"}, Key{IPv4, Conf, "a_ms"}, false},
	} {
		if got := SameSetting(c.a, c.b); got != c.want {
			t.Errorf("SameSetting(%v, %v) = %v", c.a, c.b, got)
		}
	}
}
