package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Page is one file of documentation.
type Page struct {
	Path   string // from the top of the repository
	Blocks []Block
	Prose  string // all that is in no block
}

// Block is one fenced block of a page.
type Block struct {
	Line     int // of the opening fence, from 1
	Language string
	Text     string   // without the page's indentation
	World    string   // what the last world comment before it says
	Exit     int      // how its commands end
	From     string   // the file of the repository that it is a part of, or ""
	File     string   // the name it is to be written to, or ""
	Before   []string // commands to run first, which readers do not see
}

// languages are those that this package knows what to do with.
var languages = []string{"console", "sh", "json", "jsonc", "yaml", "text"}

var (
	fence   = regexp.MustCompile("^( *)(```+|~~~+) *([^ `]*)(.*)$")
	comment = regexp.MustCompile(`^<!-- *(world|exit|file|from|run): *(.*?) *-->$`)
)

// Pages reads all Markdown of the repository at root. Its error is about some pages;
// the others are complete all the same.
func Pages(root string) ([]Page, error) {
	var pages []Page
	var errs []error
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && slices.Contains([]string{".git", "bin", "dist", "node_modules"}, e.Name()):
			return filepath.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		p, err := Parse(name, string(b))
		pages, errs = append(pages, p), append(errs, err)
		return nil
	})
	return pages, errors.Join(append(errs, err)...)
}

// Parse finds the blocks of a page. Errors name the line of what it does not
// understand.
func Parse(path, text string) (p Page, err error) {
	p.Path = path
	complain := func(line int, format string, args ...any) (Page, error) {
		return p, fmt.Errorf("%s:%d: %s", path, line+1, fmt.Sprintf(format, args...))
	}
	var next Block // what comments have said of the block to come
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if c := comment.FindStringSubmatch(lines[i]); c != nil {
			switch c[1] {
			case "world":
				next.World = c[2]
			case "file":
				next.File = c[2]
			case "from":
				next.From = c[2]
			case "run":
				next.Before = append(next.Before, c[2])
			case "exit":
				if next.Exit, err = strconv.Atoi(c[2]); err != nil {
					return complain(i, "%v", err)
				}
			}
			continue
		}
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			p.Prose += lines[i] + "\n"
			continue
		}
		indent, mark := open[1], open[2]
		b := next
		b.Line, b.Language = i+1, open[3]
		if !slices.Contains(languages, b.Language) {
			return complain(i, "a block of language %q, want one of %s", b.Language, strings.Join(languages, ", "))
		}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != mark; i++ {
			b.Text += strings.TrimPrefix(lines[i], indent) + "\n"
		}
		if i == len(lines) {
			return complain(b.Line-1, "the block has no end")
		}
		p.Blocks = append(p.Blocks, b)
		next = Block{World: b.World}
	}
	if next.File != "" || next.From != "" || next.Exit != 0 || next.Before != nil {
		return complain(len(lines)-1, "a comment is about a block that does not come")
	}
	return p, nil
}

// Command is one command of a block.
type Command struct {
	Line string // may have several lines
	Want string // what it prints, in console blocks
}

// Commands are what a console or sh block runs.
func (b Block) Commands() ([]Command, error) {
	var all []Command
	lines := strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if b.Language == "console" {
			rest, isCommand := strings.CutPrefix(line, "$ ")
			if !isCommand {
				if len(all) == 0 {
					return nil, fmt.Errorf("%q comes before any command", line)
				}
				all[len(all)-1].Want += line + "\n"
				continue
			}
			line = rest
		} else if s := strings.TrimSpace(line); s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		for !complete(line) {
			if i++; i == len(lines) {
				return nil, fmt.Errorf("%q has no end", line)
			}
			line += "\n" + strings.TrimPrefix(lines[i], "> ")
		}
		all = append(all, Command{Line: line})
	}
	return all, nil
}

var heredoc = regexp.MustCompile(`<<-?'?([A-Z]+)'?`)

// complete tells whether a command ends here: no line to be continued, no quote and
// no here-document open.
func complete(command string) bool {
	if h := heredoc.FindStringSubmatch(command); h != nil {
		return strings.HasSuffix(command, "\n"+h[1])
	}
	open := strings.Count(command, "'")%2 == 1
	for _, more := range []string{`\`, "|", "&&", " do", " then"} {
		open = open || strings.HasSuffix(strings.TrimRight(command, " \n"), more)
	}
	return !open
}

// ByWorld splits a page's blocks where another world begins.
func (p Page) ByWorld() (all [][]Block) {
	for i, b := range p.Blocks {
		if i == 0 || b.World != p.Blocks[i-1].World {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], b)
	}
	return all
}

// Cluster tells whether a world has an API server, and so is for tests/cluster. Further
// words give it more: "sriov" the SR-IOV operator's type, "containerd" a runtime.
func Cluster(world string) bool { return strings.HasPrefix(world, "cluster") }
