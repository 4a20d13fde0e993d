// Package generate writes what a set of rails needs where something else than a person
// should write it: network attachment definitions, SriovNetwork objects, conflists for
// cnitool, a sysctl.d file, DRANET claims, a pod with the two ARP values; and it turns
// attachments that use tuning and sbr into ones that use railtune.
//
// The same input gives the same bytes. What is generated for railtune is read back with
// pkg/config before it is printed, so it always decodes.
package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// The interface plugins that Rails.Plugin can name.
const (
	IPVLAN     = "ipvlan"
	MACVLAN    = "macvlan"
	HostDevice = "host-device"
	SRIOV      = "sriov"
)

// MaxRails bounds Rails.Count: more than any node has, and few enough to print.
const MaxRails = 256

// Rails describes a set of rails that are alike but for their number. Texts marked as
// patterns have %d where the number stands (see expand). It is also the form of the
// file that Load reads.
type Rails struct {
	Count     int    `yaml:"rails"`
	First     int    `yaml:"first"`     // the first rail's number
	Name      string `yaml:"name"`      // of the networks: a pattern
	Namespace string `yaml:"namespace"` // of the Kubernetes objects, "" for none
	Plugin    string `yaml:"plugin"`    // the interface plugin
	Parent    string `yaml:"parent"`    // the node's interface: a pattern
	MTU       int    `yaml:"mtu"`       // 0 to leave it to the plugin
	// Resource is the device plugin's name of the rail, with its prefix: a pattern.
	Resource   string `yaml:"resource"`
	CNIVersion string `yaml:"cniVersion"`

	// IPAM is a kind, or the JSON object itself: a pattern.
	IPAM any `yaml:"ipam"`
	// Pool is nv-ipam's pool, Address static's: patterns. Subnet is whereabouts' and
	// host-local's, one for each family, with commas between: a pattern.
	Pool    string `yaml:"pool"`
	Address string `yaml:"address"`
	Subnet  string `yaml:"subnet"`
	// Gateway is the rail's router, one for each family at most: a pattern.
	Gateway string `yaml:"gateway"`
	// Supernets are prefixes that cover all rails, with commas between.
	Supernets string `yaml:"supernets"`

	// Interface holds more fields for the interface plugin, or for the spec of a
	// SriovNetwork; Chain the plugins between it and railtune; Railtune railtune's own
	// fields. All are JSON, or in a file YAML, and patterns.
	Interface any `yaml:"interface"`
	Chain     any `yaml:"chain"`
	Railtune  any `yaml:"railtune"`

	// DeviceClass is DRANET's.
	DeviceClass string `yaml:"deviceClass"`
}

// Default is 16 rails rdma0 … rdma15 with ipvlan.
func Default() Rails {
	return Rails{
		Count: 16, Name: "rail-%d", Plugin: IPVLAN, Parent: "rdma%d", CNIVersion: "1.0.0", IPAM: "none", DeviceClass: "dra.net",
	}
}

// Load reads a file in YAML over the defaults. A field that is not one is an error.
func Load(text []byte) (Rails, error) {
	r := Default()
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict(), yaml.UseOrderedMap())
	if err := dec.Decode(&r); err != nil && !errors.Is(err, io.EOF) {
		return r, errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	return r, nil
}

// cniVersions are those that know prevResult and that railtune speaks.
var cniVersions = []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// rail is one of them, every pattern expanded.
type rail struct {
	name, parent, resource string
	pool                   string
	address                []netip.Prefix
	subnets                []netip.Prefix
	gateways               []netip.Addr
}

// each expands the patterns for every rail.
func (r Rails) each() ([]rail, error) {
	if r.Count < 1 || r.Count > MaxRails || r.First < 0 || r.First > 1e6 {
		return nil, fmt.Errorf("%d rails from number %d on: give 1 to %d, from 0 on", r.Count, r.First, MaxRails)
	}
	if !slices.Contains(cniVersions, r.CNIVersion) {
		return nil, fmt.Errorf("cniVersion %q: a chain with railtune has one of %s", r.CNIVersion, strings.Join(cniVersions, ", "))
	}
	for _, p := range [][2]string{{"name", r.Name}, {"parent", r.Parent}} {
		what, pattern := p[0], p[1]
		if r.Count > 1 && !numbered(pattern) {
			if _, err := expand(pattern, 0); err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			return nil, fmt.Errorf("%s %q is the same for all %d rails; put %%d where the rail's number belongs", what, pattern, r.Count)
		}
	}
	all := make([]rail, r.Count)
	for i := range all {
		var err error
		if all[i], err = r.number(r.First + i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r Rails) number(n int) (out rail, err error) {
	text := func(what, pattern string) string {
		s, e := expand(pattern, n)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w", what, e)
		}
		return s
	}
	out.name, out.parent, out.resource, out.pool = text("name", r.Name), text("parent", r.Parent), text("resource", r.Resource), text("pool", r.Pool)
	address, subnet, gateway := text("address", r.Address), text("subnet", r.Subnet), text("gateway", r.Gateway)
	if err != nil {
		return out, err
	}
	if err := errors.Join(checkName(out.name), checkInterface(out.parent)); err != nil {
		return out, err
	}
	if out.address, err = prefixes("address", address); err != nil {
		return out, err
	}
	if out.subnets, err = prefixes("subnet", subnet); err != nil {
		return out, err
	}
	for _, p := range out.subnets {
		if p != p.Masked() {
			return out, fmt.Errorf("subnet %s has bits set beyond its length; give %s", p, p.Masked())
		}
	}
	if out.gateways, err = addresses("gateway", gateway); err != nil {
		return out, err
	}
	return out, out.check()
}

// check looks for a gateway that is in none of the rail's prefixes, or is the rail.
func (r rail) check() error {
	own := slices.Concat(r.address, r.subnets)
	for _, gw := range r.gateways {
		if gw.IsLinkLocalUnicast() {
			continue
		}
		near := false
		for _, p := range own {
			near = near || p.Contains(gw)
		}
		if len(own) > 0 && !near {
			return fmt.Errorf("gateway %s of %s is in none of its prefixes %v, so it is on another link", gw, r.name, own)
		}
		for _, p := range r.address {
			if p.Addr() == gw {
				return fmt.Errorf("gateway %s of %s is the rail's own address", gw, r.name)
			}
		}
	}
	return nil
}

// gateway is the one of a family, or invalid.
func (r rail) gateway(like netip.Addr) netip.Addr {
	for _, gw := range r.gateways {
		if gw.Is4() == like.Is4() {
			return gw
		}
	}
	return netip.Addr{}
}

func prefixes(what, list string) (all []netip.Prefix, err error) {
	for s := range words(list) {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%s %q is no prefix; give one such as 10.61.0.0/16", what, s)
		}
		all = append(all, p)
	}
	return all, oneOfEach(what, list, all, func(p netip.Prefix) bool { return p.Addr().Is4() })
}

func addresses(what, list string) (all []netip.Addr, err error) {
	for s := range words(list) {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return nil, fmt.Errorf("%s %q is no address; give one such as 10.61.0.1", what, s)
		}
		all = append(all, a)
	}
	return all, oneOfEach(what, list, all, netip.Addr.Is4)
}

// oneOfEach refuses two of one family.
func oneOfEach[T any](what, list string, all []T, is4 func(T) bool) error {
	if len(all) > 2 || len(all) == 2 && is4(all[0]) == is4(all[1]) {
		return fmt.Errorf("%s %q: a rail has one for each address family", what, list)
	}
	return nil
}

// words are the parts between commas.
func words(list string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for s := range strings.SplitSeq(list, ",") {
			if s = strings.TrimSpace(s); s != "" && !yield(s) {
				return
			}
		}
	}
}

// checkName takes the names Kubernetes takes for most objects (RFC 1123 subdomains).
func checkName(name string) error {
	ok := name != "" && len(name) <= 253
	for label := range strings.SplitSeq(name, ".") {
		ok = ok && label != "" && !strings.HasPrefix(label, "-") && !strings.HasSuffix(label, "-") &&
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	}
	if !ok {
		return fmt.Errorf("%q is no name for a Kubernetes object; use a-z, 0-9, dashes and dots", name)
	}
	return nil
}

// checkInterface takes the names the kernel takes (net/core/dev.c, dev_valid_name),
// without those that mean something else in /proc/sys or in a pattern.
func checkInterface(name string) error {
	if name == "" || len(name) > 15 || name == "." || name == ".." || name == "all" || name == "default" ||
		strings.ContainsAny(name, "/:*?[]{}'\"\\") || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return fmt.Errorf("%q is no interface's name: 1 to 15 characters without blanks, quotes, slashes and colons", name)
	}
	return nil
}
