package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/hwaddr"
)

func parse(t *testing.T, conf string) *Config {
	t.Helper()
	c, err := Parse([]byte(conf))
	if err != nil {
		t.Fatalf("%s: %v", conf, err)
	}
	return c
}

// sysctls writes the settings down as key=value, defaults with a star.
func sysctls(c *Config) string {
	var all []string
	for _, s := range c.Sysctl {
		star := ""
		if s.Default {
			star = "*"
		}
		all = append(all, strings.TrimPrefix(s.Key.String(), "net.")+"="+s.Value+star)
	}
	return strings.Join(all, " ")
}

func TestDefaults(t *testing.T) {
	want := &Config{
		Type: "railtune", RulePriority: 720, MainTable: true, Announce: true, LogLevel: "info",
		Verify: Verify{Mode: "enforce", PeerMode: "warn", Timeout: 500 * time.Millisecond, GID: "warn"},
		Sysctl: Default().Sysctl,
	}
	const settings = "ipv4.conf.IFNAME.arp_announce=2* ipv4.conf.IFNAME.arp_ignore=1* ipv6.conf.IFNAME.accept_ra=auto*"
	for _, conf := range []string{
		`{"type":"railtune"}`,
		"\n\t{ \"type\" : \"railtune\" }\n",
		`{"type":"railtune","sysctl":null,"table":null,"rulePriority":null,"supernets":null,"mainTable":null,"announce":null,
		  "verify":null,"firewall":null,"logFile":null,"logLevel":null,"prevResult":null,"cniVersion":null,"name":null}`,
		`{"type":"railtune","sysctl":{},"table":0,"supernets":[],"verify":{},"firewall":{},"logFile":""}`,
		`{"type":"railtune","firewall":{"acceptRails":false}}`, `{"type":"railtune","firewall":{"acceptRails":null}}`,
		`{"type":"railtune","verify":{"mode":null,"peers":null,"peerMode":null,"anycastMACs":null,"requireReply":null,"timeout":null,"gid":null}}`,
	} {
		got := parse(t, conf)
		if !reflect.DeepEqual(got, want) || sysctls(got) != settings {
			t.Errorf("%s:\n got %+v\nwant %+v", conf, got, want)
		}
	}
}

func TestEverything(t *testing.T) {
	got := parse(t, `{"cniVersion":"1.1.0","name":"rail-0","type":"railtune",
		"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":2,"net.ipv4.conf.IFNAME.rp_filter":"2","net.ipv6.conf.IFNAME.accept_ra":null},
		"table":1000,"rulePriority":32763,
		"supernets":[{"dst":"10.60.0.0/14","gw":"10.61.0.1"},{"dst":"fd5a::/16","gw":"fe80::1"},{"dst":"10.64.0.0/16","gw":null}],
		"mainTable":false,"announce":false,
		"verify":{"mode":"warn","peers":["10.9.0.4/30","10.9.0.5","fd5a::4/126","10.9.0.8/31"],"peerMode":"enforce",
			"anycastMACs":["00:00:5e:00:01:01","00-00-5E-00-01-01","80:00:00:48:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:10:23:45"],
			"requireReply":true,"timeout":"1.5s","gid":"enforce"},
		"firewall":{"acceptRails":true},
		"logFile":"/var/log/railtune.log","logLevel":"debug","prevResult":{"cniVersion":"1.1.0", "ips":[]}}`)
	mac6, _ := hwaddr.ParseMAC("00:00:5e:00:01:01")
	mac20, _ := hwaddr.ParseMAC("80:00:00:48:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:10:23:45")
	var peers []netip.Addr
	for _, a := range strings.Fields("10.9.0.5 10.9.0.6 fd5a::4 fd5a::5 fd5a::6 fd5a::7 10.9.0.8 10.9.0.9") {
		peers = append(peers, netip.MustParseAddr(a))
	}
	want := &Config{
		CNIVersion: "1.1.0", Name: "rail-0", Type: "railtune", Sysctl: got.Sysctl, Table: 1000, RulePriority: 32763,
		Supernets: []Supernet{
			{netip.MustParsePrefix("10.60.0.0/14"), netip.MustParseAddr("10.61.0.1")},
			{netip.MustParsePrefix("fd5a::/16"), netip.MustParseAddr("fe80::1")},
			{netip.MustParsePrefix("10.64.0.0/16"), netip.Addr{}},
		},
		Verify: Verify{
			Mode: "warn", Peers: peers, PeerMode: "enforce", AnycastMACs: []hwaddr.MAC{mac6, mac20},
			RequireReply: true, Timeout: 1500 * time.Millisecond, GID: "enforce",
		},
		Firewall: Firewall{AcceptRails: true},
		LogFile:  "/var/log/railtune.log", LogLevel: "debug", PrevResult: []byte(`{"cniVersion":"1.1.0", "ips":[]}`),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if s := sysctls(got); s != "ipv4.conf.IFNAME.arp_announce=2* ipv4.conf.IFNAME.arp_ignore=2 ipv4.conf.IFNAME.rp_filter=2" {
		t.Errorf("settings %s", s)
	}
}

func TestSysctlMap(t *testing.T) {
	const rest = "ipv4.conf.IFNAME.arp_announce=2* "
	for _, c := range []struct{ name, conf, want string }{
		{"RT-53 number", `{"net.ipv4.conf.IFNAME.arp_ignore":1}`, rest + "ipv4.conf.IFNAME.arp_ignore=1 ipv6.conf.IFNAME.accept_ra=auto*"},
		{"RT-53 string", `{"net.ipv4.conf.IFNAME.arp_ignore":"1"}`, rest + "ipv4.conf.IFNAME.arp_ignore=1 ipv6.conf.IFNAME.accept_ra=auto*"},
		{
			"RT-56", `{"net.ipv4.conf.IFNAME.arp_ignore":2,"net.ipv4.conf.IFNAME.accept_local":1,"net.ipv4.conf.IFNAME.rp_filter":2}`,
			"ipv4.conf.IFNAME.accept_local=1 " + rest + "ipv4.conf.IFNAME.arp_ignore=2 ipv4.conf.IFNAME.rp_filter=2 ipv6.conf.IFNAME.accept_ra=auto*",
		},
		{"RT-57", `{"net.ipv4.conf.IFNAME.rp_filter":0}`, rest + "ipv4.conf.IFNAME.arp_ignore=1* ipv4.conf.IFNAME.rp_filter=0 ipv6.conf.IFNAME.accept_ra=auto*"},
		{"RT-65 auto", `{"net.ipv6.conf.IFNAME.accept_ra":"auto"}`, rest + "ipv4.conf.IFNAME.arp_ignore=1* ipv6.conf.IFNAME.accept_ra=auto"},
		{"RT-65 explicit", `{"net.ipv6.conf.IFNAME.accept_ra":1}`, rest + "ipv4.conf.IFNAME.arp_ignore=1* ipv6.conf.IFNAME.accept_ra=1"},
		{
			"RT-51 neigh", `{"net.ipv4.neigh.IFNAME.retrans_time_ms":250}`,
			rest + "ipv4.conf.IFNAME.arp_ignore=1* ipv4.neigh.IFNAME.retrans_time_ms=250 ipv6.conf.IFNAME.accept_ra=auto*",
		},
		{
			"RT-50 configured", `{"net.ipv6.conf.IFNAME.disable_ipv6":0}`,
			rest + "ipv4.conf.IFNAME.arp_ignore=1* ipv6.conf.IFNAME.accept_ra=auto* ipv6.conf.IFNAME.disable_ipv6=0",
		},
		{"all defaults dropped", `{"net.ipv4.conf.IFNAME.arp_ignore":null,"net.ipv4.conf.IFNAME.arp_announce":null,"net.ipv6.conf.IFNAME.accept_ra":null}`, ""},
		{
			"negative", `{"net.ipv6.conf.IFNAME.use_tempaddr":-1,"net.ipv6.conf.IFNAME.accept_ra":null}`,
			rest + "ipv4.conf.IFNAME.arp_ignore=1* ipv6.conf.IFNAME.use_tempaddr=-1",
		},
	} {
		if got := sysctls(parse(t, `{"sysctl":`+c.conf+`}`)); got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestForeignFields(t *testing.T) {
	for _, f := range []string{
		`"capabilities":{"ips":true}`, `"runtimeConfig":{"ips":["10.0.0.1/24"],"mac":"02:00:00:00:00:01"}`,
		`"args":{"cni":{"a":1,"a":2}}`, `"dns":{}`, `"ipam":{}`, `"ipam":{"type":"host-local"}`, `"disableCheck":true`,
		`"deviceID":"0000:3b:00.2"`, `"pciBusID":"0000:3b:00.2"`, `"resourceName":"example.com/rail0"`,
		`"cni.dev/valid-attachments":[{"containerID":"c","ifname":"net1"}]`, `"cni.dev/attachments":[]`, `"cni.dev/other":1`,
		`"runtimeConfig":{"a":1,"a":2}`, `"prevResult":{"ips":[],"ips":[]}`, `"args":1,"args":2`, `"cniVersion":""`,
	} {
		parse(t, `{"type":"railtune",`+f+`}`)
	}
}

// RT-79: whether it is chained is told by PrevResult; ipam is never looked at.
func TestPrevResult(t *testing.T) {
	for _, c := range []struct {
		conf string
		want string
	}{
		{`{"type":"railtune"}`, "<nil>"},
		{`{"type":"railtune","prevResult":null}`, "<nil>"},
		{`{"type":"railtune","prevResult":{}}`, "{}"},
		{`{"type":"railtune","ipam":{"type":"static"}}`, "<nil>"},
		{`{"type":"railtune","prevResult": {"b": 1, "a":"<&>"} }`, `{"b": 1, "a":"<&>"}`},
	} {
		got := "<nil>"
		if c := parse(t, c.conf); c.PrevResult != nil {
			got = string(c.PrevResult)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.conf, got, c.want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct{ conf, say string }{
		{"", "empty"},
		{"  \n", "empty"},
		{"nonsense", "line 1, column 2"},
		{"{\n\"type\" \"railtune\"}", "line 2, column 8"},
		{`{"type":"railtune"`, "unexpected end"},
		{`{"type":"railtune"} x`, "column 21"},
		{`{"type":"railtune"}{}`, "after top-level value"},
		{`{"table":01}`, "line 1"},
		{`[]`, "a list; give a JSON object"},
		{`null`, "null; give a JSON object"},
		{`"x"`, "a string"},
		{`7`, "a number"},
		{`true`, "a boolean"},
		{strings.Repeat("[", 20000), "line 1"},
	} {
		_, err := Parse([]byte(c.conf))
		if cnierr.CodeOf(err, 0) != cnierr.Decode || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%.40q: code %d, %v; want it to say %q", c.conf, cnierr.CodeOf(err, 0), err, c.say)
		}
		if got := ParseLenient([]byte(c.conf)); !reflect.DeepEqual(got, Default()) {
			t.Errorf("%.40q: lenient gives %+v", c.conf, got)
		}
	}
}

func TestAllFindingsAtOnce(t *testing.T) {
	_, err := Parse([]byte(`{"table":254,"logLevel":"loud","supernets":[{"dst":"10.0.0.1","gw":"x"}],"mtu":9000}`))
	e, ok := err.(*cnierr.Error)
	if !ok || e.Code != cnierr.Config {
		t.Fatalf("%T %v", err, err)
	}
	lines := strings.Split(e.Details, "\n")
	if len(lines) != 5 || e.Error() != lines[0]+" (and 4 more)" || !strings.HasPrefix(lines[0], "table is 254") {
		t.Errorf("%v\n%s", err, e.Details)
	}
	for i, say := range []string{"table", "logLevel", "supernets[0].dst", "supernets[0].gw", `"mtu"`} {
		if !strings.Contains(lines[i], say) {
			t.Errorf("line %d does not name %s: %s", i, say, lines[i])
		}
	}

	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `,"x%d":1`, i)
	}
	_, err = Parse([]byte(`{"type":"railtune"` + many.String() + `}`))
	e = err.(*cnierr.Error)
	if lines := strings.Split(e.Details, "\n"); len(lines) != 33 || lines[32] != "and 68 more" || !strings.HasSuffix(e.Error(), "(and 99 more)") {
		t.Errorf("%v\n%s", err, e.Details)
	}

	_, err = Parse([]byte(`{"table":254}`))
	if e = err.(*cnierr.Error); e.Details != "" || strings.Contains(e.Error(), "more") {
		t.Errorf("one finding: %v\n%s", err, e.Details)
	}
}

// TestMaskedSupernet: RT-13 has 10.60.0.0/13 for what is 10.56.0.0/13.
func TestMaskedSupernet(t *testing.T) {
	c, err := Parse([]byte(`{"supernets":[{"dst":"10.60.0.0/13"},{"dst":"fd5a::1/16"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Supernets[0].Dst.String() + " " + c.Supernets[1].Dst.String(); got != "10.56.0.0/13 fd5a::/16" {
		t.Errorf("supernets are %s", got)
	}
	if len(c.Notes) != 2 || !strings.Contains(c.Notes[0], `"10.60.0.0/13" has bits set beyond its length and is taken as "10.56.0.0/13"`) {
		t.Errorf("notes are %q", c.Notes)
	}
}
