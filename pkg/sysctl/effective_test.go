package sysctl

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// fakeFiles holds settings by path, for combinations that would need a kernel
// of their own and for refused writes.
type fakeFiles struct {
	values map[string]string
	deny   error                 // what every write fails with
	kept   func(v string) string // what the kernel makes of a written value
	writes int
}

func (f *fakeFiles) Read(path string) (string, error) {
	v, ok := f.values[path]
	if !ok {
		return "", &fs.PathError{Op: "open", Path: "/proc/sys/" + path, Err: unix.ENOENT}
	}
	return v, nil
}

func (f *fakeFiles) Write(path, value string) error {
	f.writes++
	if f.deny != nil {
		return &fs.PathError{Op: "open", Path: "/proc/sys/" + path, Err: f.deny}
	}
	if f.kept != nil {
		value = f.kept(value)
	}
	f.values[path] = value
	return nil
}

func (f *fakeFiles) Exists(path string) bool { _, ok := f.values[path]; return ok }

// fakeConf is conf/all and conf/net1 of one setting.
func fakeConf(k Key, all, own string) *fakeFiles {
	return &fakeFiles{values: map[string]string{k.Path("all"): all, k.Path("net1"): own}}
}

func TestEffective(t *testing.T) {
	for _, c := range []struct {
		key, all, own string
		want          string
		rule          string
	}{
		{"net.ipv4.conf.IFNAME.arp_ignore", "0", "1", "1", "maximum of conf/all and conf/net1"},
		{"net.ipv4.conf.IFNAME.arp_ignore", "8", "1", "8", "maximum"},
		{"net.ipv4.conf.IFNAME.arp_announce", "2", "0", "2", "maximum"},
		{"net.ipv4.conf.IFNAME.rp_filter", "1", "0", "1", "maximum"}, // RT-57
		{"net.ipv4.conf.IFNAME.rp_filter", "1", "2", "2", "maximum"},
		{"net.ipv4.conf.IFNAME.arp_accept", "2", "1", "2", "maximum"},
		{"net.ipv4.conf.IFNAME.arp_filter", "1", "0", "1", "on where conf/all or conf/net1 is on"}, // RT-01
		{"net.ipv4.conf.IFNAME.arp_filter", "0", "1", "1", "or"},
		{"net.ipv4.conf.IFNAME.arp_filter", "0", "0", "0", "or"},
		{"net.ipv4.conf.IFNAME.arp_filter", "5", "0", "1", "or"},
		{"net.ipv4.conf.IFNAME.accept_source_route", "0", "1", "0", "on where both conf/all and conf/net1 are on"},
		{"net.ipv4.conf.IFNAME.accept_source_route", "1", "0", "0", "both"},
		{"net.ipv4.conf.IFNAME.accept_source_route", "1", "1", "1", "both"},
		{"net.ipv4.conf.IFNAME.arp_evict_nocarrier", "0", "1", "0", "both"},
		{"net.ipv4.conf.IFNAME.force_igmp_version", "2", "0", "2", "lowest"},
		{"net.ipv4.conf.IFNAME.force_igmp_version", "3", "1", "1", "lowest"},
		{"net.ipv4.conf.IFNAME.force_igmp_version", "1", "2", "1", "lowest"},
		{"net.ipv4.conf.IFNAME.force_igmp_version", "0", "2", "2", "lowest"},
		{"net.ipv4.conf.IFNAME.forwarding", "1", "0", "0", "conf/net1 alone"},
		{"net.ipv6.conf.IFNAME.accept_dad", "2", "1", "2", "maximum"},
		{"net.ipv6.conf.IFNAME.forwarding", "1", "0", "0", "alone"},
		{"net.ipv6.conf.IFNAME.accept_ra", "2", "1", "1", "alone"},
		{"net.ipv6.conf.IFNAME.accept_redirects", "1", "0", "0", "alone"},
		{"net.ipv6.conf.IFNAME.disable_ipv6", "1", "0", "0", "alone"},
		{"net.ipv6.conf.IFNAME.ndisc_notify", "1", "0", "1", "or"},
		{"net.ipv6.conf.IFNAME.accept_source_route", "0", "1", "0", "minimum"},
		{"net.ipv6.conf.IFNAME.accept_source_route", "0", "-1", "-1", "minimum"},
		{"net.ipv6.conf.IFNAME.keep_addr_on_down", "-1", "1", "-1", "conf/all unless it is 0, then conf/net1"},
		{"net.ipv6.conf.IFNAME.keep_addr_on_down", "0", "1", "1", "unless"},
		{"net.ipv4.neigh.IFNAME.ucast_solicit", "9", "3", "3", "neigh/net1 alone"},
		{"net.ipv4.conf.IFNAME.from_a_newer_kernel", "9", "3", "3", "not known"},
	} {
		k, err := ParseKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Effective(fakeConf(k, c.all, c.own), k, "net1")
		if err != nil {
			t.Errorf("%s: %v", c.key, err)
			continue
		}
		if v.Effective != c.want || v.File != c.own || v.Key != k || v.Overridden != (c.want != c.own) || !strings.Contains(v.Rule, c.rule) {
			t.Errorf("%s all=%s net1=%s: %+v; want %s by %q", c.key, c.all, c.own, v, c.want, c.rule)
		}
		if alone := strings.Contains(v.Rule, "alone"); alone != (v.All == "") || !alone && v.All != c.all {
			t.Errorf("%s: All = %q under the rule %q", c.key, v.All, v.Rule)
		}
	}
}

func TestEffectiveRedirects(t *testing.T) {
	k, fwd := Key{IPv4, Conf, "accept_redirects"}, Forwarding4
	for _, c := range []struct{ forwarding, all, own, want, rule string }{
		{"0", "1", "0", "1", "or conf/net1 is on, since net1 does not forward"},
		{"0", "0", "1", "1", "or"},
		{"1", "1", "0", "0", "both conf/all and conf/net1 are on, since net1 forwards"},
		{"1", "0", "1", "0", "both"},
		{"1", "1", "1", "1", "both"},
	} {
		f := fakeConf(k, c.all, c.own)
		maps.Copy(f.values, map[string]string{fwd.Path("all"): "7", fwd.Path("net1"): c.forwarding})
		v, err := Effective(f, k, "net1")
		if err != nil || v.Effective != c.want || !strings.Contains(v.Rule, c.rule) {
			t.Errorf("forwarding=%s all=%s net1=%s: %+v, %v; want %s by %q", c.forwarding, c.all, c.own, v, err, c.want, c.rule)
		}
	}
	if _, err := Effective(fakeConf(k, "1", "0"), k, "net1"); cnierr.CodeOf(err, 0) != cnierr.Sysctl || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a forwarding file: %v", err)
	}
}

func TestEffectiveErrors(t *testing.T) {
	gone := fakeConf(ARPIgnore, "0", "1")
	delete(gone.values, ARPIgnore.Path("all"))
	for _, c := range []struct {
		name, ifname string
		f            *fakeFiles
		say          string
	}{
		{"no such interface", "net2", fakeConf(ARPIgnore, "0", "1"), "/proc/sys/net/ipv4/conf/net2/arp_ignore: no such file"},
		{"no conf/all", "net1", gone, "/proc/sys/net/ipv4/conf/all/arp_ignore"},
		{"not a number", "net1", fakeConf(ARPIgnore, "0", "x"), `"x"`},
		{"all", "all", fakeConf(ARPIgnore, "0", "1"), "not one interface"},
		{"path", "../all", fakeConf(ARPIgnore, "0", "1"), "not an interface"},
	} {
		_, err := Effective(c.f, ARPIgnore, c.ifname)
		if cnierr.CodeOf(err, 0) != cnierr.Sysctl || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v; want code %d and %q", c.name, err, cnierr.Sysctl, c.say)
		}
	}
}
