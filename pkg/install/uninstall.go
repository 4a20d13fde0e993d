package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Uninstall removes dir/name, if it is there: a Go program made from the package main
// (its import path), of whatever version. Anything else of that name is somebody's and
// stays, with an error. Copies that killed installations left are removed as well.
func Uninstall(dir, name, main string) (removed bool, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return false, err
	}
	defer f.close()
	if err := f.sweep(name); err != nil {
		return false, err
	}
	path := filepath.Join(dir, name)
	found, err := isOf(path, name, main)
	if err != nil || !found {
		return false, err
	}
	if err := os.Remove(path); err != nil {
		return false, fmt.Errorf("%s cannot be removed: %w", path, err)
	}
	return true, f.sync()
}

// Gone is nil when there is nothing called name in the folder.
func Gone(dir, name string) error {
	path := filepath.Join(dir, name)
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s is there", path)
}

// isOf is true for a program made from the package, false where there is nothing, and
// an error for anything else.
func isOf(path, name, main string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is %s, which %s is not installed as: look at it and remove it by hand", path, info.Mode(), name)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if made := mainPackage(program); made != main {
		return false, fmt.Errorf("%s is no %s, or a broken one (its build information names the package %q): look at it and remove it by hand", path, name, made)
	}
	return true, nil
}
