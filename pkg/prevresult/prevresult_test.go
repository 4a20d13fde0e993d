package prevresult_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/prevresult/convert"
)

// full is a 1.1.0 result with every field of the specification, and one of tomorrow's.
const full = `{
 "cniVersion": "1.1.0",
 "interfaces": [
  {"name": "br0", "mac": "02:00:00:00:00:01"},
  {"name": "net1", "mac": "02:00:00:00:00:02", "mtu": 4220, "sandbox": "/run/netns/pod", "socketPath": "/s", "pciID": "0000:3b:02.1"},
  {"name": "net1", "mac": "02:00:00:00:00:03"}
 ],
 "ips": [
  {"interface": 1, "address": "10.61.1.11/24", "gateway": "10.61.1.254"},
  {"interface": 0, "address": "10.99.0.1/24"},
  {"interface": 2, "address": "10.98.0.1/24"},
  {"address": "fd5a:1::11/64", "gateway": "::"}
 ],
 "routes": [
  {"dst": "10.70.0.0/16", "gw": "10.61.1.254", "mtu": 1400, "advmss": 1360, "priority": 7, "table": 500, "scope": 0},
  {"dst": "10.71.0.5/16"}
 ],
 "dns": {"nameservers": ["10.96.0.10"], "search": ["a"]},
 "tomorrow": {"kept": true}
}`

func TestPassThrough(t *testing.T) {
	r, err := prevresult.Parse(json.RawMessage(full), "1.1.0", convert.Result)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Marshal([]prevresult.Route{
		{Dst: netip.MustParsePrefix("10.61.0.0/16"), GW: netip.MustParseAddr("10.61.1.254")},
		{Dst: netip.MustParsePrefix("10.71.0.0/16")}, // there already
	})
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if json.Unmarshal(out, &got) != nil || json.Unmarshal([]byte(full), &want) != nil {
		t.Fatalf("not JSON: %s", out)
	}
	want["routes"] = append(want["routes"].([]any), map[string]any{"dst": "10.61.0.0/16", "gw": "10.61.1.254"})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestAddresses(t *testing.T) {
	r, err := prevresult.Parse(json.RawMessage(full), "1.1.0", convert.Result)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ip := range r.Addresses("net1") {
		got = append(got, ip.Address.String()+" "+ip.Gateway.String())
	}
	want := []string{"10.61.1.11/24 10.61.1.254", "fd5a:1::11/64 invalid IP"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q: the entry on the host has the same name and is not ours", got, want)
	}
	if !r.Routes[0].Elsewhere || r.Routes[1].Elsewhere || r.Routes[1].Dst.String() != "10.71.0.0/16" {
		t.Errorf("routes %+v", r.Routes)
	}
}

// TestNoSandbox: some plugins fill in no sandbox at all; the name then decides.
func TestNoSandbox(t *testing.T) {
	r, err := prevresult.Parse(json.RawMessage(
		`{"interfaces":[{"name":"net1"}],"ips":[{"interface":0,"address":"::ffff:10.61.1.11/120"}]}`), "1.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Addresses("net1"); len(got) != 1 || got[0].Address.String() != "10.61.1.11/24" {
		t.Errorf("got %v", got)
	}
}

func TestOtherVersion(t *testing.T) {
	old := json.RawMessage(
		`{"cniVersion":"0.3.1","interfaces":[{"name":"net1","sandbox":"/n"}],"ips":[{"version":"4","interface":0,"address":"10.61.1.11/24"}]}`)
	if _, err := prevresult.Parse(old, "1.0.0", nil); !errors.Is(err, prevresult.ErrOtherVersion) || cnierr.CodeOf(err, 0) != cnierr.Config {
		t.Errorf("without a converter: %v", err)
	}
	r, err := prevresult.Parse(old, "1.0.0", convert.Result)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Marshal(nil)
	if err != nil || !strings.Contains(string(out), `"cniVersion":"1.0.0"`) || strings.Contains(string(out), `"version"`) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestRefused(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                    "must be chained",
		`[]`:                                  "not a CNI result",
		`{"ips":[{"address":"10.0.0.1"}]}`:    `ips[0].address: "10.0.0.1"`,
		`{"ips":[{"address":"10.0.0.1/33"}]}`: `ips[0].address: "10.0.0.1/33"`,
		`{"ips":[{"interface":1,"address":"10.0.0.1/8"}],"interfaces":[{"name":"a"}]}`: "interface is 1",
		`{"ips":[{"interface":-1,"address":"10.0.0.1/8"}]}`:                            "interface is -1",
		`{"ips":[{"address":"10.0.0.1/8","gateway":"x"}]}`:                             `gateway: "x"`,
		`{"ips":[{"address":"fd00::1/64","gateway":"fe80::1%net1"}]}`:                  `gateway: "fe80::1%net1"`,
		`{"routes":[{"dst":"10.0.0.0"}]}`:                                              `routes[0].dst: "10.0.0.0"`,
		`{"routes":[{"dst":"10.0.0.0/8","gw":"10"}]}`:                                  `routes[0].gw: "10"`,
		`{"ips":[{"address":"::ffff:10.0.0.1/64"}]}`:                                   "below 96",
		`{"cniVersion":"7.0.0"}`:                                                       `cniVersion "7.0.0"`,
	} {
		_, err := prevresult.Parse(json.RawMessage(raw), "1.0.0", convert.Result)
		if err == nil || !strings.Contains(err.Error(), want) || cnierr.CodeOf(err, 0) != cnierr.Config {
			t.Errorf("%s: got %v, want code %d and %q", raw, err, cnierr.Config, want)
		}
	}
}

// FuzzParse: whatever parses passes through, twice the same.
func FuzzParse(f *testing.F) {
	// The library lets no other version come this far.
	versions := []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}
	f.Add([]byte(full), uint8(3))
	f.Add([]byte(`{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.61.1.11/24"}],"routes":[]}`), uint8(2))
	f.Add([]byte(`{"routes":null,"ips":null,"interfaces":null}`), uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, which uint8) {
		version := versions[int(which)%len(versions)]
		r, err := prevresult.Parse(raw, version, convert.Result)
		if err != nil {
			if cnierr.CodeOf(err, 0) != cnierr.Config {
				t.Errorf("error without a code: %v", err)
			}
			return
		}
		for _, ip := range r.Addresses("net1") {
			if !ip.Address.IsValid() || ip.Address.Addr().Is4In6() {
				t.Errorf("address %v", ip.Address)
			}
		}
		add := []prevresult.Route{{Dst: netip.MustParsePrefix("10.61.0.0/16"), GW: netip.MustParseAddr("10.61.1.254")}}
		out, err := r.Marshal(add)
		if err != nil {
			t.Fatalf("parses, and does not print: %v", err)
		}
		again, err := prevresult.Parse(out, version, convert.Result)
		if err != nil {
			t.Fatalf("prints what does not parse: %v: %s", err, out)
		}
		out2, err := again.Marshal(add)
		if err != nil || string(out2) != string(out) {
			t.Errorf("a second pass changes it: %v\n%s\n%s", err, out, out2)
		}
	})
}
