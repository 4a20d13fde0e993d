package install

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// mode is what a plugin's file has: everyone may read and start it.
const mode = 0o755

// Sum is the SHA-256 of a program.
type Sum [sha256.Size]byte

// String is the sum as sha256sum prints it.
func (s Sum) String() string { return fmt.Sprintf("%x", s[:]) }

// mustBe is nil for a file with this content that everybody may start. A symbolic link
// is none: what it leads to is somebody else's to change.
func mustBe(path string, want Sum) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm() != mode:
		return fmt.Errorf("%s is %s, not a file with mode %#o", path, info.Mode(), mode)
	}
	got, err := sumOf(path)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has SHA-256 %s, not %s as this program", path, got, want)
	}
	return nil
}

// sumOf reads a file, from the disk where its pages are there: what was just written
// and synced is to be seen as it is after a restart.
func sumOf(path string) (sum Sum, err error) {
	file, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer file.Close()
	// Advice only: a file system without pages on a disk does not follow it.
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return sum, err
	}
	return Sum(h.Sum(nil)), nil
}
