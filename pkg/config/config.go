// Package config reads railtune's network configuration from stdin.
//
// A typo is never a silent no-op: unknown fields, fields spelled in another
// case, duplicate keys and values of a wrong type or range are errors that name
// the field's path, what was found and what would be right. All of them are
// reported at once, before anything is changed.
package config

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/sysctl"
)

// What Verify.Mode, Verify.PeerMode and Verify.GID can be.
const (
	Enforce = "enforce" // a finding fails the ADD
	Warn    = "warn"    // a finding is reported, the ADD succeeds
	Off     = "off"     // nothing is looked at; not for PeerMode
)

// AutoAcceptRA, the value "auto" of net.ipv6.conf.IFNAME.accept_ra, becomes 2
// where the interface forwards, or lives by router advertisements and may forward
// later; elsewhere the setting is left alone.
const AutoAcceptRA = "auto"

// Defaults and limits of the numbers in a configuration.
const (
	DefaultRulePriority = 720
	// MaxRulePriority leaves room for the device and guard rules, at +1 and +2,
	// before the rule for table main at 32766.
	MaxRulePriority = 32763
	// FirstDerivedTable is where the tables derived from interface indexes
	// begin: 7200000 + ifindex, and further groups above that.
	FirstDerivedTable = 7200000
	DefaultTimeout    = 500 * time.Millisecond
	MaxTimeout        = 30 * time.Second
	MaxPeers          = 256
)

// Config is a network configuration with every default filled in.
type Config struct {
	CNIVersion, Name, Type string

	// Sysctl are the settings to make, sorted by key, each key once: the
	// defaults that were not dropped, overlaid with the user's.
	Sysctl []Sysctl
	// Table is the private routing table, 0 where it is to be derived.
	Table int
	// RulePriority is the source rules' preference; the device rules' is one
	// more, the guard rules' two more.
	RulePriority int
	// Supernets are the prefixes that cover all rails, in the user's order.
	Supernets []Supernet
	// MainTable asks for the supernets in table main too.
	MainTable bool
	// Announce asks for a gratuitous ARP or unsolicited NA at the end.
	Announce bool
	Verify   Verify
	Firewall Firewall
	// LogFile is an absolute path, or "" for none.
	LogFile string
	// LogLevel is debug, info, warn or error.
	LogLevel string
	// Notes say what was taken otherwise than it was written.
	Notes []string
	// PrevResult holds the bytes of prevResult, nil where it is absent or null.
	PrevResult json.RawMessage
}

// Sysctl is one setting of the interface.
type Sysctl struct {
	Key     sysctl.Key
	Value   string // a value Key.CheckValue accepts, or AutoAcceptRA
	Default bool   // railtune's own, not asked for by the user
}

// Supernet is a prefix that covers all rails, reached through a rail's gateway.
type Supernet struct {
	Dst netip.Prefix // without host bits
	GW  netip.Addr   // of Dst's family; zero where it is to be found
}

// Verify says what to prove about the rail's neighbours.
type Verify struct {
	Mode string // Enforce, Warn or Off
	// Peers are further addresses on this rail, each of a different NIC, each
	// once, in the user's order, at most MaxPeers.
	Peers    []netip.Addr
	PeerMode string // Enforce or Warn
	// AnycastMACs may answer for several addresses; each once, 6 or 20 bytes.
	AnycastMACs  []hwaddr.MAC
	RequireReply bool          // silence is a failure too
	Timeout      time.Duration // above 0, at most MaxTimeout
	// GID is about the RoCE v2 GIDs of the rail's addresses: Enforce, Warn or Off.
	GID string
}

// Default returns what `{"type":"railtune"}` means, apart from Type.
func Default() *Config {
	return &Config{
		Sysctl:       defaultSysctl(),
		RulePriority: DefaultRulePriority,
		MainTable:    true,
		Announce:     true,
		Verify:       Verify{Mode: Enforce, PeerMode: Warn, Timeout: DefaultTimeout, GID: Warn},
		LogLevel:     "info",
	}
}

// defaultSysctl is sorted by key, as Config.Sysctl is.
func defaultSysctl() []Sysctl {
	return []Sysctl{
		{Key: sysctl.ARPAnnounce, Value: "2", Default: true},
		{Key: sysctl.ARPIgnore, Value: "1", Default: true},
		{Key: sysctl.AcceptRA, Value: AutoAcceptRA, Default: true},
	}
}

// Parse reads a configuration for ADD and CHECK. What is no JSON object is an
// error with code cnierr.Decode; anything else that is wrong has code
// cnierr.Config, the first finding in the message and, where there are several,
// all of them in Details, one a line.
func Parse(stdin []byte) (*Config, error) {
	c := Default()
	var r report
	if err := c.decode(stdin, &r); err != nil {
		return nil, err
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// ParseLenient reads a configuration for DEL, which must work with whatever is
// left of it: Multus sends {"cniVersion","ipam":{},"name","type"} at times. It
// takes what Parse would take, and the default for the rest. It never fails,
// and returns nothing that Parse would refuse.
func ParseLenient(stdin []byte) *Config {
	c := Default()
	var r report
	_ = c.decode(stdin, &r) // the findings are ADD's to report
	return c
}

// ownFields are the fields with a meaning here, in the order of the design.
var ownFields = []string{
	"sysctl", "table", "rulePriority", "supernets", "mainTable", "announce", "verify", "firewall", "logFile", "logLevel",
	"cniVersion", "name", "type", "prevResult",
}

// foreignFields are put into a plugin's object by others and mean nothing here:
// by the CNI specification's list and plugin keys, by libcni, by Multus
// (deviceID, pciBusID, args) and by the SR-IOV operator (resourceName).
var foreignFields = []string{
	"cniVersions", "capabilities", "runtimeConfig", "args", "dns", "ipam", "disableCheck", "disableGC",
	"loadOnlyInlinedPlugins", "deviceID", "pciBusID", "resourceName",
}

// decode fills c from stdin, noting in r what it does not take. An error means
// that stdin is not a JSON object.
func (c *Config) decode(stdin []byte, r *report) error {
	if err := syntax(stdin); err != nil {
		return err
	}
	for _, m := range (node{raw: stdin}).members() {
		switch {
		case isForeign(m.name):
		case !slices.Contains(ownFields, m.name):
			r.unknown(m, ownFields, "railtune")
		case m.repeated:
			r.add("%s is given twice; give it once", m.path)
		case m.kind() != null: // null means the same as absence
			c.field(m, r)
		}
	}
	c.Notes = r.notes
	return nil
}

func isForeign(name string) bool {
	return slices.Contains(foreignFields, name) || strings.HasPrefix(name, "cni.dev/")
}

// field takes one of ownFields.
func (c *Config) field(m member, r *report) {
	switch m.name {
	case "cniVersion":
		m.text(r, &c.CNIVersion)
	case "name":
		m.text(r, &c.Name)
	case "type":
		m.text(r, &c.Type)
	case "prevResult":
		if m.want(r, object, "the previous plugin's result") {
			c.PrevResult = json.RawMessage(m.raw)
		}
	case "sysctl":
		c.sysctl(m.node, r)
	case "table":
		c.table(m.node, r)
	case "rulePriority":
		c.rulePriority(m.node, r)
	case "supernets":
		c.supernets(m.node, r)
	case "mainTable":
		m.flag(r, &c.MainTable)
	case "announce":
		m.flag(r, &c.Announce)
	case "verify":
		c.Verify.decode(m.node, r)
	case "firewall":
		c.Firewall.decode(m.node, r)
	case "logFile":
		c.logFile(m.node, r)
	case "logLevel":
		m.oneOf(r, &c.LogLevel, "debug", "info", "warn", "error")
	}
}
