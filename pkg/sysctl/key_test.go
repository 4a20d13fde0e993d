package sysctl

import (
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Key
	}{
		{"net.ipv4.conf.IFNAME.arp_ignore", ARPIgnore},
		{"net.ipv6.conf.IFNAME.accept_ra", AcceptRA},
		{"net.ipv4.neigh.IFNAME.retrans_time_ms", Key{IPv4, Neigh, "retrans_time_ms"}},
		{"net.ipv6.neigh.IFNAME.locktime", Key{IPv6, Neigh, "locktime"}},
		{"net.ipv4.conf.IFNAME.arp_ignroe", Key{IPv4, Conf, "arp_ignroe"}}, // existence is the kernel's to judge
		{"net.ipv6.conf.IFNAME.drop_unicast_in_l2_multicast", Key{IPv6, Conf, "drop_unicast_in_l2_multicast"}},
	} {
		got, err := ParseKey(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseKey(%q) = %v, %v; want %v", c.in, got, err, c.want)
		}
		if got.String() != c.in {
			t.Errorf("String() = %q, want %q", got.String(), c.in)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for _, c := range []struct{ in, say string }{
		{"", "empty"},
		{"net.ipv4.conf.all.rp_filter", "every interface of the pod; give net.ipv4.conf.IFNAME.rp_filter"},
		{"net.ipv4.conf.default.rp_filter", "come later; give net.ipv4.conf.IFNAME.rp_filter"},
		{"net.ipv4.conf.net1.rp_filter", "IFNAME literally: net.ipv4.conf.IFNAME.rp_filter"},
		{"net.ipv4.conf.rail0.100.rp_filter", `names "rail0.100"`},
		{"net.ipv4.conf.ifname.rp_filter", "IFNAME literally"},
		{"net.ipv4.conf..rp_filter", `names ""`},
		{"net.core.somaxconn", "not a setting of one interface"},
		{"net.core.conf.IFNAME.x", "not a setting of one interface"},
		{"net.ipv4.ip_forward", "not a setting of one interface"},
		{"net.ipv4.route.IFNAME.x", "not a setting of one interface"},
		{"kernel.ipv4.conf.IFNAME.x", "not a setting of one interface"},
		{"ipv4.conf.IFNAME.arp_ignore", "not a setting of one interface"},
		{"NET.ipv4.conf.IFNAME.arp_ignore", "not a setting of one interface"},
		{"net.ipv4.conf.IFNAME", "not a setting of one interface"},
		{"net.ipv4.conf.IFNAME.", "names no setting"},
		{"net.ipv4.conf.IFNAME.ARP_IGNORE", "a-z, 0-9 and _"},
		{"net.ipv4.conf.IFNAME.arp-ignore", "a-z, 0-9 and _"},
		{"net.ipv4.conf.IFNAME.x.arp_ignore", `names "IFNAME.x"`},
		{"net.ipv4.conf.IFNAME...", "names no setting"},
		{"net.ipv4.conf.IFNAME.../../x", "slash"},
		{"net.ipv4.conf.IFNAME./x", "slash"},
		{"net/ipv4/conf/IFNAME/arp_ignore", "with slashes; give net.ipv4.conf.IFNAME.arp_ignore"},
		{"net.ipv4.conf.IFNAME.arp_ignore ", "blank"},
		{" net.ipv4.conf.IFNAME.arp_ignore", "blank"},
		{"net.ipv4.conf.IFNAME.arp_ignore\n", "blank"},
		{"net.ipv4.conf.IFNAME.arp_ignore\x00", "blank"},
		{"net.ipv4.conf.IFNAME.arp_ignoré", "no key has"},
		{"net.ipv4.conf.IFNAME." + strings.Repeat("-", 1<<16), "…"},
	} {
		_, err := ParseKey(c.in)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("ParseKey(%.60q): %v; want it to say %q", c.in, err, c.say)
		}
		if err != nil && (len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00")) {
			t.Errorf("ParseKey(%.60q): the message is no short line: %.600q", c.in, err)
		}
	}
}

// RT-24: the dots of an interface's name are not separators.
func TestNamesWithDots(t *testing.T) {
	for _, c := range []struct{ ifname, path, sysctl string }{
		{"net1", "net/ipv4/conf/net1/arp_ignore", "net.ipv4.conf.net1.arp_ignore"},
		{"rail0.100", "net/ipv4/conf/rail0.100/arp_ignore", "net/ipv4/conf/rail0.100/arp_ignore"},
		{"gpu-rail-15-vf1", "net/ipv4/conf/gpu-rail-15-vf1/arp_ignore", "net.ipv4.conf.gpu-rail-15-vf1.arp_ignore"},
	} {
		if got := ARPIgnore.Path(c.ifname); got != c.path {
			t.Errorf("Path(%q) = %q, want %q", c.ifname, got, c.path)
		}
		if got := ARPIgnore.For(c.ifname); got != c.sysctl {
			t.Errorf("For(%q) = %q, want %q", c.ifname, got, c.sysctl)
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		k    Key
		want string
	}{
		{Key{IPv4, Conf, "accept_ra"}, "net.ipv6.conf.IFNAME.accept_ra"},                      // RT-51
		{Key{IPv4, Conf, "arp_ignroe"}, "net.ipv4.conf.IFNAME.arp_ignore"},                    // RT-51
		{Key{IPv4, Conf, "retrans_time_ms"}, "net.ipv4.neigh.IFNAME.retrans_time_ms"},         // the other tree
		{Key{IPv6, Conf, "base_reachable_tims"}, "net.ipv6.neigh.IFNAME.base_reachable_time"}, // both at once
		{Key{IPv6, Neigh, "hop_limitt"}, "net.ipv6.conf.IFNAME.hop_limit"},                    // misspelled, wrong tree
		{Key{IPv6, Conf, "temp_preferred_lft"}, "net.ipv6.conf.IFNAME.temp_prefered_lft"},     // the kernel's own spelling
		{Key{IPv4, Conf, "something_new"}, ""},
		{ARPIgnore, ""},
	} {
		got, ok := c.k.Suggest()
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%v: Suggest() = %v, %v; want %q", c.k, got, ok, c.want)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{
		"net.ipv4.conf.IFNAME.arp_ignore", "net.ipv6.neigh.IFNAME.locktime", "net/ipv4/conf/IFNAME/x",
		"net.ipv4.conf.all.rp_filter", "net.ipv4.conf.rail0.100.x", "net.ipv4.conf.IFNAME.../../x", "net.ipv4.conf.IFNAME.\xff", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseKey(s)
		if err != nil {
			if m := err.Error(); strings.ContainsFunc(m, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(m) > 2000 {
				t.Fatalf("the message is no short printable line: %q", m)
			}
			return
		}
		if k.String() != s {
			t.Fatalf("%q comes back as %q", s, k)
		}
		path := k.Path("net1")
		if strings.Count(path, "/") != 4 || strings.Contains(path, "..") || !strings.Contains(path, "/net1/") {
			t.Fatalf("%q leads to %q", s, path)
		}
		if other, ok := k.Suggest(); ok && (other.known() == nil || k.known() != nil) {
			t.Fatalf("%v: useless suggestion %v", k, other)
		}
	})
}
