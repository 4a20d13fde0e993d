package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// knownConfigurations are the JSON objects in the project's tests that are, or are to
// be refused as, a configuration: string literals of this package's tests, and what
// stands in braces in plans, scenarios and the fuzzer's corpus.
func knownConfigurations(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	add := func(path string, texts func(t *testing.T, path string) []string) {
		for _, s := range texts(t, path) {
			all = append(all, []byte(s))
		}
	}
	for _, dir := range []struct {
		path, ending string
		texts        func(t *testing.T, path string) []string
	}{
		{".", "_test.go", literals},
		{"testdata", "", braces},
		{"../../testdata", ".txtar", braces},
	} {
		err := filepath.WalkDir(dir.path, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(path, dir.ending) {
				add(path, dir.texts)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) { // the fuzzer has found nothing yet
			t.Fatal(err)
		}
	}
	return all
}

// literals are the string literals of a Go file that begin with a brace.
func literals(t *testing.T, path string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(s, "{") {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

// braces are the outermost objects in a text that has them between other words. Those
// of results and whole networks are among them, which are configurations to be
// refused; quoted ones of the corpus are taken out of their quotes.
func braces(t *testing.T, path string) (all []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if inner, quoted := strings.CutPrefix(text, "go test fuzz v1\n[]byte("); quoted {
		s, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(inner), ")"))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return []string{s}
	}
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '{':
			if depth == 0 {
				start = i
			}
			depth++
		case '}':
			if depth == 1 {
				all = append(all, text[start:i+1])
			}
			depth = max(0, depth-1)
		}
	}
	return all
}
