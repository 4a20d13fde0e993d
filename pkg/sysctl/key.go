// Package sysctl reads, judges and sets the kernel's per-interface network
// settings, the files below /proc/sys/net/{ipv4,ipv6}/{conf,neigh}/IFNAME.
//
// What counts is the effective value: for many IPv4 settings the kernel
// combines the interface's file with conf/all (see Effective), so a file that
// holds the right value is no proof, and one that cannot be written is no
// failure where the effective value is right already.
package sysctl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/railtune/railtune/pkg/config/spell"
)

// Family is the address family a setting belongs to, as spelled in /proc/sys/net.
type Family string

// Tree is the directory of per-interface settings, as spelled in /proc/sys/net/FAMILY.
type Tree string

// The families and trees a Key can name.
const (
	IPv4  Family = "ipv4"
	IPv6  Family = "ipv6"
	Conf  Tree   = "conf"
	Neigh Tree   = "neigh"
)

// IfName stands for the interface's name in a written key, as in the tuning
// plugin's configuration.
const IfName = "IFNAME"

// Key is one per-interface setting, without the interface.
type Key struct {
	Family Family
	Tree   Tree
	Leaf   string // the file's name, [a-z0-9_]+
}

// Settings that railtune itself reads or sets.
var (
	ARPIgnore   = Key{IPv4, Conf, "arp_ignore"}
	ARPAnnounce = Key{IPv4, Conf, "arp_announce"}
	ARPFilter   = Key{IPv4, Conf, "arp_filter"}
	RPFilter    = Key{IPv4, Conf, "rp_filter"}
	AcceptRA    = Key{IPv6, Conf, "accept_ra"}
	Forwarding4 = Key{IPv4, Conf, "forwarding"}
	Forwarding6 = Key{IPv6, Conf, "forwarding"}
	DisableIPv6 = Key{IPv6, Conf, "disable_ipv6"}
)

// String returns the key as it is written in a configuration: net.ipv4.conf.IFNAME.arp_ignore.
func (k Key) String() string {
	return "net." + string(k.Family) + "." + string(k.Tree) + "." + IfName + "." + k.Leaf
}

// For returns the key of one interface as `sysctl -w` takes it. Where the
// interface's name has a dot that is the form with slashes, since sysctl would
// split the other one inside the name.
func (k Key) For(ifname string) string {
	if strings.Contains(ifname, ".") {
		return k.Path(ifname)
	}
	return "net." + string(k.Family) + "." + string(k.Tree) + "." + ifname + "." + k.Leaf
}

// Path returns the interface's file, relative to /proc/sys. Dots in the name stay.
func (k Key) Path(ifname string) string {
	return "net/" + string(k.Family) + "/" + string(k.Tree) + "/" + ifname + "/" + k.Leaf
}

// ParseKey reads net.{ipv4,ipv6}.{conf,neigh}.IFNAME.<leaf> with IFNAME written
// literally. Everything else is refused with the reason and, where it can be
// told, what would be right; whether the kernel has the setting is for
// Files.Exists to say.
func ParseKey(s string) (Key, error) {
	if s == "" {
		return Key{}, errors.New("the key is empty; " + keyForm)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }); i >= 0 {
		return Key{}, fmt.Errorf("%s has a blank or a character no key has; %s", quote(s), keyForm)
	}
	if strings.Contains(s, "/") {
		if k, err := ParseKey(strings.ReplaceAll(s, "/", ".")); err == nil {
			return Key{}, fmt.Errorf("%s is written with slashes; give %s", quote(s), k)
		}
		return Key{}, fmt.Errorf("%s has a slash; %s", quote(s), keyForm)
	}
	parts := strings.Split(s, ".")
	if len(parts) < 5 || parts[0] != "net" {
		return Key{}, fmt.Errorf("%s is not a setting of one interface; %s", quote(s), keyForm)
	}
	k := Key{Family(parts[1]), Tree(parts[2]), parts[len(parts)-1]}
	ifname := strings.Join(parts[3:len(parts)-1], ".")
	switch {
	case k.Family != IPv4 && k.Family != IPv6, k.Tree != Conf && k.Tree != Neigh:
		return Key{}, fmt.Errorf("%s is not a setting of one interface; %s", quote(s), keyForm)
	case k.Leaf == "":
		return Key{}, fmt.Errorf("%s names no setting; %s", quote(s), keyForm)
	case strings.Trim(k.Leaf, leafChars) != "":
		return Key{}, fmt.Errorf("%s: no kernel setting is called %s; their names have a-z, 0-9 and _ only", quote(s), quote(k.Leaf))
	}
	return k, checkPlaceholder(s, ifname, k)
}

const (
	keyForm   = "give net.{ipv4,ipv6}.{conf,neigh}.IFNAME.<setting>, such as net.ipv4.conf.IFNAME.arp_ignore"
	leafChars = "abcdefghijklmnopqrstuvwxyz0123456789_"
)

// checkPlaceholder tells why something else than IFNAME stands in its place.
func checkPlaceholder(s, ifname string, k Key) error {
	switch ifname {
	case IfName:
		return nil
	case "all":
		return fmt.Errorf("%s would change every interface of the pod; give %s", quote(s), k)
	case "default":
		return fmt.Errorf("%s changes only interfaces that come later; give %s", quote(s), k)
	}
	return fmt.Errorf("%s names %s, but only the interface this plugin is called for may change; write IFNAME literally: %s", quote(s), quote(ifname), k)
}

// checkInterface refuses names under which the files of something else than
// one interface would be reached. The kernel gives no interface such a name.
func checkInterface(ifname string) error {
	switch {
	case ifname == "", ifname == ".", ifname == "..", strings.ContainsAny(ifname, "/\x00"):
		return fmt.Errorf("%s is not an interface's name", quote(ifname))
	case ifname == "all", ifname == "default":
		return fmt.Errorf("%s is not one interface: it stands for many", quote(ifname))
	}
	return nil
}

// Suggest returns the setting k probably means where k is none that is known:
// the same name in the other family or tree, or the nearest spelling.
func (k Key) Suggest() (Key, bool) {
	if k.known() != nil {
		return Key{}, false
	}
	for _, f := range []Family{k.Family, IPv4, IPv6} {
		for _, t := range []Tree{Conf, Neigh} {
			if other := (Key{f, t, k.Leaf}); other.known() != nil {
				return other, true
			}
		}
	}
	for _, t := range []Tree{k.Tree, Conf, Neigh} {
		var names []string
		for _, s := range settings(k.Family, t) {
			names = append(names, s.leaf)
		}
		if near := spell.Nearest(k.Leaf, names); near != "" {
			return Key{k.Family, t, near}, true
		}
	}
	return Key{}, false
}

// quote makes s safe for one line of a message: quoted, escaped, at most 80 bytes of it.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q…", s[:80])
	}
	return fmt.Sprintf("%q", s)
}
