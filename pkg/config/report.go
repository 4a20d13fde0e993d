package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config/spell"
)

// report collects findings, and notes about what is right but worth saying, one
// printable line each.
type report struct{ lines, notes []string }

// maxDetails limits how many findings are listed: the error goes into pod
// events and logs.
const maxDetails = 32

// add notes a finding. A path holds the user's own keys, so whatever could
// break the line is replaced.
func (r *report) add(format string, args ...any) {
	r.lines = append(r.lines, printable(format, args...))
}

// note says something about a value that is taken all the same.
func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, printable(format, args...))
}

func printable(format string, args ...any) string {
	return strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) {
			return '?'
		}
		return c
	}, fmt.Sprintf(format, args...))
}

// because adds a reason to the last finding.
func (r *report) because(reason string) {
	r.lines[len(r.lines)-1] += " (" + reason + ")"
}

// unknown notes a field that nobody knows, and which was probably meant.
func (r *report) unknown(m member, known []string, owner string) {
	if near := spell.Nearest(m.name, known); near != "" {
		r.add("unknown field %s; did you mean %s?", quote(m.path), quote(near))
		return
	}
	r.add("unknown field %s; the fields of %s are %s", quote(m.path), owner, quoteAll(known, " and "))
}

// err returns nil, or all findings as one error.
func (r *report) err() error {
	switch n := len(r.lines); {
	case n == 0:
		return nil
	case n == 1:
		return cnierr.New(cnierr.Config, "%s", r.lines[0])
	default:
		listed := r.lines
		if n > maxDetails {
			listed = append(listed[:maxDetails:maxDetails], fmt.Sprintf("and %d more", n-maxDetails))
		}
		return cnierr.New(cnierr.Config, "%s (and %d more)", r.lines[0], n-1).With(strings.Join(listed, "\n"))
	}
}
