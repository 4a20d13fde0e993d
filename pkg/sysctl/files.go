package sysctl

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Files reaches the settings. Paths are relative to /proc/sys, as Key.Path gives them.
type Files interface {
	// Read returns the value without the line end.
	Read(path string) (string, error)
	// Write replaces the value; it never creates a file.
	Write(path, value string) error
	Exists(path string) bool
}

// Proc is the kernel's own tree. What it shows is the network namespace of the
// calling thread, so callers that changed it must hold the thread.
type Proc struct {
	Root string // "" for /proc/sys
}

func (p Proc) full(path string) string {
	if p.Root == "" {
		return "/proc/sys/" + path
	}
	return strings.TrimSuffix(p.Root, "/") + "/" + path
}

// Read returns the value without the line end. Errors carry the full path and
// the errno.
func (p Proc) Read(path string) (string, error) {
	path = p.full(path)
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var buf [4096]byte // the kernel prints at most a page of a setting
	n, err := again(func() (int, error) { return unix.Read(fd, buf[:]) })
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return strings.TrimRight(string(buf[:n]), "\n"), nil
}

// Write replaces the value by one write(2), the only unit the kernel parses a
// setting in. Errors carry the full path and the errno.
func (p Proc) Write(path, value string) error {
	path = p.full(path)
	fd, err := open(path, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	n, err := again(func() (int, error) { return unix.Write(fd, []byte(value)) })
	if err == nil && n != len(value) {
		err = unix.EIO
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// Exists tells whether the kernel has the setting for that interface.
func (p Proc) Exists(path string) bool {
	return unix.Access(p.full(path), unix.F_OK) == nil
}

// open is unix.Open, without the runtime's poller that os.Open would start.
func open(path string, flags int) (int, error) {
	return again(func() (int, error) { return unix.Open(path, flags|unix.O_CLOEXEC, 0) })
}

// again repeats a call that a signal interrupted: the runtime sends signals to
// preempt goroutines.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
