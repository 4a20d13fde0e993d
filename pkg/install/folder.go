package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is a locked folder of plugins. The lock (flock(2)) is on the folder itself:
// it leaves no file, and the kernel releases it when its holder dies. So whoever holds
// it knows that unfinished copies in the folder are nobody's.
type folder struct {
	path string
	file *os.File
}

// openFolder waits for the lock. The folder is never made: one that is not there is
// none that a runtime looks into.
func openFolder(path string) (*folder, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: give the one the runtime has its CNI plugins in "+
			"(bin_dir of containerd, plugin_dirs of CRI-O)", path)
	case err != nil:
		return nil, fmt.Errorf("the folder of plugins cannot be opened: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s cannot be locked against other installations: %w", path, err)
	}
	return &folder{path, f}, nil
}

func (f *folder) close() { f.file.Close() }

// sync makes what happened to the names in the folder survive a power failure.
func (f *folder) sync() error {
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("%s cannot be written to disk: %w", f.path, err)
	}
	return nil
}

// unfinished is the pattern of the names under which copies are made. Runtimes start
// plugins by name and read no others, least of all hidden ones.
func unfinished(name string) string { return "." + name + ".*.tmp" }

// sweep removes copies that killed installations left.
func (f *folder) sweep(name string) error {
	left, err := filepath.Glob(filepath.Join(f.path, unfinished(name)))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range left {
		if err := os.Remove(file); err != nil {
			errs = append(errs, fmt.Errorf("what a killed installation left cannot be removed: %w", err))
		}
	}
	return errors.Join(errs...)
}

// mustRun is nil where programs in the folder can be started.
func (f *folder) mustRun() error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.file.Fd()), &s); err != nil {
		return fmt.Errorf("the file system of %s cannot be asked: %w", f.path, err)
	}
	if s.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is on a file system mounted noexec: a runtime could not start a plugin from it", f.path)
	}
	return nil
}
