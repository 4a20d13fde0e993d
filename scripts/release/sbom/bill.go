package main

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
)

// The parts of CycloneDX 1.6 that are used (ECMA-424, clause 8).
type (
	bill struct {
		Schema       string       `json:"$schema"`
		BOMFormat    string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	license struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// describe makes the bill of a binary from its build information, its SHA-256, and
// what `go mod graph` prints in its module. There is no serial number: it would have
// to be another one each time, and the binary's hash is in the bill.
func describe(info *debug.BuildInfo, version, date, sum, graph string) (*bill, error) {
	self := component{
		Type: "application", Name: info.Main.Path, Version: version, PURL: purl(info.Main.Path, version),
		Hashes: []hash{{"SHA-256", sum}}, Licenses: make([]license, 1),
	}
	self.Licenses[0].License.ID = "Apache-2.0"
	self.Ref = self.PURL
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" || strings.HasPrefix(s.Key, "GO") {
			self.Properties = append(self.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	std := component{Type: "library", Name: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
	std.PURL = purl("stdlib", std.Version)
	std.Ref = std.PURL
	b := &bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{date, self}, Components: []component{std},
	}
	refs := map[string]string{info.Main.Path: self.Ref} // by what go mod graph calls a module
	for _, m := range info.Deps {
		if m.Replace != nil || m.Sum == "" {
			return nil, fmt.Errorf("%s is not what its authors published: a release is built from modules with a hash in go.sum", m.Path)
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version), Properties: []property{{"go:sum", m.Sum}}}
		c.Ref = c.PURL
		refs[m.Path+"@"+m.Version] = c.Ref
		b.Components = append(b.Components, c)
	}
	b.Dependencies = dependencies(refs, graph)
	// Every module needs the standard library, whatever the graph says about it.
	for i := range b.Dependencies {
		b.Dependencies[i].DependsOn = append(b.Dependencies[i].DependsOn, std.Ref)
	}
	b.Dependencies = append(b.Dependencies, dependency{Ref: std.Ref})
	return b, nil
}

// dependencies is the module graph as far as its modules are in the binary. A
// requirement of an older version than the one selected is one of the selected.
func dependencies(refs map[string]string, graph string) []dependency {
	selected := map[string]string{} // by path
	edges := map[string]map[string]bool{}
	for name, ref := range refs {
		path, _, _ := strings.Cut(name, "@")
		selected[path] = ref
		edges[ref] = map[string]bool{}
	}
	for line := range strings.Lines(graph) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		to, _, _ = strings.Cut(to, "@")
		if ref, is := refs[from]; is && selected[to] != "" {
			edges[ref][selected[to]] = true
		}
	}
	var all []dependency
	for _, ref := range slices.Sorted(maps.Keys(edges)) {
		all = append(all, dependency{ref, slices.Sorted(maps.Keys(edges[ref]))})
	}
	return all
}

// purl names a Go module as the package URL specification's type golang does.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}
