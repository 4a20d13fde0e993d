package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/railtune/railtune/pkg/doctor"
	"github.com/railtune/railtune/pkg/doctor/check"
)

func notes(w io.Writer, r *doctor.Report) {
	if len(r.Namespace.NotLookedAt) == 0 && len(r.Ignored) == 0 {
		return
	}
	fmt.Fprintln(w, "\nnot looked at")
	for _, note := range r.Namespace.NotLookedAt {
		Wrap(w, "- ", note)
	}
	for _, code := range r.Ignored {
		Wrap(w, "- ", "ignored as asked: "+string(code))
	}
}

// findings groups what is alike: sixteen rails are often wrong in the same way.
func findings(w io.Writer, r *doctor.Report) {
	fmt.Fprintln(w)
	if len(r.Findings) == 0 {
		fmt.Fprintf(w, "no findings in %d ms\n", r.Milliseconds)
		return
	}
	var done []check.Code
	for _, f := range r.Findings {
		if slices.Contains(done, f.Code) {
			continue
		}
		done = append(done, f.Code)
		same := slices.DeleteFunc(slices.Clone(r.Findings), func(o check.Finding) bool { return o.Code != f.Code })
		group(w, f, same)
	}
	if r.Apply != "" {
		fmt.Fprintln(w, "or, for all rails at once, rules and proof included:")
		command(w, r.Apply)
		fmt.Fprintln(w)
	}
	count := fmt.Sprintf("%d findings", len(r.Findings))
	if len(r.Findings) == 1 {
		count = "1 finding"
	}
	fmt.Fprintf(w, "%s in %d ms; docs/doctor.md explains the codes\n", count, r.Milliseconds)
}

func group(w io.Writer, first check.Finding, same []check.Finding) {
	const shown = 4
	fmt.Fprintf(w, "%s %s\n", strings.ToUpper(string(first.Severity)), first.Code)
	for i, f := range same {
		if i == shown && len(same) > shown+1 {
			var rails []string
			for _, more := range same[i:] {
				rails = append(rails, more.Rail)
			}
			Wrap(w, "  ", "the same: "+strings.Join(rails, " "))
			break
		}
		Wrap(w, "  ", f.Summary)
		for k, line := range f.Evidence {
			if k == 8 {
				fmt.Fprintf(w, "    · and %d more\n", len(f.Evidence)-k)
				break
			}
			Wrap(w, "    · ", line)
		}
	}
	fmt.Fprintln(w, "  to mend it:")
	var said []string
	for _, f := range same {
		for _, line := range f.Remedy {
			if !slices.Contains(said, line) {
				said = append(said, line)
				command(w, line)
			}
		}
	}
	fmt.Fprintln(w)
}
