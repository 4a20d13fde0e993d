package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// mode is what a plugin's file has: everyone may read and start it.
const mode = 0o755

// mustBe is nil for a file with the same content as program that everybody may start. A
// symbolic link is none: what it leads to is somebody else's to change.
func mustBe(path, program string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm() != mode:
		return fmt.Errorf("%s is %s, not a file with mode %#o", path, info.Mode(), mode)
	}
	at, err := firstDifference(path, program)
	if err == nil && at >= 0 {
		err = fmt.Errorf("%s is another program than this one, from byte %d of it on", path, at)
	}
	return err
}

// firstDifference is where two files begin to differ, -1 where nowhere. The first is read
// from the disk where its pages are there: what was just written and synced is to be
// seen as it is after a restart.
func firstDifference(path, program string) (at int64, err error) {
	theirs, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer theirs.Close()
	ours, err := os.Open(program)
	if err != nil {
		return 0, fmt.Errorf("this program cannot read itself: %w", err)
	}
	defer ours.Close()
	// Advice only: a file system without pages on a disk does not follow it.
	_ = unix.Fadvise(int(theirs.Fd()), 0, 0, unix.FADV_DONTNEED)
	var a, b [64 << 10]byte
	for {
		n, err := full(theirs, a[:])
		if err != nil {
			return 0, err
		}
		m, err := full(ours, b[:])
		if err != nil {
			return 0, fmt.Errorf("this program cannot read itself: %w", err)
		}
		if !bytes.Equal(a[:n], b[:m]) {
			i := 0
			for i < min(n, m) && a[i] == b[i] {
				i++
			}
			return at + int64(i), nil
		}
		if n < len(a) {
			return -1, nil
		}
		at += int64(n)
	}
}

// full reads as much as there is, up to the buffer's length.
func full(r io.Reader, buf []byte) (int, error) {
	n, err := io.ReadFull(r, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
