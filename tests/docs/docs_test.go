//go:build docs

package docs

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// root is the top of the repository.
var root = cmp.Or(os.Getenv("RAILTUNE_DOCS"), "../..")

func TestMain(m *testing.M) { testbed.Main(m) }

// TestPages runs every block of every page, but those whose world is a cluster:
// tests/cluster has one, and runs them.
func TestPages(t *testing.T) {
	pages, err := Pages(root)
	if err != nil {
		t.Error(err)
	}
	ci, err := ReadCI(root)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range pages {
		t.Run(strings.TrimSuffix(p.Path, ".md"), func(t *testing.T) {
			for _, wrong := range p.CheckProse(root, ci) {
				t.Errorf("%s: %s", p.Path, wrong)
			}
			for _, blocks := range p.ByWorld() {
				if Cluster(blocks[0].World) {
					for _, b := range blocks {
						if err := b.CheckData(); err != nil {
							t.Errorf("%s:%d: %v", p.Path, b.Line, err)
						}
					}
					continue
				}
				t.Run("line"+fmt.Sprint(blocks[0].Line), func(t *testing.T) {
					runBlocks(t, p, blocks, ci)
				})
			}
		})
		for _, b := range p.Blocks {
			count[b.Language]++
		}
	}
	t.Logf("%d pages; blocks by language: %v", len(pages), count)
}

// runBlocks runs blocks that follow one another in one world.
func runBlocks(t *testing.T, p Page, blocks []Block, ci CI) {
	w := MustWorld(t, blocks[0].World)
	for _, b := range blocks {
		if err := b.Run(w.Shell, w.Dir, ci); err != nil {
			t.Errorf("%s:%d: %v", p.Path, b.Line, err)
		}
	}
}
