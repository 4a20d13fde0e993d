// Package prevresult reads the result of the plugins that ran before railtune in
// the chain, and prints it again with every field it had.
//
// The result is kept as the JSON it came as and only edited: fields that a newer
// specification adds, or that a plugin invents, pass through untouched
// (CNI SPEC.md, "Success": a chained plugin outputs prevResult with its changes).
package prevresult

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/railtune/railtune/pkg/cnierr"
)

// Interface is an entry of "interfaces". Sandbox is empty for one on the host.
type Interface struct {
	Name    string `json:"name"`
	Sandbox string `json:"sandbox"`
}

// IP is an address of the result.
type IP struct {
	// Address is unmasked: the interface's address with its prefix length.
	Address netip.Prefix
	// Gateway is the zero Addr where IPAM gave none.
	Gateway netip.Addr
}

// Route is a route of the result. Like the specification's, it names no interface.
type Route struct {
	Dst         netip.Prefix
	GW          netip.Addr
	MTU, AdvMSS uint32
	Priority    uint32
	// Elsewhere says the route is for another table than main, or for another
	// scope than the default (1.1.0): not a route to repeat in a private table.
	Elsewhere bool
}

// Result is a decoded prevResult.
type Result struct {
	raw        map[string]json.RawMessage
	cniVersion string
	ifaces     []Interface
	ips        []ipEntry
	// Routes are all routes of the result in their order.
	Routes []Route
}

type ipEntry struct {
	IP
	index *int
}

type wire struct {
	Interfaces []Interface `json:"interfaces"`
	IPs        []struct {
		Interface *int   `json:"interface"`
		Address   string `json:"address"`
		Gateway   string `json:"gateway"`
	} `json:"ips"`
	Routes []struct {
		Dst      string `json:"dst"`
		GW       string `json:"gw"`
		MTU      uint32 `json:"mtu"`
		AdvMSS   uint32 `json:"advmss"`
		Priority uint32 `json:"priority"`
		Table    *int   `json:"table"`
		Scope    *int   `json:"scope"`
	} `json:"routes"`
}

// Converter makes a result of one version of the specification one of another. That of
// package convert does it with the CNI library.
type Converter func(raw json.RawMessage, from, to string) (json.RawMessage, error)

// ErrOtherVersion says that a result would have to be converted and there is no Converter.
var ErrOtherVersion = errors.New("there is nothing to convert it with")

// Parse decodes raw, the value of "prevResult" in a configuration of version
// cniVersion. A result of another version goes through convert first, which may be nil.
// Errors carry the code Config and name the entry and the value.
func Parse(raw json.RawMessage, cniVersion string, convert Converter) (*Result, error) {
	if len(raw) == 0 {
		return nil, cnierr.New(cnierr.Config, "railtune must be chained: there is no prevResult; "+
			"put it after the plugin that makes the interface, in the same \"plugins\" list")
	}
	r := &Result{cniVersion: cniVersion}
	var w wire
	from := ""
	err := json.Unmarshal(raw, &r.raw)
	if version, ok := r.raw["cniVersion"]; ok && err == nil {
		err = json.Unmarshal(version, &from)
	}
	if err == nil && from != "" && from != cniVersion {
		if raw, err = converted(raw, from, cniVersion, convert); err != nil {
			return nil, err
		}
		r.raw = nil
		err = json.Unmarshal(raw, &r.raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	if err != nil {
		return nil, cnierr.New(cnierr.Config, "prevResult is not a CNI result: %w", err)
	}
	r.ifaces = w.Interfaces
	return r, r.decode(&w)
}

func converted(raw json.RawMessage, from, to string, convert Converter) (json.RawMessage, error) {
	err := ErrOtherVersion
	if convert != nil {
		raw, err = convert(raw, from, to)
	}
	if err != nil {
		return nil, cnierr.New(cnierr.Config, "prevResult has cniVersion %q, the configuration %q: %w", from, to, err)
	}
	return raw, nil
}

func (r *Result) decode(w *wire) error {
	for i, e := range w.IPs {
		addr, err := parsePrefix(e.Address)
		if err != nil {
			return cnierr.New(cnierr.Config, "prevResult.ips[%d].address: %w", i, err)
		}
		gw, err := parseGateway(e.Gateway)
		if err != nil {
			return cnierr.New(cnierr.Config, "prevResult.ips[%d].gateway: %w", i, err)
		}
		if e.Interface != nil && (*e.Interface < 0 || *e.Interface >= len(r.ifaces)) {
			return cnierr.New(cnierr.Config, "prevResult.ips[%d].interface is %d, but prevResult has %d interfaces",
				i, *e.Interface, len(r.ifaces))
		}
		r.ips = append(r.ips, ipEntry{IP: IP{Address: addr, Gateway: gw}, index: e.Interface})
	}
	for i, e := range w.Routes {
		dst, err := parsePrefix(e.Dst)
		if err != nil {
			return cnierr.New(cnierr.Config, "prevResult.routes[%d].dst: %w", i, err)
		}
		gw, err := parseGateway(e.GW)
		if err != nil {
			return cnierr.New(cnierr.Config, "prevResult.routes[%d].gw: %w", i, err)
		}
		r.Routes = append(r.Routes, Route{
			Dst: dst.Masked(), GW: gw, MTU: e.MTU, AdvMSS: e.AdvMSS, Priority: e.Priority,
			Elsewhere: e.Table != nil && *e.Table != 0 && *e.Table != 254 || e.Scope != nil && *e.Scope != 0,
		})
	}
	return nil
}

// Addresses returns, in order, the addresses that the result gives ifname in the
// container: those whose index names it, and those without an index. An entry of
// "interfaces" on the host never matches unless no entry has a sandbox.
func (r *Result) Addresses(ifname string) []IP {
	var out []IP
	for _, e := range r.ips {
		if e.index == nil || r.isOurs(r.ifaces[*e.index], ifname) {
			out = append(out, e.IP)
		}
	}
	return out
}

func (r *Result) isOurs(i Interface, ifname string) bool {
	if i.Name != ifname {
		return false
	}
	if i.Sandbox != "" {
		return true
	}
	for _, o := range r.ifaces {
		if o.Sandbox != "" {
			return false
		}
	}
	return true
}

// Marshal returns the result as JSON with the given routes appended. A route that
// is there already (same destination and gateway) is not repeated.
func (r *Result) Marshal(add []Route) ([]byte, error) {
	out := make(map[string]json.RawMessage, len(r.raw)+2)
	for k, v := range r.raw {
		out[k] = v
	}
	if err := set(out, "cniVersion", r.cniVersion); err != nil {
		return nil, err
	}
	var routes []json.RawMessage
	if raw, ok := r.raw["routes"]; ok {
		if err := json.Unmarshal(raw, &routes); err != nil {
			return nil, fmt.Errorf("prevResult.routes: %w", err)
		}
	}
	before := len(routes)
	for _, a := range add {
		if r.has(a) {
			continue
		}
		b, err := json.Marshal(struct {
			Dst string `json:"dst"`
			GW  string `json:"gw,omitempty"`
		}{a.Dst.String(), addrText(a.GW)})
		if err != nil {
			return nil, err
		}
		routes = append(routes, b)
	}
	if len(routes) > before {
		if err := set(out, "routes", routes); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

func (r *Result) has(a Route) bool {
	for _, have := range r.Routes {
		if have.Dst == a.Dst && have.GW == a.GW && !have.Elsewhere {
			return true
		}
	}
	return false
}

func set(m map[string]json.RawMessage, key string, v any) error {
	b, err := json.Marshal(v)
	m[key] = b
	return err
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// parsePrefix reads an address with its length. IPv4 in IPv6 clothing, which Go
// programs produce from 16-byte net.IP values, becomes IPv4: as IPv6 it would make
// rules of the wrong family.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not an address with a prefix length such as 10.61.1.11/24", s)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q is an IPv4 address with a prefix length below 96", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, nil
}

// parseGateway takes "" and the unspecified address for "none": IPAM plugins use both.
func parseGateway(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an address", s)
	}
	if a = a.Unmap(); a.IsUnspecified() {
		return netip.Addr{}, nil
	}
	return a, nil
}
