package evidence

import (
	"os"
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	var table Table
	table.Passed("Multus 4", "bridge", "0.3.1", "ADD")
	table.Passed("cnitool 1", "macvlan", "1.1.0", "DEL", "GC", "ADD")
	table.Passed("cnitool 1", "macvlan", "0.4.0", "CHECK", "ADD")
	table.Passed("cnitool 1", "macvlan", "0.4.0", "ADD")
	const want = `| client | network | 0.3.1 | 0.4.0 | 1.0.0 | 1.1.0 |
| --- | --- | --- | --- | --- | --- |
| cnitool 1 | macvlan |  | ADD CHECK |  | ADD GC DEL |
| Multus 4 | bridge | ADD |  |  |  |
`
	if got := table.Markdown(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReplaceSection(t *testing.T) {
	const text = "intro\n<!-- a -->\nold\n<!-- end a -->\nrest\n"
	got, err := replaceSection(text, "a", "new\n")
	if want := strings.Replace(text, "old", "new", 1); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if again, err := replaceSection(got, "a", "new\n"); err != nil || again != got {
		t.Errorf("not stable: %q, %v", again, err)
	}
	for _, broken := range []string{"", "<!-- a -->\n", "<!-- end a -->\n<!-- a -->\n"} {
		if _, err := replaceSection(broken, "a", ""); err == nil {
			t.Errorf("%q has no section, and no error", broken)
		}
	}
}

func TestVersionOfWhatIsNoProgram(t *testing.T) {
	file := t.TempDir() + "/script"
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if v, err := VersionOf("script", file); err == nil {
		t.Errorf("version %q, want an error", v)
	}
}
