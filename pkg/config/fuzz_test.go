package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/sysctl"
)

func FuzzParse(f *testing.F) {
	for _, c := range refused {
		f.Add([]byte(whole(c.conf)))
	}
	for _, s := range []string{
		"", "{", "[]", `{"type":"railtune"}`, `{"cniVersion":"","ipam":{},"name":"rail-0","type":"railtune"}`,
		`{"supernets":[{"dst":"10.60.0.0/14","gw":"10.61.0.1"},{"dst":"fd5a::/16","gw":"fe80::1"}],"prevResult":{"ips":[]}}`,
		`{"verify":{"peers":["10.9.0.0/24","fd5a::/124"],"anycastMACs":["00:00:5e:00:01:01"],"timeout":"30s"},"table":7199999}`,
		`{"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":8,"net.ipv6.conf.IFNAME.accept_ra":"auto"},"rulePriority":32763}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stdin []byte) {
		lenient := ParseLenient(stdin)
		check(t, lenient)
		c, err := Parse(stdin)
		if err == nil {
			check(t, c)
			if !reflect.DeepEqual(c, lenient) {
				t.Fatalf("ADD and DEL read it differently:\n%+v\n%+v", c, lenient)
			}
			return
		}
		e, ok := err.(*cnierr.Error)
		if !ok || e.Code != cnierr.Config && e.Code != cnierr.Decode {
			t.Fatalf("%T %v", err, err)
		}
		for _, line := range append(strings.Split(e.Details, "\n"), e.Error()) {
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(line) > 4000 {
				t.Fatalf("no short printable line: %q", line)
			}
		}
	})
}

// check asserts what pkg/plan and others rely on.
func check(t *testing.T, c *Config) {
	t.Helper()
	if c.Table < 0 || c.Table >= FirstDerivedTable || c.Table >= 253 && c.Table <= 255 {
		t.Fatalf("table %d", c.Table)
	}
	if c.RulePriority < 1 || c.RulePriority > MaxRulePriority {
		t.Fatalf("rulePriority %d", c.RulePriority)
	}
	for i, s := range c.Sysctl {
		if i > 0 && c.Sysctl[i-1].Key.String() >= s.Key.String() {
			t.Fatalf("%v is out of order or there twice", s.Key)
		}
		if k, err := sysctl.ParseKey(s.Key.String()); err != nil || k != s.Key {
			t.Fatalf("%v: %v", s.Key, err)
		}
		if err := s.Key.CheckValue(s.Value); err != nil && (s.Key != sysctl.AcceptRA || s.Value != AutoAcceptRA) {
			t.Fatalf("%v=%q: %v", s.Key, s.Value, err)
		}
	}
	for i, s := range c.Supernets {
		if !s.Dst.IsValid() || s.Dst != s.Dst.Masked() || s.Dst.Bits() == 0 || s.Dst.Addr().Is4In6() ||
			slices.ContainsFunc(c.Supernets[:i], func(o Supernet) bool { return o.Dst == s.Dst }) {
			t.Fatalf("supernet %v", s)
		}
		if s.GW.IsValid() && (s.GW.Is4() != s.Dst.Addr().Is4() || s.GW.Is4In6() || s.GW.Zone() != "" || s.GW.IsUnspecified() || s.GW.IsMulticast() || s.GW.IsLoopback()) {
			t.Fatalf("gateway %v", s)
		}
	}
	v := c.Verify
	if !slices.Contains([]string{Enforce, Warn, Off}, v.Mode) || !slices.Contains([]string{Enforce, Warn, Off}, v.GID) || !slices.Contains([]string{Enforce, Warn}, v.PeerMode) || v.Timeout <= 0 || v.Timeout > MaxTimeout || len(v.Peers) > MaxPeers {
		t.Fatalf("verify %+v", v)
	}
	for i, p := range v.Peers {
		if !p.IsValid() || p.Is4In6() || p.Zone() != "" || p.IsUnspecified() || p.IsMulticast() || slices.Contains(v.Peers[:i], p) {
			t.Fatalf("peer %v", p)
		}
	}
	for _, m := range v.AnycastMACs {
		if len(m) != 6 && len(m) != 20 {
			t.Fatalf("MAC %v", m)
		}
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) || c.LogFile != "" && c.LogFile[0] != '/' {
		t.Fatalf("log %q %q", c.LogLevel, c.LogFile)
	}
	if c.PrevResult != nil && (!json.Valid(c.PrevResult) || c.PrevResult[0] != '{') {
		t.Fatalf("prevResult %q", c.PrevResult)
	}
}
