package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

var built = debug.BuildInfo{
	GoVersion: "go1.26.8",
	Path:      "example.com/Self/cmd",
	Main:      debug.Module{Path: "example.com/Self"},
	Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.2.0", Sum: "h1:a="},
		{Path: "example.com/b", Version: "v0.3.0+incompatible", Sum: "h1:b="},
		{Path: "example.com/c", Version: "v0.0.1", Sum: "h1:c="},
	},
	Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}, {Key: "-trimpath", Value: "true"}},
}

// graph has an older version of a module that is required and not selected, one that is
// not in the binary, and what Go itself is in it.
const graph = `example.com/Self example.com/a@v1.2.0
example.com/Self example.com/tests@v1.0.0
example.com/Self go@1.26.8
example.com/a@v1.2.0 example.com/b@v0.2.0
example.com/a@v1.1.0 example.com/c@v0.0.1
example.com/tests@v1.0.0 example.com/c@v0.0.1
example.com/b@v0.3.0+incompatible example.com/c@v0.0.1
`

func TestDescribe(t *testing.T) {
	b, err := describe(&built, "v1.0.0", "2026-01-02T03:04:05Z", "00ff", graph)
	if err != nil {
		t.Fatal(err)
	}
	const (
		self = "pkg:golang/example.com/self@v1.0.0"
		std  = "pkg:golang/stdlib@1.26.8"
		a    = "pkg:golang/example.com/a@v1.2.0"
		two  = "pkg:golang/example.com/b@v0.3.0%2Bincompatible"
		c    = "pkg:golang/example.com/c@v0.0.1"
	)
	want := []dependency{{a, []string{two, std}}, {two, []string{c, std}}, {c, []string{std}}, {self, []string{a, std}}, {std, nil}}
	if !reflect.DeepEqual(b.Dependencies, want) {
		t.Errorf("the graph is\n%v, want\n%v", b.Dependencies, want)
	}
	var refs []string
	for _, m := range b.Components {
		refs = append(refs, m.Ref)
	}
	if want := []string{std, a, two, c}; !reflect.DeepEqual(refs, want) {
		t.Errorf("the components are %q, want %q", refs, want)
	}
	if p := b.Metadata.Component; p.Ref != self || p.Hashes[0].Content != "00ff" || !reflect.DeepEqual(p.Properties, []property{{"go:build:GOARCH", "arm64"}}) {
		t.Errorf("the program is %+v", p)
	}
}

// TestUnpublished has a module from somebody's folder.
func TestUnpublished(t *testing.T) {
	for _, m := range []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a=", Replace: &debug.Module{Path: "../a"}},
		{Path: "example.com/a", Version: "v1.0.0"},
	} {
		info := built
		info.Deps = []*debug.Module{m}
		if _, err := describe(&info, "v1", "", "", ""); err == nil || !strings.Contains(err.Error(), "example.com/a") {
			t.Errorf("%+v is in the bill: %v", m, err)
		}
	}
}

func TestMustBeStatic(t *testing.T) {
	if err := mustBeStatic("/bin/sh"); err == nil || !strings.Contains(err.Error(), "dynamically") {
		t.Errorf("the system's shell: %v", err)
	}
	for flags, says := range map[string]string{"": "not stripped", "-s -w": ""} {
		binary := filepath.Join(t.TempDir(), "sbom")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", flags, "-o", binary, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := mustBeStatic(binary); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("linked with %q: %v, want %q", flags, err, says)
		}
	}
}
