package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	inline  = regexp.MustCompile("`([^`\n]+)`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noWord  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// CheckProse looks at what is not run: blocks that are from a file must be in it, links must lead to files and
// headings of the repository at root, and what make is asked for must exist.
func (p Page) CheckProse(root string, ci CI) (wrong []string) {
	for _, b := range p.Blocks {
		if b.From == "" {
			continue
		}
		if whole, err := os.ReadFile(filepath.Join(root, b.From)); err != nil || !strings.Contains(string(whole), b.Text) {
			wrong = append(wrong, fmt.Sprintf("the block in line %d is not in %s (%v)", b.Line, b.From, err))
		}
	}
	for _, m := range inline.FindAllStringSubmatch(p.Prose, -1) {
		if _, err := ci.Runs(m[1]); errors.Is(err, errNoTarget) {
			wrong = append(wrong, err.Error())
		}
	}
	for _, m := range link.FindAllStringSubmatch(p.Prose, -1) {
		if strings.Contains(m[1], "://") {
			continue // no test depends on somebody else's server
		}
		path, anchor, _ := strings.Cut(m[1], "#")
		file := filepath.Join(root, filepath.Dir(p.Path), path)
		if path == "" {
			file = filepath.Join(root, p.Path)
		}
		b, err := os.ReadFile(file)
		if info, statErr := os.Stat(file); statErr == nil && info.IsDir() {
			err = nil
		}
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("a link to %s: %v", m[1], err))
		case anchor != "" && !slices.Contains(anchors(string(b)), anchor):
			wrong = append(wrong, fmt.Sprintf("a link to %s: no such heading", m[1]))
		}
	}
	return wrong
}

// anchors are the names by which the headings of a page can be linked to.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := noWord.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(strings.TrimSpace(plain), " ", "-"))
	}
	return all
}
