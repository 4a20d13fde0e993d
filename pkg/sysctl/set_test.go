package sysctl

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

func TestSetFake(t *testing.T) {
	cut := func(string) string { return "0" } // a daemon that fights back
	for _, c := range []struct {
		name     string
		k        Key
		all, own string
		deny     error
		kept     func(string) string
		value    string
		changed  bool
		writes   int
		now, say string // say: what the error says; "" for none
	}{
		{name: "already right", k: ARPIgnore, all: "0", own: "1", value: "1", now: "1"},
		{name: "changed", k: ARPIgnore, all: "0", own: "0", value: "1", changed: true, writes: 1, now: "1"},
		{name: "file differs, all does not: still written", k: ARPIgnore, all: "1", own: "0", value: "1", changed: true, writes: 1, now: "1"},
		{name: "RT-46 read-only, file right", k: ARPAnnounce, all: "0", own: "2", value: "2", deny: unix.EROFS, now: "2"},
		{name: "RT-46 read-only, all makes it right", k: ARPAnnounce, all: "2", own: "0", value: "2", deny: unix.EROFS, writes: 1, now: "0"},
		{name: "RT-46 read-only, wrong", k: ARPAnnounce, all: "0", own: "0", value: "2", deny: unix.EROFS, writes: 1, now: "0", say: "net.ipv4.conf.net1.arp_announce is 0 and must be 2: open /proc/sys/net/ipv4/conf/net1/arp_announce: read-only file system; give the plugin a writable /proc/sys, or set it before: sysctl -w net.ipv4.conf.net1.arp_announce=2"},
		{name: "no capability, stricter arp_ignore", k: ARPIgnore, all: "2", own: "0", value: "1", deny: unix.EPERM, writes: 1, now: "0"},
		{name: "no capability, arp_ignore 8", k: ARPIgnore, all: "8", own: "0", value: "1", deny: unix.EACCES, writes: 1, now: "0", say: "is 0 (effectively 8: maximum of conf/all and conf/net1) and must be 1"},
		{name: "RT-57 cannot be lowered below all", k: RPFilter, all: "1", own: "0", value: "0", now: "0"},
		{name: "refused value", k: ARPIgnore, all: "1", own: "0", value: "1", deny: unix.EINVAL, writes: 1, now: "0", say: "invalid argument; the kernel does not take this value"},
		{name: "other failure", k: ARPIgnore, all: "1", own: "0", value: "1", deny: unix.EIO, writes: 1, now: "0", say: "input/output error; the kernel's log"},
		{name: "not kept", k: ARPIgnore, all: "0", own: "2", value: "1", kept: cut, changed: true, writes: 1, now: "0", say: `(/proc/sys/net/ipv4/conf/net1/arp_ignore) was set to 1 but holds "0"`},
		{name: "not kept at all", k: ARPIgnore, all: "0", own: "0", value: "1", kept: cut, writes: 1, now: "0", say: `but holds "0"`},
		{name: "empty write", k: ARPIgnore, all: "0", own: "0", value: "", kept: cut, writes: 1, now: "0", say: "was set to"},
	} {
		f := fakeConf(c.k, c.all, c.own)
		f.deny, f.kept = c.deny, c.kept
		old, changed, err := Set(f, c.k, "net1", c.value)
		now := f.values[c.k.Path("net1")]
		if old != c.own || changed != c.changed || f.writes != c.writes || now != c.now {
			t.Errorf("%s: old %q, changed %v, %d writes, now %q, err %v", c.name, old, changed, f.writes, now, err)
		}
		if (err != nil) != (c.say != "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v; want %q", c.name, err, c.say)
		}
		if err != nil && cnierr.CodeOf(err, 0) != cnierr.Sysctl || c.say != "" && c.deny != nil && !errors.Is(err, c.deny) {
			t.Errorf("%s: code %d, wraps %v: %v", c.name, cnierr.CodeOf(err, 0), c.deny, err)
		}
		if f.values[c.k.Path("all")] != c.all {
			t.Errorf("%s: conf/all was changed", c.name)
		}
	}
}

// RT-51: what the kernel does not have is a mistake in the configuration.
func TestSetMissing(t *testing.T) {
	for _, c := range []struct {
		k   Key
		say string
	}{
		{Key{IPv4, Conf, "accept_ra"}, "did you mean net.ipv6.conf.IFNAME.accept_ra?"},
		{Key{IPv4, Conf, "arp_ignroe"}, "did you mean net.ipv4.conf.IFNAME.arp_ignore?"},
		{AcceptRA, "the interface has no ipv6"},
		{Key{IPv4, Conf, "something_new"}, "/proc/sys/net/ipv4/conf/net1"},
	} {
		_, changed, err := Set(&fakeFiles{}, c.k, "net1", "1")
		if changed || cnierr.CodeOf(err, 0) != cnierr.Config || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v: %v; want %q", c.k, err, c.say)
		}
		if err := Missing(c.k, "net1", nil); !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "nil") {
			t.Errorf("%v: %v; want %q", c.k, err, c.say)
		}
	}
}

func TestSetRefusesInterface(t *testing.T) {
	for _, ifname := range []string{"", "all", "default", ".", "..", "a/b", "net1\x00"} {
		f := fakeConf(ARPIgnore, "0", "0")
		f.values[ARPIgnore.Path(ifname)] = "0"
		if _, changed, err := Set(f, ARPIgnore, ifname, "1"); err == nil || changed || f.writes != 0 {
			t.Errorf("%q: err %v, %d writes", ifname, err, f.writes)
		}
	}
}
