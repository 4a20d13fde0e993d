package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Self is the program that runs, whatever has become of its file since.
const Self = "/proc/self/exe"

// State is what is in the folder.
type State struct {
	Path    string // of the plugin
	Changed bool   // false where it was there already
}

// Install copies the file program to dir/name. The old one, if any, serves until the
// new one is written, on disk, and has been read back and found the same; then one
// rename(2) puts the new in its place. Plugins that run go on with the old. After an
// error the old one is still there. What else has the name is replaced as well, be it
// a broken copy or a symbolic link, but not a folder. Installations at the same time
// wait for each other.
func Install(program, dir, name string) (State, error) {
	f, err := openFolder(dir)
	if err != nil {
		return State{}, err
	}
	defer f.close()
	if err := errors.Join(f.mustRun(), f.sweep(name)); err != nil {
		return State{}, err
	}
	state := State{Path: filepath.Join(dir, name)}
	if mustBe(state.Path, program) == nil {
		return state, nil
	}
	copied, err := f.copy(program, name)
	if err != nil {
		return State{}, err
	}
	err = mustBe(copied, program)
	if err == nil {
		err = os.Rename(copied, state.Path)
	}
	if err != nil {
		return State{}, errors.Join(fmt.Errorf("the new %s cannot take its place, and what was there stays: %w", name, err), os.Remove(copied))
	}
	state.Changed = true
	return state, f.sync()
}

// Check is nil when dir/name is the same as the file program, and can be started. It
// changes nothing and waits for nobody.
func Check(program, dir, name string) error {
	return mustBe(filepath.Join(dir, name), program)
}

// copy writes the program to disk, under a name that no runtime looks for, and returns
// its path.
func (f *folder) copy(program, name string) (path string, err error) {
	in, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(f.path, unfinished(name))
	if err != nil {
		return "", fmt.Errorf("%s cannot be written to: %w", f.path, err)
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(mode) // not by the name, and whatever the umask
	}
	if err == nil {
		err = out.Sync()
	}
	// Closed before it gets its name: the kernel starts no program that somebody has
	// open for writing (ETXTBSY, execve(2)).
	if err = errors.Join(err, out.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("writing the new %s to %s: %w", name, f.path, err), os.Remove(out.Name()))
	}
	return out.Name(), nil
}
