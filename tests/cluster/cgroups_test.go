//go:build cluster

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroups is what the names of the pods' parent control groups start with; the pid of
// the run follows.
const cgroups = "railtune-"

func cgroup() string { return fmt.Sprint(cgroups, os.Getpid()) }

// removeCgroups removes what runc made for this run, and for earlier ones that were
// killed: control groups are the one thing of the tests that no namespace holds. No
// process is left in them.
func removeCgroups() error {
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} { // version 1, version 2
		found, err := filepath.Glob(pattern + cgroups + "*")
		errs = append(errs, err)
		for _, top := range found {
			owner := strings.TrimPrefix(filepath.Base(top), cgroups)
			if _, err := os.Stat("/proc/" + owner); err == nil && filepath.Base(top) != cgroup() {
				continue
			}
			errs = append(errs, removeTree(top))
		}
	}
	return errors.Join(errs...)
}

// removeTree removes folders only, the innermost first: the files in them are the
// kernel's.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		err = errors.Join(err, unix.Rmdir(dir))
	}
	return err
}
