package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// grid writes rows in aligned columns; the last one is cut where the line would be wider
// than Width.
func grid(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]+2-utf8.RuneCountInString(cell)))
			}
		}
		fmt.Fprintln(w, cut(strings.TrimRight(line.String(), " ")))
	}
}

func cut(line string) string {
	if utf8.RuneCountInString(line) <= Width {
		return line
	}
	return string([]rune(line)[:Width-1]) + "…"
}

// Wrap writes text with a prefix, and what does not fit into Width under it.
func Wrap(w io.Writer, prefix, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(prefix))
	line := prefix
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width {
			fmt.Fprintln(w, line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	fmt.Fprintln(w, line)
}

// command writes one line of a remedy. A command that is too wide goes on after a
// backslash, so that it can still be pasted.
func command(w io.Writer, text string) {
	const indent = "    "
	if strings.HasPrefix(text, "# ") {
		// A comment goes on as a comment.
		line := indent + "#"
		for _, word := range strings.Fields(text[2:]) {
			if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width {
				fmt.Fprintln(w, line)
				line = indent + "#"
			}
			line += " " + word
		}
		fmt.Fprintln(w, line)
		return
	}
	line := indent
	for i, word := range strings.Split(text, " ") {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width-2 {
			fmt.Fprintln(w, line+" \\")
			line = indent + "  " + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}
