package doctor_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/doctor/check"
	"github.com/railtune/railtune/pkg/doctor/explain"
)

// keep is set to write the generated parts of the documentation.
const keep = "RAILTUNE_KEEP"

// elsewhere are the codes that another test than TestBroken provokes.
var elsewhere = []check.Code{check.GIDMissing}

// TestCodes: every code has a broken setup, and every documented one exists.
func TestCodes(t *testing.T) {
	var want strings.Builder
	want.WriteString("| code | severity | means |\n|---|---|---|\n")
	for _, i := range check.Codes() {
		mark := ""
		still := true
		broken := false
		for _, x := range breakages {
			if x.code == i.Code {
				broken, still = true, still && x.still
			}
		}
		switch {
		case slices.Contains(elsewhere, i.Code):
			mark = " ²"
		case !broken:
			t.Errorf("no test breaks a setup so that %s is found", i.Code)
		case still:
			mark = " ¹"
		}
		fmt.Fprintf(&want, "| `%s`%s | %s | %s |\n", i.Code, mark, i.Severity, i.Means)
	}
	for _, x := range breakages {
		if !check.Known(string(x.code)) {
			t.Errorf("%s has a code that is not listed: %s", x.name, x.code)
		}
	}
	documented(t, "../../docs/doctor.md", "codes", want.String())
}

// TestSymptoms: the documentation says what --explain says, and names only findings that exist.
func TestSymptoms(t *testing.T) {
	var want strings.Builder
	for _, s := range explain.Symptoms() {
		fmt.Fprintf(&want, "### %s\n\n%s\n\n", s.Name, s.Says)
		for _, c := range s.Causes {
			var list []string
			for _, code := range c.Codes {
				list = append(list, "`"+string(code)+"`")
			}
			fmt.Fprintf(&want, "* %s: %s\n", c.Why, strings.Join(list, ", "))
		}
		want.WriteString("\n")
	}
	documented(t, "../../docs/troubleshooting.md", "symptoms", want.String())
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## First looks")
	for part := range strings.SplitSeq(table, "`") {
		if strings.Count(part, "-") > 0 && strings.Trim(part, "abcdefghijklmnopqrstuvwxyz-") == "" && strings.HasPrefix(part, "-") == false && !check.Known(part) {
			t.Errorf("docs/troubleshooting.md names %s, which doctor does not find", part)
		}
	}
}

// documented compares a generated part of a page, or writes it.
func documented(t *testing.T, path, part, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	start, end := "<!-- "+part+" -->\n", "<!-- end "+part+" -->"
	before, rest, ok := strings.Cut(page, start)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks %s … %s", path, start, end)
	}
	if have == want {
		return
	}
	if os.Getenv(keep) == "" {
		t.Errorf("%s is not what the program says; %s=1 go test ./pkg/doctor writes it:\n%s", path, keep, want)
		return
	}
	if err := os.WriteFile(path, []byte(before+start+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
