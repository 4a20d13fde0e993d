package present

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHasNFT is every kind of kernel, as a tree of its files.
func TestHasNFT(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	list := "lib/modules/" + unix.ByteSliceToString(u.Release[:]) + "/modules.builtin"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"no modules at all: nothing can be loaded", nil, true},
		{"loaded", map[string]string{"proc/modules": "nf_tables 1 0 - Live 0x0", "sys/module/nf_tables/refcnt": "0", list: "kernel/fs/fuse/fuse.ko"}, true},
		{"built in", map[string]string{"proc/modules": "", list: "kernel/net/netfilter/nfnetlink.ko\nkernel/net/netfilter/nf_tables.ko"}, true},
		{"a module that is not loaded", map[string]string{"proc/modules": "", list: "kernel/net/netfilter/nfnetlink.ko"}, false},
		{"nothing to know it from", map[string]string{"proc/modules": ""}, true},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := hasNFT(root); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
