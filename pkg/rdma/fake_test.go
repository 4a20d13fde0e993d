package rdma

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeSysfs is the tree below class/infiniband in a folder of plain files, for what no
// real device does on demand: RoCE v1 entries, entries that go while they are read,
// a table of five. The errors of gid_attrs (EINVAL) it has not; an attribute of such an
// entry is a folder, whose reading is EISDIR, or missing.
type fakeSysfs struct{ dir string }

// entry is one row of a fake GID table.
type entry struct{ gid, version, netdev string }

// device writes a device with one port and its GID table; a row of "" is not in use.
func (f fakeSysfs) device(t *testing.T, name string, table ...entry) Port {
	t.Helper()
	p := Port{Device: name, Number: 1, Protocol: "roce"}
	for n, e := range table {
		if e.gid == "" {
			e.gid = zeroGID
		}
		for file, content := range map[string]string{"gids": e.gid, "gid_attrs/types": e.version, "gid_attrs/ndevs": e.netdev} {
			path := filepath.Join(f.dir, p.dir(), file, fmt.Sprint(n))
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if err == nil && content != "" {
				err = os.WriteFile(path, []byte(content+"\n"), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// view opens the tree as Open does the real one, without netlink.
func (f fakeSysfs) view(t *testing.T) *View {
	t.Helper()
	fd, err := unix.Open(f.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &View{sysfs: sysfs{mount: -1, class: fd}}
}
