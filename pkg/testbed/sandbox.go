package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// scratch holds the files of a run; it is private to the sandbox.
const scratch = "/run/railtune-testbed"

// sandboxed is the environment variable that tells a process it is inside; its
// children are too, and inherit it.
const sandboxed = "RAILTUNE_SANDBOX"

// ErrNotRoot says that the sandbox, and so every kernel test, needs root.
var ErrNotRoot = errors.New("network namespaces need root")

// Main runs a package's tests inside the sandbox. Use it as
//
//	func TestMain(m *testing.M) { testbed.Main(m) }
//
// Without root the tests run outside, where those that call NeedRoot skip.
func Main(m *testing.M) {
	if err := Enter(); err != nil && !errors.Is(err, ErrNotRoot) {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// NeedRoot skips a test that needs the kernel when the process is not root, and
// fails it when the package's TestMain forgot Main.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	if !inside() {
		t.Fatal("not in the sandbox: add func TestMain(m *testing.M) { testbed.Main(m) } to this package")
	}
}

// Enter replaces the process by itself inside the sandbox, under the same pid,
// and returns nil there. Called inside, it does nothing. It returns ErrNotRoot
// without root.
//
// exec is what makes this possible in Go: a mount namespace belongs to one
// thread until exec has ended the others.
func Enter() error {
	if inside() {
		return nil
	}
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // never unlocked: on failure this thread must not run anything else
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a mount and a network namespace of its own (CAP_SYS_ADMIN): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making / private: %w", err)
	}
	if err := shadow("/run", "netns", "cni", filepath.Base(scratch)); err != nil {
		return err
	}
	if err := shadow("/var/lib", "cni"); err != nil {
		return err
	}
	if err := shadow("/var/log"); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("lo of the sandbox: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("lo of the sandbox: %w", err)
	}
	return unix.Exec(self, os.Args, append(os.Environ(), sandboxed+"=1"))
}

func inside() bool { return os.Getenv(sandboxed) != "" }

// shadow puts a private directory over dir that shows the host's entries, except
// those named fresh: these are new and empty. Nothing is made on the host, not
// even a mount point.
func shadow(dir string, fresh ...string) error {
	host, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", dir, err)
	}
	defer unix.Close(host)
	below := fmt.Sprintf("/proc/self/fd/%d", host) // reaches dir under the mount that covers it
	entries, err := os.ReadDir(below + "/.")
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("a private %s: %w", dir, err)
	}
	for _, name := range fresh {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if slices.Contains(fresh, e.Name()) {
			continue
		}
		if err := expose(filepath.Join(below, e.Name()), filepath.Join(dir, e.Name()), e); err != nil {
			return fmt.Errorf("showing %s/%s in the sandbox: %w", dir, e.Name(), err)
		}
	}
	return nil
}

// expose makes the host's entry from visible at to. Links are copied, all else
// is bound; an entry that vanished meanwhile (/run is busy) is left out.
func expose(from, to string, e os.DirEntry) error {
	switch {
	case e.Type()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return ignoreGone(err)
		}
		return os.Symlink(target, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		f.Close()
	}
	return ignoreGone(unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""))
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
