package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const page = "<!-- world: pods rails=4 -->\n# Title\n\n```console\n$ a \\\n    b\nprinted …\n\n$ cat <<EOF\n$ not a command\nEOF\n```\n" +
	"1. list\n\n   <!-- no comment of ours -->\n<!-- exit: 2 -->\n   ```sh\n   # why\n   c |\n     d\n   ```\n<!-- file: x.json -->\n<!-- run: true -->\n\n~~~json\n{}\n~~~\n"

func TestParse(t *testing.T) {
	p, err := Parse("x.md", page)
	if err != nil {
		t.Fatal(err)
	}
	p.Prose = ""
	const world = "pods rails=4"
	want := []Block{
		{Line: 4, Language: "console", World: world, Text: "$ a \\\n    b\nprinted …\n\n$ cat <<EOF\n$ not a command\nEOF\n"},
		{Line: 17, Language: "sh", World: world, Exit: 2, Text: "# why\nc |\n  d\n"},
		{Line: 25, Language: "json", World: world, File: "x.json", Before: []string{"true"}, Text: "{}\n"},
	}
	if !reflect.DeepEqual(p.Blocks, want) {
		t.Fatalf("\n got %+v\nwant %+v", p.Blocks, want)
	}
	for i, want := range [][]Command{
		{{"a \\\n    b", "printed …\n\n"}, {"cat <<EOF\n$ not a command\nEOF", ""}},
		{{"c |\n  d", ""}},
	} {
		if got, err := p.Blocks[i].Commands(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, say := range map[string]string{
		"```\nx\n```\n":        `x.md:1: a block of language ""`,
		"a\n```bash\nx\n```\n": `x.md:2: a block of language "bash"`,
		"```text\nx\n":         "has no end",
		"<!-- exit: one -->\n": "invalid syntax",
		"<!-- exit: 1 -->\n":   "a block that does not come",
		"<!-- file: x -->\n```text\n```\n<!-- file: y -->\n": "a block that does not come",
	} {
		if _, err := Parse("x.md", text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want %q", text, err, say)
		}
	}
	for _, text := range []string{"printed\n$ a\n", "$ a \\\n", "$ cat <<EOF\n"} {
		if c, err := (Block{Language: "console", Text: text}).Commands(); err == nil {
			t.Errorf("%q: %q", text, c)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"", "", true},
		{"\n", "\n", true},
		{"", "x\n", false},
		{"a  \n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"net… at …:01 (1.0)\n", "net1 at 02:01 (1.0)\n", true},
		{"net… at …:01 (1.0)\n", "net1 at 02:01 (1x0)\n", false},
		{"a…c\n", "a\nc\n", false},
		{"a\n…\nc\n", "a\nb\nb\nc\n", true},
		{"a\n…\nc\n", "a\nc\n", true},
		{"a\n…\n", "a\n", true},
		{"…\n", "", true},
		{"a\n\nb\n", "a\nb\n", false},
	} {
		if Match(c.want, c.got) != c.same {
			t.Errorf("%q and %q: want %v", c.want, c.got, c.same)
		}
	}
}

func TestCheckData(t *testing.T) {
	for _, c := range []struct{ language, text, say string }{
		{"json", `{"type":"railtune"}`, ""},
		{"json", `{"type":"railtune","tabel":1}`, "tabel"},
		{"json", `{"type":"sbr"} {"type":"railtune","table":254}`, "table is 254"},
		{"json", `{"x":1}`, "neither a network"},
		{"json", `{"type":}`, "invalid"},
		{"jsonc", "{ // a rail\n \"type\":\"railtune\", \"verify\":{\"peers\":[ // \"x\"\n ]}}", ""},
		{"jsonc", "{\"type\":\"railtune\",\"logFile\":\"//\"}", "logFile"},
		{"json", `{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"macvlan"},{"type":"railtune"}]}`, ""},
		{"json", `{"cniVersion":"1.0.0","name":"n","plugins":[]}`, "without plugins"},
		{"json", `{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"railtune","mtu":1}]}`, "mtu"},
		{"yaml", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nspec:\n  config: '{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"plugins\":[{\"type\":\"railtune\",\"mtu\":1}]}'\n", "mtu"},
		{"yaml", "kind: SriovNetwork\nspec:\n  metaPlugins: |\n    {\"type\":\"rdma\"},\n    {\"type\":\"railtune\",\"mtu\":1}\n", "mtu"},
		{"yaml", "apiVersion: v1\nkind: Pod\n---\nkind: SriovNetwork\nspec:\n  metaPlugins: '{'\n", "metaPlugins"},
		{"yaml", "rails: 16\n", "neither a network"},
	} {
		err := Block{Language: c.language, Text: c.text}.CheckData()
		if c.say == "" && err != nil || c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.say)
		}
	}
}

// TestCI: targets CI calls, and what they depend on, are run; others are not.
func TestCI(t *testing.T) {
	ci, err := ReadCI("../..")
	if err != nil {
		t.Fatal(err)
	}
	for command, says := range map[string]struct{ is, good bool }{
		"make test":                         {true, true},
		"make fuzz FUZZTIME=1m":             {true, true},
		"make build  # why":                 {true, true},
		"make bin/railtune":                 {true, true},
		"make bench":                        {true, false},
		"scripts/vm/run -n 4 bin uname":     {true, true},
		"scripts/vm/nothing":                {false, true},
		"make nonsense":                     {true, false},
		"railtune doctor":                   {false, true},
		"RAILTUNE_KEEP=1 make test":         {true, true},
		"make test TESTFLAGS='-run A/B -v'": {true, true},
	} {
		if is, err := ci.Runs(command); is != says.is || (err == nil) != says.good {
			t.Errorf("%s: %v, %v", command, is, err)
		}
	}
}

func TestProse(t *testing.T) {
	ci, err := ReadCI("../..")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse("docs/x.md", "`make test`, `make x lab`, [a](errors.md), [b](../README.md#two-commands), [c](nowhere.md)\n"+
		"[d](errors.md#nothing) [e](https://example.com/x#y) [f](../testdata)\n<!-- from: go.mod -->\n```text\n`make nonsense`\n```\n"+
		"<!-- from: go.mod -->\n```text\nmodule github.com/railtune/railtune\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.CheckProse("../..", ci), "\n")
	for _, say := range []string{`no target "x"`, "nowhere.md", "errors.md#nothing: no such heading", "not in go.mod"} {
		if !strings.Contains(got, say) {
			t.Errorf("%s does not say %q", got, say)
		}
	}
	if n := strings.Count(got, "\n"); n != 3 {
		t.Errorf("%d more lines than one: %s", n, got)
	}
}

// TestVersions: docs/compatibility.md has the versions that the tests are built from.
func TestVersions(t *testing.T) {
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../scripts/clients/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var modules string
	for _, f := range append(files, "../../scripts/tools/go.mod") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		modules += string(b)
	}
	rows := regexp.MustCompile("(?m)^\\| .* \\| ([0-9.]+) \\| `([^`]*)` \\|").FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		if !strings.Contains(modules, row[2]+" v"+row[1]+"\n") && !strings.Contains(modules, row[2]+" v"+row[1]+" // indirect") {
			t.Errorf("the page has %s %s, and no go.mod of scripts has", row[2], row[1])
		}
	}
	if len(rows) < 8 {
		t.Errorf("only %d versions found on the page", len(rows))
	}
}
