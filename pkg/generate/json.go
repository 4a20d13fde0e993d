package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// object is a JSON object that keeps its order, and the text of its values: what people
// wrote comes out as they wrote it.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// set gives a member a value, in its place where it has one and else at the end.
func (o *object) set(name string, value any) {
	raw := marshal(value)
	if at := o.index(name); at >= 0 {
		(*o)[at].value = raw
		return
	}
	*o = append(*o, member{name, raw})
}

func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == name })
}

func (o object) get(name string) json.RawMessage {
	if at := o.index(name); at >= 0 {
		return o[at].value
	}
	return nil
}

func (o *object) remove(name string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.name == name })
}

// text is the member's string, or "" where it is none.
func (o object) text(name string) (s string) {
	_ = json.Unmarshal(o.get(name), &s) // another kind is no string
	return s
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, marshal(m.name)...)
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads an object. A name that comes twice is an error: which of the two
// counts depends on who reads it.
func (o *object) UnmarshalJSON(b []byte) error {
	*o = object{}
	dec := json.NewDecoder(bytes.NewReader(b))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("%.40s is no JSON object", b)
	}
	for dec.More() {
		var m member
		name, err := dec.Token()
		if err != nil {
			return err
		}
		m.name = name.(string) // in an object every other token is one
		if err := dec.Decode(&m.value); err != nil {
			return err
		}
		if o.index(m.name) >= 0 {
			return fmt.Errorf("%q is given twice; give it once", m.name)
		}
		*o = append(*o, m)
	}
	return nil
}

// parseObject reads exactly one object.
func parseObject(text string) (object, error) {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, err
	}
	return o, nil
}

// marshal writes what cannot fail to be written, and leaves <, > and & readable.
func marshal(value any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err) // only strings, numbers, lists and objects are given
	}
	return bytes.TrimSpace(b.Bytes())
}

// pretty is the text of a value for people, with a line end.
func pretty(value any) string {
	var b bytes.Buffer
	if err := json.Indent(&b, marshal(value), "", "  "); err != nil {
		panic(err) // marshal has written it
	}
	b.WriteByte('\n')
	return b.String()
}
