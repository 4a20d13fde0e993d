package rdma

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sysfs is a descriptor of the directory class/infiniband, and of what keeps it.
type sysfs struct {
	mount, class int
}

// openSysfs makes a sysfs for the calling thread's namespace. Where that is refused
// (no CAP_SYS_ADMIN, as in most containers; before Linux 5.2 there is no fsopen) it is
// /sys, which in a container is the container's own. A /sys of another namespace than
// the caller's cannot pass for it: device names are unique in the kernel, so reading
// a device that it does not show fails.
func openSysfs() (sysfs, error) {
	mount, err := mountSysfs()
	if err != nil {
		mount, err = unix.Open("/sys", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return sysfs{}, fmt.Errorf("no sysfs to read RDMA devices from: open /sys: %w", err)
	}
	class, err := unix.Openat(mount, "class/infiniband", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(mount)
		return sysfs{}, fmt.Errorf("no RDMA in sysfs: open class/infiniband: %w", err)
	}
	return sysfs{mount: mount, class: class}, nil
}

// mountSysfs returns a mount that is attached nowhere: no mount table shows it, and
// closing the descriptor ends it.
func mountSysfs() (int, error) {
	context, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|
		unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

func (s sysfs) close() {
	if s.mount != s.class { // the zero value has none
		_ = unix.Close(s.class)
		_ = unix.Close(s.mount)
	}
}

// read returns a file's first line. Every file here is shorter than the buffer.
func (s sysfs) read(name string) (string, error) {
	fd, err := unix.Openat(s.class, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open /sys/class/infiniband/%s: %w", name, err)
	}
	defer unix.Close(fd)
	var buf [128]byte
	for {
		n, err := unix.Read(fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read /sys/class/infiniband/%s: %w", name, err)
		}
		line, _, _ := strings.Cut(string(buf[:n]), "\n")
		return line, nil
	}
}

// zeroGID is what gids/N holds for an entry that is not in use
// (drivers/infiniband/core/sysfs.c, show_port_gid).
const zeroGID = "0000:0000:0000:0000:0000:0000:0000:0000"

// GIDs yields the entries in use of a port's GID table, by index. A table has up to
// some thousand entries and a file for each, so reading stops when the caller does,
// and what belongs to an entry is read only where it is in use. The kernel gives a new
// GID the lowest free index. An error is the last that is yielded.
func (v *View) GIDs(p Port) iter.Seq2[GID, error] {
	return func(yield func(GID, error) bool) {
		for n := 0; ; n++ {
			g, err := v.sysfs.gid(p.dir(), n)
			switch {
			case errors.Is(err, unix.ENOENT) && n > 0:
				return // the table's end
			case errors.Is(err, errEmpty):
				continue
			}
			if !yield(g, err) || err != nil {
				return
			}
		}
	}
}

// dir is the port's directory below class/infiniband.
func (p Port) dir() string { return p.Device + "/ports/" + strconv.Itoa(p.Number) }

// errEmpty says that an entry of the GID table is not in use.
var errEmpty = errors.New("not in use")

func (s sysfs) gid(dir string, n int) (GID, error) {
	index := strconv.Itoa(n)
	text, err := s.read(dir + "/gids/" + index)
	if err != nil {
		return GID{}, err
	}
	if text == zeroGID {
		return GID{}, errEmpty
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return GID{}, fmt.Errorf("/sys/class/infiniband/%s/gids/%s: %w", dir, index, err)
	}
	version, err := s.read(dir + "/gid_attrs/types/" + index)
	if unused(err) {
		return GID{}, errEmpty // went while it was read
	}
	if err != nil {
		return GID{}, err
	}
	netdev, err := s.read(dir + "/gid_attrs/ndevs/" + index)
	if err != nil && !unused(err) {
		return GID{}, err
	}
	return GID{Index: n, Addr: addr.Unmap(), Version: version, NetDev: netdev}, nil
}

// unused tells the errors with which gid_attrs says that there is no such thing: EINVAL
// and, from the GID cache, ENODATA (drivers/infiniband/core/sysfs.c, _show_port_gid_attr).
func unused(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODATA)
}
