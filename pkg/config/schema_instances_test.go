package config

import (
	"encoding/json"
	"maps"
	"os"
	re "regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// schemaNode is an object of docs/schema.json, read as data.
type schemaNode struct {
	Ref               string `json:"$ref"`
	Description       string
	Type              any
	Default           any
	Enum, Examples    []any
	Minimum, Maximum  *float64
	Pattern           string
	Required          []string
	Properties        map[string]*schemaNode
	PatternProperties map[string]json.RawMessage // a schema, or false
	Items             *schemaNode
	AnyOf             []*schemaNode
}

func schemaOf(t *testing.T) *schemaNode {
	t.Helper()
	b, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	s := &schemaNode{}
	if err := json.Unmarshal(b, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// instances returns values the schema is about: on both sides of every limit, every
// word and its misspellings, and every type where it does not belong.
func (s *schemaNode) instances() []any {
	all := []any{nil, true, "", "x", 1, 1.5, []any{}, map[string]any{}, []any{1, nil}, map[string]any{"x": nil}}
	all = append(all, s.Examples...)
	if s.Default != nil {
		all = append(all, s.Default)
	}
	for _, v := range slices.Concat(s.Enum, s.Examples) {
		all = append(all, variants(v)...)
	}
	for _, limit := range []*float64{s.Minimum, s.Maximum} {
		if limit != nil {
			all = append(all, *limit-1, *limit, *limit+1, *limit+0.5)
		}
	}
	for _, a := range s.AnyOf {
		all = append(all, a.instances()...)
	}
	if s.Items != nil {
		for _, v := range s.Items.instances() {
			all = append(all, []any{v}, []any{v, v})
		}
	}
	for name, v := range s.members() {
		base := s.required()
		base[name] = v
		all = append(all, base)
	}
	return all
}

// members yields each property with each of its instances, and alone with a name
// that is not quite right.
func (s *schemaNode) members() func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		properties := maps.Clone(s.Properties)
		for pattern, raw := range s.PatternProperties {
			p := &schemaNode{}
			_ = json.Unmarshal(raw, p) // false stands for one without instances of its own
			for _, name := range language(pattern) {
				properties[name] = p
			}
		}
		for name, p := range properties {
			for _, v := range p.instances() {
				if !yield(name, v) {
					return
				}
			}
			for _, wrong := range variants(name) {
				if !yield(wrong.(string), p.Default) {
					return
				}
			}
		}
	}
}

// required makes an object with what must be in it.
func (s *schemaNode) required() map[string]any {
	o := map[string]any{}
	for _, name := range s.Required {
		o[name] = s.Properties[name].Examples[0]
	}
	return o
}

// variants are near v: mistakes in typing a word, the number beside it, the number as
// a word.
func variants(v any) []any {
	switch v := v.(type) {
	case string:
		return []any{v, v + " ", " " + v, v + "\n", v + "x", strings.ToUpper(v), strings.ToLower(v), v[:max(0, len(v)-1)], v[min(1, len(v)):], v + v, v + "é"}
	case float64:
		return []any{v, v - 1, v + 1, v + 0.5, -v}
	case []any:
		return []any{v, append(slices.Clone(v), v...)}
	}
	return []any{v}
}

// language lists the words of a pattern that has not many; of one with an open end,
// those that go no further.
func language(pattern string) []string {
	parsed, err := re.Parse(pattern, re.Perl)
	if err != nil {
		panic(err) // the validator has taken the pattern
	}
	return words(parsed)
}

func words(r *re.Regexp) []string {
	switch r.Op {
	case re.OpLiteral:
		return []string{string(r.Rune)}
	case re.OpCharClass:
		var all []string
		for i := 0; i < len(r.Rune); i += 2 {
			for c := r.Rune[i]; c <= r.Rune[i+1]; c++ {
				all = append(all, string(c))
			}
		}
		return all
	case re.OpCapture:
		return words(r.Sub[0])
	case re.OpQuest:
		return append(words(r.Sub[0]), "")
	case re.OpAlternate:
		var all []string
		for _, sub := range r.Sub {
			all = append(all, words(sub)...)
		}
		return all
	case re.OpConcat:
		all := []string{""}
		for _, sub := range r.Sub {
			var longer []string
			for _, head := range all {
				for _, tail := range words(sub) {
					longer = append(longer, head+tail)
				}
			}
			all = longer
		}
		return all
	}
	return []string{""} // beginning, end, nothing
}

// TestLanguage: the settings in the schema's patterns are found by their names.
func TestLanguage(t *testing.T) {
	got := language(`^net\.(ipv4\.(a|ab)|ipv[46]\.c)$`)
	slices.Sort(got)
	if want := []string{"net.ipv4.a", "net.ipv4.ab", "net.ipv4.c", "net.ipv6.c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := len(slices.Collect(maps.Keys(schemaOf(t).Properties["sysctl"].PatternProperties))); n < 10 {
		t.Errorf("only %d groups of settings", n)
	}
}
