package evidence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// docs is where the tables are kept, from the folder of a test package.
var docs = filepath.Join("..", "..", "docs", "clients.md")

// Keep compares the table with the section of docs/clients.md that has its name,
// or replaces that section where RAILTUNE_KEEP is set. A table that differs is an
// error: another version of a client, or something that passed no longer.
func (t *Table) Keep(section string) error {
	old, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	text, err := replaceSection(string(old), section, t.Markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", docs, err)
	}
	if text == string(old) {
		return nil
	}
	if os.Getenv("RAILTUNE_KEEP") == "" {
		return errors.New("docs/clients.md has another table than the one above: if the new one is right, run this again with RAILTUNE_KEEP=1 and commit it")
	}
	return os.WriteFile(docs, []byte(text), 0o644)
}

// replaceSection puts body between the two comments that mark a section.
func replaceSection(text, section, body string) (string, error) {
	begin, end := fmt.Sprintf("<!-- %s -->\n", section), fmt.Sprintf("<!-- end %s -->", section)
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("no section %q: it lies between %q and %q", section, strings.TrimSpace(begin), end)
	}
	return before + begin + body + end + after, nil
}
