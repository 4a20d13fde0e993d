package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/cnierr"
)

// refused lists wrong configurations and what the error must say. An entry
// without a leading brace is the content of the object.
var refused = []struct{ conf, say string }{
	// names
	{`"SUPERNETS":[]`, `unknown field "SUPERNETS"; did you mean "supernets"?`},
	{`"Sysctl":{}`, `did you mean "sysctl"?`},
	{`"sysctls":{}`, `did you mean "sysctl"?`},
	{`"supernet":[]`, `did you mean "supernets"?`},
	{`"rulepriority":1`, `did you mean "rulePriority"?`},
	{`"master":"ens1"`, `unknown field "master"; the fields of railtune are "sysctl", "table"`},
	{`"":1`, `unknown field ""`},
	{`"a\nb\u001b":1`, `unknown field "a\nb\x1b"`},
	{`"verify":{"Mode":"warn"}`, `unknown field "verify.Mode"; did you mean "mode"?`},
	{`"verify":{"peer":[]}`, `unknown field "verify.peer"; did you mean "peers"?`},
	{`"firewall":{"acceptrails":true}`, `unknown field "firewall.acceptrails"; did you mean "acceptRails"?`},
	{`"firewall":{"acceptRails":"yes"}`, `firewall.acceptRails is a string, "yes"`},
	{`"firewall":{"acceptRails":true,"acceptRails":true}`, `firewall.acceptRails is given twice`},
	{`"firewall":true`, `firewall is a boolean, true`},
	{`"verify":{"gateway":1}`, `the fields of verify are "mode", "peers"`},
	{`"supernets":[{"dst":"10.0.0.0/16","GW":"10.0.0.1"}]`, `unknown field "supernets[0].GW"; did you mean "gw"?`},
	{`"supernets":[{"dst":"10.0.0.0/16","via":"10.0.0.1"}]`, `unknown field "supernets[0].via"; the fields of a supernet are "dst" and "gw"`},

	// duplicates
	{`"table":1,"table":1`, "table is given twice"},
	{`"name":"a","name":"b"`, "name is given twice"},
	{`"prevResult":{},"prevResult":null`, "prevResult is given twice"},
	{`"verify":{"mode":"warn","mode":"off"}`, "verify.mode is given twice"},
	{`"supernets":[{"dst":"10.0.0.0/16"},{"dst":"10.1.0.0/16","dst":"10.2.0.0/16"}]`, "supernets[1].dst is given twice"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":1,"net.ipv4.conf.IFNAME.arp_ignore":0}`, `sysctl: "net.ipv4.conf.IFNAME.arp_ignore" is given twice`}, // RT-53
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":1,"net.ipv4.conf.IFNAME.arp_ignore":1}`, "is given twice"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":1,"net.ipv4.conf.IFNAME.arp\u005fignore":1}`, "is given twice"},
	{`"sysctl":{"net.ipv4.neigh.IFNAME.retrans_time":100,"net.ipv4.neigh.IFNAME.retrans_time_ms":1000}`, "one setting in two units"},

	// types of what clients add
	{`"cniVersion":1.0`, "cniVersion is a number, 1.0; give a string in quotes"},
	{`"name":["x"]`, `name is a list, ["x"]; give a string`},
	{`{"type":{}}`, "type is an object"},
	{`"prevResult":[]`, "prevResult is a list, []; give an object"},
	{`"prevResult":"x"`, "prevResult is a string"},
	{`"prevResult":false`, "prevResult is a boolean"},

	// sysctl
	{`"sysctl":[{"key":"net.ipv4.conf.IFNAME.arp_ignore","value":"1"}]`, "sysctl is a list"}, // RT-53
	{`"sysctl":"net.ipv4.conf.IFNAME.arp_ignore=1"`, "sysctl is a string"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":true}`, "sysctl.net.ipv4.conf.IFNAME.arp_ignore is a boolean, true; give a string or a whole number"}, // RT-53
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":[1]}`, "is a list, [1]"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":{"value":1}}`, "is an object"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":1.0}`, `not "1.0"`},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":1e0}`, `not "1e0"`},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":-0}`, `not "-0"`},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":""}`, "sysctl.net.ipv4.conf.IFNAME.arp_ignore: the value \"\" is blank"}, // RT-53
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":" 1"}`, `give "1"`},                                                      // RT-53
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":"1\n"}`, `give "1"`},                                                     // RT-53
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":"auto"}`, "give the value itself"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":4}`, "0 to 3 or 8"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.accept_ra":"auto"}`, `"auto" is for net.ipv6.conf.IFNAME.accept_ra only`},
	{`"sysctl":{"net.ipv6.conf.IFNAME.accept_ra":"AUTO"}`, `or "auto"`},
	{`"sysctl":{"net.ipv6.conf.IFNAME.accept_ra":3}`, `from 0 to 2, not "3"; or "auto"`},
	{`"sysctl":{"net.ipv6.conf.IFNAME.autoconf":"auto"}`, `"auto" is for net.ipv6`},
	{`"sysctl":{"net.ipv4.conf.IFNAME.rp_filter":null}`, "is null, which drops a default, but it is none"},
	{`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignroe":null}`, "defaults: net.ipv4.conf.IFNAME.arp_announce"},
	{`"sysctl":{"net.ipv4.conf.all.rp_filter":1}`, "give net.ipv4.conf.IFNAME.rp_filter"}, // RT-51
	{`"sysctl":{"net.core.somaxconn":1}`, "net.core.somaxconn"},                           // RT-51
	{`"sysctl":{"net.ipv4.conf.IFNAME.../../x":1}`, "slash"},                              // RT-51
	{`"sysctl":{"net.ipv4.conf.net1.arp_ignore":1}`, "IFNAME literally"},
	{`"sysctl":{"":1}`, "empty"},

	// numbers
	{`"table":253`, "own table default"},
	{`"table":254`, "own table main"},
	{`"table":255`, "own table local"},
	{`"table":-1`, "table is -1; give a whole number from 0 to 7199999"},
	{`"table":7200000`, "derived from interface indexes"},
	{`"table":4294967295`, "derived from interface indexes"},
	{`"table":4294967296`, "whole number"},
	{`"table":99999999999999999999`, "whole number"},
	{`"table":1.5`, "table is 1.5"},
	{`"table":1e2`, "table is 1e2"},
	{`"table":"100"`, `table is a string, "100"; give a whole number from 0 to 7199999, without quotes`},
	{"\"table\":[\"\x7f\u2028\"]", `table is a list, ["??"]`},
	{`"table":true`, "table is a boolean"},
	{`"rulePriority":0`, "rulePriority is 0; give a whole number from 1 to 32763 (the three rules"},
	{`"rulePriority":32764`, "from 1 to 32763"},
	{`"rulePriority":-5`, "from 1 to 32763"},
	{`"rulePriority":"720"`, "without quotes"},
	{`"rulePriority":720.0`, "720.0"},

	// flags and words
	{`"mainTable":"true"`, `mainTable is a string, "true"; give true or false, without quotes`},
	{`"mainTable":1`, "mainTable is a number"},
	{`"announce":{}`, "announce is an object"},
	{`"logLevel":"INFO"`, `logLevel is "INFO"; give "debug", "info", "warn" or "error"`},
	{`"logLevel":""`, `give "debug"`},
	{`"logLevel":3`, "logLevel is a number"},
	{`"logFile":"railtune.log"`, "below /var/log"},
	{`"logFile":"/var/log/"`, "below /var/log"},
	{`"logFile":"/var/log/railtune/"`, "below /var/log"},
	{`"logFile":"/var/log/railtune/../../../etc/nologin"`, "below /var/log"},
	{`"logFile":"/var/log/railtune/.."`, "below /var/log"},
	{`"logFile":"/var/log/railtune-a/b/c"`, "below /var/log"},
	{`"logFile":"/etc/cni/net.d/railtune"`, "below /var/log"},
	{`"logFile":"/var/log/railtune\u0000"`, "below /var/log"},
	{`"logFile":1`, "logFile is a number"},
	{`"verify":"off"`, `verify is a string, "off"; give an object`},
	{`"verify":false`, "verify is a boolean"},
	{`"verify":{"mode":"Enforce"}`, `verify.mode is "Enforce"; give "enforce", "warn" or "off"`},
	{`"verify":{"mode":false}`, "verify.mode is a boolean"},
	{`"verify":{"peerMode":"off"}`, `verify.peerMode is "off"; give "enforce" or "warn"`},
	{`"verify":{"gid":"on"}`, `verify.gid is "on"; give "enforce", "warn" or "off"`},
	{`"verify":{"gid":true}`, "verify.gid is a boolean"},
	{`"verify":{"GID":"off"}`, `did you mean "gid"?`},
	{`"verify":{"requireReply":"yes"}`, "verify.requireReply is a string"},
	{`"verify":{"timeout":500}`, "verify.timeout is a number, 500; give a duration"},
	{`"verify":{"timeout":"500"}`, `such as "500ms"`},
	{`"verify":{"timeout":"0s"}`, "above 0"},
	{`"verify":{"timeout":"-1s"}`, "above 0"},
	{`"verify":{"timeout":"30001ms"}`, "up to 30s"},
	{`"verify":{"timeout":""}`, "give a duration"},

	// MACs
	{`"verify":{"anycastMACs":"00:00:5e:00:01:01"}`, "verify.anycastMACs is a string"},
	{`"verify":{"anycastMACs":[1]}`, "verify.anycastMACs[0] is a number"},
	{`"verify":{"anycastMACs":["00:00:5e:00:01"]}`, "not a MAC of 6 or 20 bytes"},
	{`"verify":{"anycastMACs":["00:00:5e:00:01:01:02:03"]}`, "not a MAC of 6 or 20 bytes"},
	{`"verify":{"anycastMACs":["00:00:00:00:00:00"]}`, "no single station"},
	{`"verify":{"anycastMACs":["02:00:00:00:00:01","ff:ff:ff:ff:ff:ff"]}`, "verify.anycastMACs[1]"},
	{`"verify":{"anycastMACs":["01:00:5e:00:00:01"]}`, "no single station"},
	{`"verify":{"anycastMACs":["00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:fe"]}`, "no single station"},
	{`"verify":{"anycastMACs":["00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00"]}`, "no single station"},

	// supernets
	{`"supernets":{"dst":"10.0.0.0/16"}`, `supernets is one object; put it in a list: [{"dst":"10.0.0.0/16"}]`},
	{`"supernets":"10.0.0.0/16"`, "supernets is a string"},
	{`"supernets":["10.0.0.0/16"]`, `supernets[0] is a string, "10.0.0.0/16"; give an object: {"dst":"10.0.0.0/16"}`},
	{`"supernets":[null]`, "supernets[0] is null"},
	{`"supernets":[{}]`, "supernets[0] has no dst"},
	{`"supernets":[{"gw":"10.0.0.1"}]`, "supernets[0] has no dst"},
	{`"supernets":[{"dst":null}]`, "supernets[0] has no dst"},
	{`"supernets":[{"dst":7}]`, "supernets[0].dst is a number"},
	{`"supernets":[{"dst":""}]`, "is not a prefix"},
	{`"supernets":[{"dst":"10.0.0.0"}]`, `it has no length; give one such as "10.0.0.0/16"`},
	{`"supernets":[{"dst":"10.0.3.0"}]`, `"10.0.3.0/24"`},
	{`"supernets":[{"dst":"fd5a::"}]`, `"fd5a::/64"`},
	{`"supernets":[{"dst":"10.0.0.0/33"}]`, "is not a prefix"},
	{`"supernets":[{"dst":"10.0.0.0/016"}]`, "is not a prefix"},
	{`"supernets":[{"dst":"10.0.0.0/255.255.0.0"}]`, "is not a prefix"},
	{`"supernets":[{"dst":"fe80::1%net1/64"}]`, "is not a prefix"},
	{`"supernets":[{"dst":"0.0.0.0/0"}]`, "never a default route"},
	{`"supernets":[{"dst":"::/0"}]`, "never a default route"},
	{`"supernets":[{"dst":"0.0.0.0/1"}]`, `supernets[0].dst is 0.0.0.0/1, which has "this network" addresses`},
	{`"supernets":[{"dst":"128.0.0.0/1"}]`, "link-local addresses (169.254.0.0/16)"},
	{`"supernets":[{"dst":"224.0.0.0/8"}]`, "multicast"},
	{`"supernets":[{"dst":"127.0.0.0/8"}]`, "loopback"},
	{`"supernets":[{"dst":"169.254.0.0/16"}]`, "link-local"},
	{`"supernets":[{"dst":"255.255.255.255/32"}]`, "broadcast"},
	{`"supernets":[{"dst":"ff00::/8"}]`, "multicast"},
	{`"supernets":[{"dst":"fe80::/64"}]`, "link-local"},
	{`"supernets":[{"dst":"::1/128"}]`, "loopback"},
	{`"supernets":[{"dst":"::/96"}]`, "loopback"},
	{`"supernets":[{"dst":"8000::/1"}]`, "multicast"},
	{`"supernets":[{"dst":"::ffff:10.61.0.0/112"}]`, `give "10.61.0.0/16"`},
	{`"supernets":[{"dst":"::ffff:0:0/64"}]`, "IPv4 written as IPv6"},
	{`"supernets":[{"dst":"10.0.0.0/16"},{"dst":"10.0.0.0/16","gw":"10.0.0.1"}]`, "supernets[1].dst is 10.0.0.0/16, which is there already"},

	// gateways
	{`"supernets":[{"dst":"10.61.0.0/16"},{"dst":"10.62.0.0/16","gw":"10.61.0.1/16"}]`, `supernets[1].gw: "10.61.0.1/16" is not an address; give "10.61.0.1"`},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":""}]`, "leave gw out to have it found"},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"auto"}]`, `"auto" is not an address`},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":" 10.61.0.1"}]`, `give "10.61.0.1"`},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":["10.61.0.1"]}]`, "supernets[0].gw is a list"},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"fd5a::1"}]`, "of another family than dst 10.61.0.0/16; give an IPv4 address"},
	{`"supernets":[{"dst":"fd5a::/16","gw":"10.61.1.1"}]`, "give an IPv6 address"}, // RT-37
	{`"supernets":[{"dst":"fd5a::/16","gw":"fe80::1%net1"}]`, `give "fe80::1"`},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"::ffff:10.61.0.1"}]`, `give "10.61.0.1"`},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"0.0.0.0"}]`, "this network"},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"127.0.0.1"}]`, "loopback"},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"224.0.0.5"}]`, "multicast"},
	{`"supernets":[{"dst":"10.61.0.0/16","gw":"255.255.255.255"}]`, "broadcast"},
	{`"supernets":[{"dst":"fd5a::/16","gw":"::"}]`, "unspecified"},
	{`"supernets":[{"dst":"fd5a::/16","gw":"::1"}]`, "loopback"},
	{`"supernets":[{"dst":"fd5a::/16","gw":"ff02::2"}]`, "multicast"},

	// peers
	{`"verify":{"peers":"10.0.0.1"}`, "verify.peers is a string"},
	{`"verify":{"peers":[7]}`, "verify.peers[0] is a number"},
	{`"verify":{"peers":["10.0.0.1",null]}`, "verify.peers[1] is null"},
	{`"verify":{"peers":[""]}`, `verify.peers[0]: "" is not an address; leave it out`},
	{`"verify":{"peers":["node-1"]}`, `"node-1" is not an address`},
	{`"verify":{"peers":["10.9.0.5/30"]}`, `give "10.9.0.4/30"`},
	{`"verify":{"peers":["10.9.0.0/23"]}`, "verify.peers[0] is 10.9.0.0/23, with more than 256 addresses"},
	{`"verify":{"peers":["fd5a::/64"]}`, "with more than 256"},
	{`"verify":{"peers":["0.0.0.0/0"]}`, "with more than 256"},
	{`"verify":{"peers":["10.9.0.0/24","10.9.1.0/24"]}`, `verify.peers: with "10.9.1.0/24" there are more than 256`},
	{`"verify":{"peers":["224.0.0.0/30"]}`, "multicast"},
	{`"verify":{"peers":["255.255.255.255"]}`, "broadcast"},
	{`"verify":{"peers":["::ffff:10.9.0.4"]}`, `give "10.9.0.4"`},
	{`"verify":{"peers":["fe80::1%net1"]}`, `give "fe80::1"`},
	{`"verify":{"peers":["::/127"]}`, "unspecified"},
}

func whole(conf string) string {
	if strings.HasPrefix(conf, "{") {
		return conf
	}
	return `{"type":"railtune",` + conf + `}`
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		conf := whole(c.conf)
		got, err := Parse([]byte(conf))
		if err == nil {
			t.Errorf("%s is accepted: %+v", c.conf, got)
			continue
		}
		e := err.(*cnierr.Error)
		if e.Code != cnierr.Config || !strings.Contains(e.Error(), c.say) {
			t.Errorf("%s: code %d, %v\nwant it to say %q", c.conf, e.Code, err, c.say)
		}
		if e.Details != "" {
			t.Errorf("%s: one mistake gives several findings:\n%s", c.conf, e.Details)
		}
		// DEL goes on, with what is not wrong.
		lenient := ParseLenient([]byte(conf))
		if lenient.Type != "railtune" && !strings.Contains(c.conf, `"type"`) {
			t.Errorf("%s: DEL lost the type", c.conf)
		}
		if lenient.Table != 0 && lenient.Table != 1 || lenient.RulePriority != DefaultRulePriority || len(lenient.Supernets) > 1 {
			t.Errorf("%s: DEL would work with %+v", c.conf, lenient)
		}
	}
}

func TestLenient(t *testing.T) {
	for _, c := range []struct{ conf, strict string }{ // strict: a configuration that means the same
		{`{"cniVersion":"","ipam":{},"name":"rail-0","type":"railtune"}`, `{"name":"rail-0","type":"railtune"}`}, // Multus
		{`{}`, `{}`},
		{`{"table":100,"rulePriority":"x","unknown":1}`, `{"table":100}`},
		{`{"table":254,"rulePriority":800}`, `{"rulePriority":800}`},
		{`{"table":100,"table":200}`, `{"table":100}`},
		{`{"supernets":[7,{"dst":"10.0.0.0/16"},{"dst":"10.1.0.0/16","gw":"x"}],"verify":7,"mainTable":false}`, `{"supernets":[{"dst":"10.0.0.0/16"}],"mainTable":false}`},
		{`{"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":2,"x":1,"net.ipv4.conf.IFNAME.rp_filter":9}}`, `{"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":2}}`},
		{`{"sysctl":{"net.ipv4.neigh.IFNAME.retrans_time":1,"net.ipv4.neigh.IFNAME.retrans_time_ms":10}}`, `{"sysctl":{"net.ipv4.neigh.IFNAME.retrans_time":1}}`},
		{`{"prevResult":[],"logLevel":"debug"}`, `{"logLevel":"debug"}`},
		{`{"verify":{"mode":"off","peers":["x","10.0.0.1"],"timeout":9}}`, `{"verify":{"mode":"off","peers":["10.0.0.1"]}}`},
	} {
		if got, want := ParseLenient([]byte(c.conf)), parse(t, c.strict); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.conf, got, want)
		}
	}
}

// Messages go into pod events: a value is cut, wherever it is repeated.
func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("é0", 5000)
	for _, conf := range []string{
		`{"` + long + `":1}`,
		`{"verify":{"` + long + `":1}}`,
		`{"sysctl":{"` + long + `":1}}`,
		`{"sysctl":{"net.ipv4.conf.IFNAME.x":"` + long + `"}}`,
		`{"table":"` + long + `"}`,
		`{"table":["` + long + `"]}`,
		`{"supernets":{"dst":"` + long + `"}}`,
		`{"supernets":[{"dst":"` + long + `","gw":null}]}`,
		`{"verify":{"peers":["` + long + `"]}}`,
		`{"logLevel":"` + long + `"}`,
	} {
		_, err := Parse([]byte(conf))
		if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "…") || strings.ContainsRune(err.Error(), 0xfffd) {
			t.Errorf("%.60s…: %.600v", conf, err)
		}
	}
}
