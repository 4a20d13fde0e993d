package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/railtune/railtune/pkg/cnierr"
)

const schemaFile = "../../docs/schema.json"

// beyond are what Parse refuses and docs/schema.json cannot: what a schema has no
// words for. Each is met by the tests below, or is not true any more.
var beyond = []struct {
	name string
	says *regexp.Regexp // the finding
}{
	{"a field given twice", regexp.MustCompile(`is given twice`)},
	{"an integer written with a point, an exponent or as -0", regexp.MustCompile(`(is|not) "?(-0|[0-9]+\.[0-9]+|[0-9.]+[eE][+-]?[0-9]+)"?($|;)`)},
	{"a number in quotes that is out of its setting's wide range", regexp.MustCompile(`takes an integer from \S+ to \S+, not "-?[0-9]+"`)},
	{"an unknown setting with a value of more than 256 bytes in fewer characters", regexp.MustCompile(`is longer than any setting's`)},
	{"a setting with blanks of Unicode around its value", regexp.MustCompile(`has blanks or a line end around it|is blank`)},
	{"one setting in two units", regexp.MustCompile(`are one setting in two units`)},
	{"text with a colon that is no IPv6 address or prefix", regexp.MustCompile(`"\S*:\S*" is not an? (address|prefix)`)},
	{"IPv4 written as IPv6", regexp.MustCompile(`is IPv4 written as IPv6`)},
	{"a supernet or an address in a range that no rail is in", regexp.MustCompile(`which has .* addresses \(\S+\) in it|, a .* address; give the address of one interface`)},
	{"a supernet given twice", regexp.MustCompile(`which is there already`)},
	{"peers with bits set beyond their length", regexp.MustCompile(`has bits set beyond its length`)},
	{"peers with an address in them that no rail has", regexp.MustCompile(`with the .* address \S+ in it`)},
	{"more than 256 peers in all", regexp.MustCompile(`there are more than 256`)},
	{"the zero MAC, and a group of InfiniBand", regexp.MustCompile(`which no single station has`)},
	{"a timeout of 0, or above 30s", regexp.MustCompile(`give a duration above 0`)},
}

// judge compares what the schema and Parse say about configurations.
type judge struct {
	schema *jsonschema.Schema
	used   map[string]bool // of beyond, by name
	count  int
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return &judge{schema: s, used: map[string]bool{}}
}

// compare holds the schema to Parse: what Parse takes is valid, and what is valid
// Parse takes, or refuses for reasons of beyond alone.
func (j *judge) compare(t *testing.T, conf []byte) {
	t.Helper()
	_, refusal := Parse(conf)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(conf))
	if err != nil {
		if refusal == nil {
			t.Errorf("%.300s is no JSON, and accepted: %v", conf, err)
		}
		return
	}
	j.count++
	invalid := j.schema.Validate(value)
	switch {
	case refusal == nil && invalid != nil:
		t.Errorf("%.300s is accepted, and not valid: %v", conf, invalid)
	case refusal != nil && invalid == nil:
		for _, line := range findings(refusal) {
			if !j.isBeyond(line) {
				t.Errorf("%.300s is valid, and refused: %s", conf, line)
			}
		}
	}
}

func (j *judge) isBeyond(line string) bool {
	for _, b := range beyond {
		if b.says.MatchString(line) {
			j.used[b.name] = true
			return true
		}
	}
	return false
}

func findings(err error) []string {
	e := err.(*cnierr.Error)
	if e.Details == "" {
		return []string{e.Error()}
	}
	return strings.Split(e.Details, "\n")
}

// TestSchema compares every configuration that this project has: those in the tests
// of this package, in plans, in scenarios and in the fuzzer's corpus; those that
// the schema itself makes; and each setting this kernel has, with many values.
func TestSchema(t *testing.T) {
	j := newJudge(t)
	for _, c := range refused {
		j.compare(t, []byte(whole(c.conf)))
	}
	known := knownConfigurations(t)
	if len(known) < 200 {
		t.Errorf("only %d configurations found in the files of tests", len(known))
	}
	for _, c := range known {
		j.compare(t, c)
	}
	for _, c := range corners() {
		j.compare(t, []byte(c))
	}
	for _, v := range schemaOf(t).instances() {
		conf, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		j.compare(t, conf)
	}
	for _, c := range kernelSettings(t) {
		j.compare(t, []byte(c))
	}
	for _, b := range beyond {
		if !j.used[b.name] {
			t.Errorf("the schema would say it, or Parse does not: %s", b.name)
		}
	}
	t.Logf("%d configurations judged alike", j.count)
}

// corners are what the schema's own instances do not come to.
func corners() []string {
	var all []string
	for _, c := range []string{
		`"table":100.0`, `"table":1e2`, `"table":-0`, `"table":0.0`, `"rulePriority":7.2e2`,
		`"logFile":"/var/log/railtune\u200b"`, `"logFile":"/"`, `"logFile":"/var/log/railtune"`, `"logFile":"/var/log/railtune/a.b"`,
		`"logFile":"/var/log/railtune/"`, `"logFile":"/var/log/railtune/.a"`, `"logFile":"/var/log/railtune-1/a"`, `"logFile":"/var/log/railtuné"`,
		`"logFile":"/var/log/railtune\n"`,
		`"sysctl":{"net.ipv4.conf.IFNAME.new":"` + strings.Repeat("é", 200) + `"}`,
		`"sysctl":{"net.ipv4.conf.IFNAME.new":"` + strings.Repeat("x", 256) + `"}`,
		`"sysctl":{"net.ipv4.conf.IFNAME.new":"` + strings.Repeat("x", 257) + `"}`,
		`"sysctl":{"net.ipv4.conf.IFNAME.new":"\u00a01"}`, `"sysctl":{"net.ipv4.conf.IFNAME.new":1.5}`,
		`"sysctl":{"net.ipv4.conf.IFNAME.new":"4096 131072 6291456"}`, `"sysctl":{"net.ipv4.conf.IFNAME.new":null}`,
		`"sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":null,"net.ipv6.conf.IFNAME.mtu":"1280"}`,
		`"sysctl":{"net.ipv4.conf.IFNAME.a.b":1}`, `"sysctl":{"net.ipv4.conf.IFNAME.":1}`, `"sysctl":{"net.ipv5.conf.IFNAME.x":1}`,
		`"supernets":[{"dst":"10.61.0.0/16","gw":null},{"dst":"FD5A::/16","gw":"FE80::1"},{"dst":"10.64.0.1/15"}]`,
		`"supernets":[{"dst":"64:ff9b::10.0.0.0/104"}]`, `"supernets":[{"dst":"10.61.00.0/16"}]`, `"supernets":[{"dst":"256.0.0.0/16"}]`,
		`"supernets":[{"dst":":::/16"}]`, `"supernets":[{"dst":"fd5a::/129"}]`, `"supernets":[{"dst":"fd5a::/128","gw":"fd5a::10.0.0.1"}]`,
		`"verify":{"peers":["10.9.0.0/24","10.9.0.7","fd5a::/120"]}`, `"verify":{"peers":["10.9.0.0/24","10.9.0.7","fd5a::1","fd5a::2","fd5a::3"]}`,
		`"verify":{"peers":["fd5a::/119"]}`, `"verify":{"peers":["10.9.0.0/024"]}`, `"verify":{"anycastMACs":["0000.5e00.0101","8000.0048.fe80.0000.0000.0000.7cfe.9003.0010.2345"]}`,
		`"verify":{"anycastMACs":["00:00-5e:00:01:01"]}`, `"verify":{"anycastMACs":["000.5e00.01011"]}`,
		`"verify":{"timeout":"+1s"}`, `"verify":{"timeout":"0.5m"}`, `"verify":{"timeout":".5s"}`, `"verify":{"timeout":"1s500ms"}`, `"verify":{"timeout":"1µs"}`,
		`"verify":{"timeout":"0"}`, `"verify":{"timeout":"."}`, `"verify":{"timeout":"1 s"}`, `"verify":{"timeout":"31s"}`, `"cni.dev/x":[1]`, `"cni.dev":1`,
	} {
		all = append(all, whole(c))
	}
	return all
}

// kernelSettings are all per-interface settings of this kernel, each with numbers in
// and around the ranges that settings have.
func kernelSettings(t *testing.T) []string {
	t.Helper()
	values := []string{`null`, `true`, `""`, `"x"`, `"auto"`, `"01"`, `" 1"`, `1.5`}
	for _, n := range []int64{-2147483649, -2147483648, -2, -1, 0, 1, 2, 3, 4, 5, 8, 9, 127, 128, 129, 255, 256, 1279, 1280, 65535, 65536, 65537, 2147483647, 2147483648, 4294967295, 4294967296} {
		values = append(values, fmt.Sprint(n), fmt.Sprintf("%q", fmt.Sprint(n)))
	}
	var all []string
	for _, dir := range []string{"ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"} {
		files, err := os.ReadDir(filepath.Join("/proc/sys/net", dir, "default"))
		if err != nil {
			t.Logf("not compared: %v", err) // a kernel without IPv6
		}
		for _, f := range files {
			for _, v := range values {
				all = append(all, fmt.Sprintf(`{"sysctl":{"net.%s.IFNAME.%s":%s}}`, strings.Replace(dir, "/", ".", 1), f.Name(), v))
			}
		}
	}
	return all
}
