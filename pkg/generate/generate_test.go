package generate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// each runs a test for every archive of a folder. A file whose name ends in .in.yaml or
// .in.json is the input; the comment's first line is the kind, or flags; all else is
// what has to come out.
func each(t *testing.T, folder string, make func(t *testing.T, kind, in string) (Output, error)) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kind, _, _ := strings.Cut(string(ar.Comment), "\n")
			made, err := make(t, kind, string(ar.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: ar.Comment, Files: ar.Files[:1]}
			for _, f := range made.Files {
				got.Files = append(got.Files, txtar.File{Name: f.Name, Data: []byte(f.Text)})
			}
			if len(made.Notes) > 0 {
				got.Files = append(got.Files, txtar.File{Name: "notes", Data: []byte(strings.Join(made.Notes, "\n") + "\n")})
			}
			text := txtar.Format(got)
			if *update {
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != string(text) {
				t.Errorf("%v, came out (-update writes it):\n%s", err, text)
			}
		})
	}
}

func TestRails(t *testing.T) {
	each(t, "rails", func(t *testing.T, kind, in string) (Output, error) {
		r, err := Load([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		made, err := r.Generate(kind)
		if again, _ := r.Generate(kind); err == nil {
			one, _ := made.Stream()
			two, _ := again.Stream()
			if one != two {
				t.Errorf("two runs differ:\n%s\n%s", one, two)
			}
		}
		return made, err
	})
}

func TestFromTuning(t *testing.T) {
	each(t, "tuning", func(t *testing.T, flags, in string) (Output, error) {
		add := Addition{Supernets: flags}
		made, err := FromTuning([]byte(in), add)
		if err != nil {
			return made, err
		}
		again, err := FromTuning([]byte(made.Files[0].Text), add)
		if err != nil {
			t.Fatalf("its own output is refused: %v", err)
		}
		if again.Files[0].Text != made.Files[0].Text {
			t.Errorf("its own output comes back changed:\n%s\nnotes: %q", again.Files[0].Text, again.Notes)
		}
		return made, nil
	})
}

// refusedRails are inputs that must not become something that fails on a node.
var refusedRails = []struct{ kind, rails, say string }{
	{"nad", `{rails: 0}`, "0 rails"},
	{"nad", `{rails: 2, name: rail, ipam: dhcp}`, `name "rail" is the same for all 2 rails`},
	{"nad", `{rails: 2, parent: rdma0, ipam: dhcp}`, `parent "rdma0" is the same`},
	{"nad", `{name: "rail_%d", ipam: dhcp}`, "no name for a Kubernetes object"},
	{"nad", `{parent: "a-very-long-rdma%d", ipam: dhcp}`, "no interface's name"},
	{"nad", `{parent: "rdma%s", ipam: dhcp}`, "stands for no number"},
	{"nad", `{ipam: none}`, "ipvlan attaches nothing without IPAM"},
	{"nad", `{ipam: nv-ipam}`, "nv-ipam needs a pool"},
	{"nad", `{ipam: whereabouts}`, "whereabouts needs a subnet"},
	{"nad", `{ipam: dhpc}`, `ipam "dhpc" is none of`},
	{"nad", `{ipam: {poolName: x}}`, "has no type"},
	{"nad", `{ipam: "{"}`, "ipam is no JSON object"},
	{"nad", `{ipam: host-local, subnet: 10.61.0.0/16}`, "every rail would get the same addresses"},
	{"nad", `{ipam: whereabouts, subnet: 10.61.%d.1/24}`, "give 10.61.0.0/24"},
	{"nad", `{ipam: whereabouts, subnet: 10.61.%d.0/24, gateway: 10.62.%d.254}`, "on another link"},
	{"nad", `{ipam: whereabouts, subnet: "10.61.%d.0/24,10.62.%d.0/24"}`, "one for each address family"},
	{"nad", `{ipam: static, address: 10.61.%d.11/24, gateway: 10.61.%d.11}`, "the rail's own address"},
	{"nad", `{ipam: dhcp, gateway: 10.61.%d.254}`, "nothing takes the gateway"},
	{"nad", `{ipam: dhcp, first: 300, subnet: 10.61.%d.0/24}`, "is no prefix"},
	{"nad", `{plugin: bridge, ipam: dhcp}`, `plugin "bridge" is none of`},
	{"nad", `{plugin: sriov, ipam: dhcp}`, "sriov needs a resource"},
	{"nad", `{plugin: host-device, ipam: dhcp, mtu: 4220}`, "host-device takes no MTU"},
	{"nad", `{ipam: dhcp, cniVersion: 0.2.0}`, `cniVersion "0.2.0"`},
	{"nad", `{ipam: dhcp, railtune: {verfy: {}}}`, `unknown field "verfy"`},
	{"nad", `{ipam: dhcp, railtune: {type: tuning}}`, "leave it out"},
	{"nad", `{ipam: dhcp, supernets: 0.0.0.0/0}`, "never a default route"},
	{"nad", `{ipam: dhcp, supernets: 10.61.0.0/16, railtune: {supernets: []}}`, "given twice"},
	{"nad", `{ipam: dhcp, chain: [{mtu: 9000}]}`, "has no type"},
	{"nad", `{ipam: dhcp, railtune: '{"table":1,"table":2}'}`, "given twice"},
	{"sriovnetwork", `{ipam: dhcp}`, "needs a resource"},
	{"sriovnetwork", `{resource: vf, ipam: dhcp, railtune: {args: {note: "it's"}}}`, "apostrophe"},
	{"sriovnetwork", `{resource: vf, ipam: {type: static, note: "it's"}}`, "apostrophe"},
	{"sysctl.d", `{parent: "%d"}`, "takes in every interface"},
	{"dranet", `{rails: 33}`, "more than the 32 requests"},
	{"dranet", `{railtune: {sysctl: {net.ipv4.conf.IFNAME.rp_filter: 2}}}`, "DRANET has no field"},
	{"nads", `{}`, `"nads" is none of`},
}

func TestRefusedRails(t *testing.T) {
	for _, c := range refusedRails {
		r, err := Load([]byte(c.rails))
		if err != nil {
			t.Errorf("%s: %v", c.rails, err)
			continue
		}
		if made, err := r.Generate(c.kind); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s of %s: %v, want it to say %q\n%v", c.kind, c.rails, err, c.say, made)
		}
	}
}

func TestLoadRefusesUnknownFields(t *testing.T) {
	_, err := Load([]byte("rails: 2\nparrent: rdma%d\n"))
	if err == nil || !strings.Contains(err.Error(), "parrent") {
		t.Errorf("a misspelt field: %v", err)
	}
}

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		pattern string
		number  int
		want    string // "" for an error
	}{
		{"rdma%d", 7, "rdma7"},
		{"%02d-%d", 7, "07-7"},
		{"%02d", 107, "107"},
		{"fd61:%x::/64", 12, "fd61:c::/64"},
		{"10.61.%+1d.0", 0, "10.61.1.0"},
		{"%+10x", 6, "10"},
		{"100%%", 1, "100%"},
		{"plain", 1, "plain"},
		{"%", 1, ""},
		{"%s", 1, ""},
		{"%+d", 1, "1"},
		{"%-1d", 1, ""},
		{"%0999d", 1, ""},
	} {
		if got, err := expand(c.pattern, c.number); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("expand(%q, %d) = %q, %v; want %q", c.pattern, c.number, got, err, c.want)
		}
	}
}

// FuzzFromTuning: whatever conflist is converted, railtune's entry in it decodes, and it
// comes back as it is.
func FuzzFromTuning(f *testing.F) {
	f.Add(`{"name":"n","plugins":[{"type":"tuning","sysctl":{"net.ipv4.conf.all.arp_ignore":"2","net/ipv4/conf/IFNAME/arp_ignore":"1"}},{"type":"railtune","sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":null}}]}`)
	f.Add(`{"plugins":[{"type":"macvlan"},{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":"2"}},{"type":"tuning","mtu":1,"sysctl":null},{"type":"sbr","table":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := parseObject(text); err != nil || o.get("kind") != nil {
			return
		}
		made, err := FromTuning([]byte(text), Addition{})
		if err != nil {
			return
		}
		again, err := FromTuning([]byte(made.Files[0].Text), Addition{})
		if err != nil {
			t.Fatalf("refused: %v\n%s", err, made.Files[0].Text)
		}
		if again.Files[0].Text != made.Files[0].Text {
			t.Fatalf("changed:\n%s\n%s", made.Files[0].Text, again.Files[0].Text)
		}
	})
}

// FuzzYAML: no document makes it panic.
func FuzzYAML(f *testing.F) {
	for _, folder := range []string{"tuning", "rails"} {
		files, _ := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
		for _, file := range files {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				f.Fatal(err)
			}
			for _, one := range ar.Files {
				f.Add(string(one.Data))
			}
		}
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = FromTuning([]byte(text), Addition{})
		if r, err := Load([]byte(text)); err == nil {
			_, _ = r.Generate("nad")
		}
	})
}
