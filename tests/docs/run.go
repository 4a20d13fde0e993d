package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Run does with a block what its language asks for: dir is the working directory of
// the shell. Commands that CI runs by itself are only looked up. All errors are
// returned, each with the command's line and what it printed.
func (b Block) Run(s *Shell, dir string, ci CI) error {
	if b.File != "" {
		if err := writeFile(dir, b.File, b.Text); err != nil {
			return err
		}
	}
	for _, command := range b.Before {
		if err := (Block{Language: "sh"}).runCommand(s, Command{Line: command}); err != nil {
			return fmt.Errorf("before it: $ %s\n%w", command, err)
		}
	}
	switch b.Language {
	case "console", "sh":
		return b.runCommands(s, ci)
	}
	return b.CheckData()
}

func writeFile(dir, name, text string) error {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

func (b Block) runCommands(s *Shell, ci CI) error {
	commands, err := b.Commands()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range commands {
		is, err := ci.Runs(c.Line)
		if !is {
			err = b.runCommand(s, c)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("$ %s\n%w", c.Line, err))
		}
	}
	return errors.Join(errs...)
}

func (b Block) runCommand(s *Shell, c Command) error {
	printed, exit, err := s.Run(c.Line)
	switch {
	case err != nil:
		return fmt.Errorf("%w; it printed:\n%s", err, printed)
	case exit != b.Exit:
		return fmt.Errorf("it ended with %d, want %d, and printed:\n%s", exit, b.Exit, printed)
	case b.Language == "console" && !Match(c.Want, printed):
		return fmt.Errorf("it printed\n%s\nand the page has\n%s", printed, c.Want)
	}
	return nil
}

// NewDir makes below top the folder in which commands start, with what they read of
// the repository.
func NewDir(top, repository string) (dir string, err error) {
	dir = filepath.Join(top, "railtune")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, sub := range []string{"packaging", "docs"} {
		if err := os.CopyFS(filepath.Join(dir, sub), os.DirFS(filepath.Join(repository, sub))); err != nil {
			return "", err
		}
	}
	dist, err := filepath.Abs(filepath.Join(repository, "dist"))
	if err != nil {
		return "", err
	}
	return dir, os.Symlink(dist, filepath.Join(dir, "dist"))
}
