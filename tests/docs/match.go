package docs

import (
	"regexp"
	"strings"
)

// Match tells whether a command printed what the page says: … stands for any text of
// a line, a line of … alone for any lines, and blanks at the ends of lines do not
// count.
func Match(want, got string) bool {
	var pattern strings.Builder
	for _, line := range trimmed(want) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(".*")
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	all := strings.Join(trimmed(got), "\n")
	if all != "" {
		all += "\n"
	}
	return regexp.MustCompile(`^(?:` + pattern.String() + `)$`).MatchString(all)
}

// trimmed are the lines of a text, without the blanks at their ends and without empty
// lines at the beginning and the end.
func trimmed(text string) []string {
	text = strings.Trim(text, "\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	return lines
}
