package install

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

const name = "plugin"

// program writes something to install, with a mode that must not be taken over.
func program(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustInstall(t *testing.T, program, dir string, changed bool) {
	t.Helper()
	state, err := Install(program, dir, name)
	if err != nil {
		t.Fatal(err)
	}
	if state.Changed != changed || state.Path != filepath.Join(dir, name) {
		t.Errorf("the state is %+v, want one with Changed %v", state, changed)
	}
	mustHold(t, dir, program)
	if err := Check(program, dir, name); err != nil {
		t.Error(err)
	}
}

// mustHold asserts that a folder has a program under its name, executable, and nothing
// else but the others named.
func mustHold(t *testing.T, dir, program string, others ...string) {
	t.Helper()
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("there is %.40q (%v), want %.40q", got, err, want)
	}
	if info, err := os.Lstat(filepath.Join(dir, name)); err != nil {
		t.Error(err)
	} else if info.Mode() != 0o755 {
		t.Errorf("the plugin is %v, want a file with mode 0755", info.Mode())
	}
	mustList(t, dir, append(others, name)...)
}

func mustList(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func TestInstall(t *testing.T) {
	old := unix.Umask(0o077) // as some nodes have it; the plugin must be for all
	defer unix.Umask(old)
	dir := t.TempDir()
	one, two := program(t, "one"), program(t, "two, longer")
	mustInstall(t, one, dir, true)
	mustInstall(t, one, dir, false)
	mustInstall(t, two, dir, true)
	if err := Check(one, dir, name); err == nil {
		t.Error("the folder has the other program, and Check does not say so")
	}
}

// TestReplace installs over what is no proper plugin.
func TestReplace(t *testing.T) {
	good := program(t, "good")
	for what, make := range map[string]func(path string) error{
		"a broken copy":        func(path string) error { return os.WriteFile(path, []byte("go"), 0o755) },
		"not executable":       func(path string) error { return os.WriteFile(path, []byte("good"), 0o644) },
		"a link to the same":   func(path string) error { return os.Symlink(good, path) },
		"a link that dangles":  func(path string) error { return os.Symlink("/nowhere", path) },
		"a link to a folder":   func(path string) error { return os.Symlink("/", path) },
		"left by killed ones":  func(path string) error { return os.WriteFile(filepath.Dir(path)+"/.plugin.17.tmp", nil, 0o600) },
		"nobody may read it":   func(path string) error { return os.WriteFile(path, []byte("good"), 0) },
		"a socket of the name": func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o755, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := make(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := Check(good, dir, name); err == nil {
				t.Error("Check finds nothing wrong with it")
			}
			mustInstall(t, good, dir, true)
		})
	}
}

// TestOthersStay has files in the folder that look a little like ours.
func TestOthersStay(t *testing.T) {
	dir := t.TempDir()
	others := []string{".other.1.tmp", ".plugin", ".plugin.tmp", "plugin.1.tmp", "plugin2", "tuning"}
	for _, other := range others {
		if err := os.WriteFile(filepath.Join(dir, other), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := program(t, "program")
	mustInstallBeside(t, p, dir, others)
	if _, err := Uninstall(dir, name, "x"); err == nil {
		t.Error("a file that is no program was removed")
	}
	mustHold(t, dir, p, others...)
}

func mustInstallBeside(t *testing.T, program, dir string, others []string) {
	t.Helper()
	if _, err := Install(program, dir, name); err != nil {
		t.Fatal(err)
	}
	mustHold(t, dir, program, others...)
}

// TestOldStays lets the installation fail, for real, where a file is there already.
func TestOldStays(t *testing.T) {
	testbed.NeedRoot(t)
	for _, c := range []struct {
		what, options, says string
		remount             bool
		size                int
	}{
		{"disk full", "size=64k", "no space left", false, 1 << 20},
		{"read-only", "ro", "read-only file system", true, 1},
		{"noexec", "noexec", "mounted noexec", true, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			mount := func(options string, flags uintptr) {
				t.Helper()
				if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
					t.Fatal(err)
				}
			}
			if c.remount {
				mount("", 0)
			} else {
				mount(c.options, 0)
			}
			defer func() {
				if err := unix.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			}()
			old := program(t, "old")
			mustInstall(t, old, dir, true)
			if c.remount {
				flags := map[string]uintptr{"ro": unix.MS_RDONLY, "noexec": unix.MS_NOEXEC}[c.options]
				mount("", unix.MS_REMOUNT|flags)
			}
			_, err := Install(program(t, strings.Repeat("x", c.size)), dir, name)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want one with %q", err, c.says)
			}
			mustHold(t, dir, old)
		})
	}
}

func TestNoPlace(t *testing.T) {
	p, dir := program(t, "program"), t.TempDir()
	if _, err := Install(p, filepath.Join(dir, "missing"), name); err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Errorf("into a folder that is not there: %v", err)
	}
	if _, err := Install(p, p, name); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("into a file: %v", err)
	}
	if _, err := Install(filepath.Join(dir, "missing"), dir, name); err == nil {
		t.Error("a program that cannot be read is installed")
	}
	if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(p, dir, name); err == nil || !strings.Contains(err.Error(), "what was there stays") {
		t.Errorf("over a folder: %v", err)
	}
	if _, err := Uninstall(dir, name, "x"); err == nil {
		t.Error("a folder is uninstalled")
	}
	mustList(t, dir, name)
}

// TestUninstall uses the test's own binary, a Go program with build information.
func TestUninstall(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	dir := t.TempDir()
	mustUninstall := func(want bool) {
		t.Helper()
		removed, err := Uninstall(dir, name, info.Path)
		if err != nil || removed != want {
			t.Errorf("removed is %v, %v; want %v", removed, err, want)
		}
		mustList(t, dir)
		if err := Gone(dir, name); err != nil {
			t.Error(err)
		}
	}
	mustUninstall(false)
	mustInstall(t, Self, dir, true)
	if err := Gone(dir, name); err == nil {
		t.Error("what is installed counts as gone")
	}
	if _, err := Uninstall(dir, name, info.Path+"/other"); err == nil || !strings.Contains(err.Error(), "names the package") {
		t.Errorf("a program of somebody else's: %v", err)
	}
	mustHold(t, dir, Self)
	if err := os.WriteFile(filepath.Join(dir, ".plugin.1.tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustUninstall(true)
	mustUninstall(false)
	if err := os.Symlink(Self, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if _, err := Uninstall(dir, name, info.Path); err == nil {
		t.Error("a link to a program of ours was removed")
	}
	mustList(t, dir, name)
}

// TestMainPackage breaks the build information at every place that is read.
func TestMainPackage(t *testing.T) {
	info, _ := debug.ReadBuildInfo()
	whole, err := os.ReadFile(Self)
	if err != nil {
		t.Fatal(err)
	}
	if got := mainPackage(whole); got != info.Path {
		t.Errorf("this program is made from %q, want %q", got, info.Path)
	}
	at := bytes.LastIndex(whole, []byte(infoMagic))
	for i := len(whole[at:]) - 1; i > 0; i -= 1 + i/8 {
		_ = mainPackage(whole[:at+i]) // does not panic
	}
	for _, none := range []string{"", "#!/bin/sh\n", "\x7fELF", "\x7fELF" + infoMagic} {
		if got := mainPackage([]byte(none)); got != "" {
			t.Errorf("%q is made from %q", none, got)
		}
	}
}
