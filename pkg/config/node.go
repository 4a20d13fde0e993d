package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
)

// kind is the type of a JSON value, as people call it in a message.
type kind string

const (
	null    kind = "null"
	boolean kind = "a boolean"
	number  kind = "a number"
	text    kind = "a string"
	list    kind = "a list"
	object  kind = "an object"
)

// node is a JSON value with its path in the configuration. Structs and
// encoding/json's own decoding would not do: they match names in any case and
// let the last of two equal keys win.
type node struct {
	path string // "" for the whole configuration, else for example "supernets[1].gw"
	raw  []byte // valid JSON, without blanks around it
}

// member is one name and value of an object.
type member struct {
	node
	name     string
	repeated bool // the name came before in the same object
}

// syntax tells whether stdin is exactly one JSON object.
func syntax(stdin []byte) error {
	var value json.RawMessage
	if err := json.Unmarshal(stdin, &value); err != nil {
		var at *json.SyntaxError
		if len(bytes.TrimSpace(stdin)) == 0 {
			return cnierr.New(cnierr.Decode, "the configuration on stdin is empty; give a JSON object such as {\"type\":\"railtune\"}")
		}
		if errors.As(err, &at) {
			before := stdin[:min(int(at.Offset), len(stdin))]
			line := bytes.Count(before, []byte("\n")) + 1
			column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
			return cnierr.New(cnierr.Decode, "the configuration on stdin is not JSON: line %d, column %d: %w", line, column, err)
		}
		return cnierr.New(cnierr.Decode, "the configuration on stdin is not JSON: %w", err)
	}
	if k := (node{raw: value}).kind(); k != object {
		return cnierr.New(cnierr.Decode, "the configuration on stdin is %s; give a JSON object such as {\"type\":\"railtune\"}", k)
	}
	return nil
}

func (n node) kind() kind {
	switch n.raw[0] {
	case 'n':
		return null
	case 't', 'f':
		return boolean
	case '"':
		return text
	case '[':
		return list
	case '{':
		return object
	}
	return number
}

// members returns the object's content in its order.
func (n node) members() []member {
	var all []member
	seen := map[string]bool{}
	n.walk(func(name string, value node) {
		value.path = name
		if n.path != "" {
			value.path = n.path + "." + name
		}
		all = append(all, member{node: value, name: name, repeated: seen[name]})
		seen[name] = true
	})
	return all
}

// fields returns the members of an object that are known, given once and not
// null. Unknown and repeated ones are findings.
func (n node) fields(r *report, owner string, known ...string) []member {
	var all []member
	for _, m := range n.members() {
		switch {
		case !slices.Contains(known, m.name):
			r.unknown(m, known, owner)
		case m.repeated:
			r.add("%s is given twice; give it once", m.path)
		case m.kind() != null:
			all = append(all, m)
		}
	}
	return all
}

// elements returns the list's content.
func (n node) elements() []node {
	var all []node
	n.walk(func(_ string, value node) {
		value.path = n.path + "[" + strconv.Itoa(len(all)) + "]"
		all = append(all, value)
	})
	return all
}

// walk visits the values of an object or a list. Errors cannot occur: syntax
// has seen the whole.
func (n node) walk(visit func(name string, value node)) {
	dec := json.NewDecoder(bytes.NewReader(n.raw))
	open, _ := dec.Token()
	for dec.More() {
		name := ""
		if open == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return
			}
			name, _ = key.(string)
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return
		}
		visit(name, node{raw: raw})
	}
}

// want notes a finding unless the value is of kind k.
func (n node) want(r *report, k kind, what string) bool {
	if n.kind() == k {
		return true
	}
	r.add("%s is %s, %s; give %s: %s", n.path, n.kind(), n.show(), k, what)
	return false
}

// text takes a string.
func (n node) text(r *report, to *string) bool {
	if n.kind() != text {
		r.add("%s is %s, %s; give a string in quotes", n.path, n.kind(), n.show())
		return false
	}
	*to = n.str()
	return true
}

// str returns the content of a string.
func (n node) str() (s string) {
	_ = json.Unmarshal(n.raw, &s)
	return s
}

// flag takes true or false.
func (n node) flag(r *report, to *bool) {
	switch string(n.raw) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		r.add("%s is %s, %s; give true or false, without quotes", n.path, n.kind(), n.show())
	}
}

// integer takes a whole number from low to high, written in plain digits.
func (n node) integer(r *report, low, high int64) (int64, bool) {
	if n.kind() != number {
		r.add("%s is %s, %s; give a whole number from %d to %d, without quotes", n.path, n.kind(), n.show(), low, high)
		return 0, false
	}
	v, err := strconv.ParseInt(string(n.raw), 10, 64)
	if err != nil || v < low || v > high {
		r.add("%s is %s; give a whole number from %d to %d", n.path, n.show(), low, high)
		return 0, false
	}
	return v, true
}

// oneOf takes one of a few words.
func (n node) oneOf(r *report, to *string, words ...string) {
	choice := quoteAll(words, " or ")
	if n.kind() != text {
		r.add("%s is %s, %s; give %s", n.path, n.kind(), n.show(), choice)
		return
	}
	for _, w := range words {
		if n.str() == w {
			*to = w
			return
		}
	}
	r.add("%s is %s; give %s", n.path, n.show(), choice)
}

// show returns the value as it stands in the configuration, cut where it is long.
func (n node) show() string {
	if n.kind() == text {
		return quote(n.str())
	}
	var b bytes.Buffer
	_ = json.Compact(&b, n.raw)
	if b.Len() <= maxShown {
		return b.String()
	}
	return strings.ToValidUTF8(b.String()[:maxShown], "") + "…"
}

// maxShown limits, in bytes, how much of a value a message repeats.
const maxShown = 60

func quote(s string) string {
	if len(s) > maxShown {
		return strconv.Quote(strings.ToValidUTF8(s[:maxShown], "")) + "…"
	}
	return strconv.Quote(s)
}

func quoteAll(words []string, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(last)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(w))
	}
	return b.String()
}
