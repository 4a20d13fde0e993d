package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leaves are the fields of the schema that are railtune's own, by their paths.
func (s *schemaNode) leaves(prefix string) map[string]*schemaNode {
	all := map[string]*schemaNode{}
	for name, p := range s.Properties {
		switch {
		case prefix == "" && (!slices.Contains(ownFields, name) || slices.Contains([]string{"cniVersion", "name", "type", "prevResult"}, name)):
		case len(p.Properties) > 0 && name != "sysctl":
			maps.Copy(all, p.leaves(name+"."))
		default:
			all[prefix+name] = p
		}
	}
	return all
}

// defaults are what Default has, by the paths of the fields and as JSON has them.
func defaults(t *testing.T) map[string]any {
	t.Helper()
	d := Default()
	b, err := json.Marshal(map[string]any{
		"table": d.Table, "rulePriority": d.RulePriority, "supernets": []any{}, "mainTable": d.MainTable, "announce": d.Announce,
		"logFile": d.LogFile, "logLevel": d.LogLevel, "firewall.acceptRails": d.Firewall.AcceptRails,
		"verify.mode": d.Verify.Mode, "verify.peers": []any{}, "verify.peerMode": d.Verify.PeerMode, "verify.anycastMACs": []any{},
		"verify.requireReply": d.Verify.RequireReply, "verify.timeout": d.Verify.Timeout.String(), "verify.gid": d.Verify.GID,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSchemaFields: the schema has the fields of the code and no others, says of each
// what it is for, and has the code's defaults.
func TestSchemaFields(t *testing.T) {
	s := schemaOf(t)
	if got, want := slices.Sorted(maps.Keys(s.Properties)), slices.Sorted(slices.Values(slices.Concat(ownFields, foreignFields))); !slices.Equal(got, want) {
		t.Errorf("the schema's fields are %q, the code's %q", got, want)
	}
	for name, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("the schema does not say what %s is for", name)
		}
	}
	want, leaves := defaults(t), s.leaves("")
	for path, p := range leaves {
		if path == "sysctl" {
			continue
		}
		if p.Description == "" || !reflect.DeepEqual(p.Default, want[path]) {
			t.Errorf("%s: the schema says %q, default %#v; the code's is %#v", path, p.Description, p.Default, want[path])
		}
	}
	if len(leaves) != len(want)+1 {
		t.Errorf("%d fields, %d defaults", len(leaves), len(want))
	}
	for _, d := range Default().Sysctl {
		if p := s.Properties["sysctl"].Properties[d.Key.String()]; p == nil || p.Default != d.Value {
			t.Errorf("%s: the schema has %+v, the code's default is %q", d.Key, p, d.Value)
		}
	}
}

var tableRow = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| (.*?) \\| (.*) \\|$")

// TestConfigurationPage: the table of docs/configuration.md has each field, its
// default, its words and its limits, and the page names what is let through.
func TestConfigurationPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	leaves := schemaOf(t).leaves("")
	for _, row := range tableRow.FindAllStringSubmatch(page, -1) {
		path, says, text := row[1], row[2], row[3]
		p := leaves[path]
		if p == nil {
			t.Errorf("%s is in the table twice, or no field", path)
			continue
		}
		delete(leaves, path)
		if want := shownDefault(p.Default); says != want && path != "sysctl" {
			t.Errorf("%s: the page's default is %s, the code's %s", path, says, want)
		}
		for _, must := range mustSay(path, p) {
			if !strings.Contains(text, must) {
				t.Errorf("%s: the page does not say %s: %s", path, must, text)
			}
		}
	}
	for path := range leaves {
		t.Errorf("%s is not in the table", path)
	}
	for _, d := range Default().Sysctl {
		if want := "`" + d.Key.String() + "=" + d.Value + "`"; !strings.Contains(page, want) {
			t.Errorf("the page does not have the default %s", want)
		}
	}
	for _, name := range foreignFields {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not say that %s is let through", name)
		}
	}
	for _, b := range beyond {
		if !strings.Contains(page, "* "+b.name+"\n") {
			t.Errorf("the page does not say that the schema cannot say: %s", b.name)
		}
	}
}

// shownDefault is how the page writes a default.
func shownDefault(v any) string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return "`" + v + "`"
		}
	case float64, bool:
		return fmt.Sprint(v)
	}
	return "none"
}

// mustSay are the words and limits of a field.
func mustSay(path string, p *schemaNode) []string {
	var all []string
	for _, w := range p.Enum {
		if w != nil {
			all = append(all, fmt.Sprintf("`%s`", w))
		}
	}
	switch path {
	case "table":
		all = append(all, fmt.Sprintf("Below %d", FirstDerivedTable), "253, 254, 255")
	case "rulePriority":
		all = append(all, fmt.Sprintf("%v to %d", *p.Minimum, MaxRulePriority))
	case "verify.timeout":
		all = append(all, "At most "+MaxTimeout.String())
	case "verify.peers":
		all = append(all, fmt.Sprint(MaxPeers))
	}
	return all
}
