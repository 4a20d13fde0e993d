// Package evidence keeps what the tests with real clients saw pass, and turns it
// into the tables of docs/clients.md: which verb, at which version of the CNI
// specification, through which version of which program.
package evidence

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Versions are the versions of the CNI specification railtune serves.
var Versions = []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// verbs in the order in which a runtime uses them; a cell lists them so.
var verbs = []string{"STATUS", "ADD", "CHECK", "GC", "DEL"}

// Table is a set of observations. Its zero value is empty; all methods may be
// called from several tests at once.
type Table struct {
	mutex sync.Mutex
	seen  map[row]map[string]map[string]bool // row, CNI version, verb
}

// row is a client with the network it was used for.
type row struct{ client, network string }

// Passed records that a client's call with this verb did what it should for a
// network. Call it after the assertions, or the table will say what is not true.
func (t *Table) Passed(client, network, cniVersion string, passed ...string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	r := row{client, network}
	if t.seen == nil {
		t.seen = map[row]map[string]map[string]bool{}
	}
	if t.seen[r] == nil {
		t.seen[r] = map[string]map[string]bool{}
	}
	if t.seen[r][cniVersion] == nil {
		t.seen[r][cniVersion] = map[string]bool{}
	}
	for _, verb := range passed {
		t.seen[r][cniVersion][verb] = true
	}
}

// Markdown renders the table: a line for each client and network, in the order of
// their names and so the same for each run, and a column for each version of the
// specification.
func (t *Table) Markdown() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "| client | network | %s |\n", strings.Join(Versions, " | "))
	fmt.Fprintf(&b, "|%s\n", strings.Repeat(" --- |", 2+len(Versions)))
	for _, r := range slices.SortedFunc(maps.Keys(t.seen), func(a, b row) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.client), strings.ToLower(b.client)), cmp.Compare(a.network, b.network))
	}) {
		fmt.Fprintf(&b, "| %s | %s |", r.client, r.network)
		for _, v := range Versions {
			fmt.Fprintf(&b, " %s |", strings.Join(inOrder(t.seen[r][v]), " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// inOrder lists verbs as runtimes use them; unknown ones come last.
func inOrder(set map[string]bool) []string {
	rank := func(verb string) int {
		if i := slices.Index(verbs, verb); i >= 0 {
			return i
		}
		return len(verbs)
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// VersionOf names a Go program with the version of the module it was built from,
// as in "multus 4.3.0": what ran, not what a go.mod asked for.
func VersionOf(name, binary string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("the version of %s: %w", binary, err)
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != "" && (info.Path == m.Path || strings.HasPrefix(info.Path, m.Path+"/")) {
			return name + " " + strings.TrimPrefix(m.Version, "v"), nil
		}
	}
	return "", fmt.Errorf("%s was built from %s, and its build information names no module of that", binary, info.Path)
}

// VersionOfDependency is VersionOf for a program of this project that was built
// around somebody else's module.
func VersionOfDependency(name, binary, module string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("the version of %s: %w", binary, err)
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return name + " " + strings.TrimPrefix(m.Version, "v"), nil
		}
	}
	return "", fmt.Errorf("%s was built without %s", binary, module)
}
