// Package rdma shows the RDMA devices of a network namespace: their ports, which
// network interface a port belongs to, and the port's GID table. It changes nothing.
//
// # Two sources
//
// Devices and ports come over netlink (RDMA_NLDEV_CMD_GET and _PORT_GET,
// drivers/infiniband/core/nldev.c): the kernel answers for the namespace of the
// socket, with the netdev's index where the netdev is in that namespace too. The GID
// table comes from sysfs (Documentation/ABI/stable/sysfs-class-infiniband), which has
// no netlink counterpart.
//
// A CNI plugin is in the pod's network namespace and the host's mount namespace, so
// /sys shows the host's devices. In RDMA's exclusive mode those are other ones. A
// sysfs instance belongs to the network namespace of the thread that made it
// (fs/sysfs/mount.c, sysfs_init_fs_context), so one is made for the purpose with
// fsopen and fsmount; it is attached nowhere and goes when its descriptor is closed.
//
// # Modes
//
// In mode shared (the kernel's default) every namespace sees every device, and a port
// shows its netdev only where that is. In mode exclusive a device is in one namespace,
// whichever its netdev is in (drivers/infiniband/core/device.c).
//
// # GIDs
//
// The kernel makes a GID for each address of the port's netdev and of links stacked on
// it (VLAN, macvlan, ipvlan), in whatever namespace these are, in a work queue
// (drivers/infiniband/core/roce_gid_mgmt.c). There is one as soon as the address is
// there: measured on Linux 7.3, an IPv6 address has its GID while it is tentative.
package rdma

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrNone says that this kernel has no RDMA, or that it is not loaded.
var ErrNone = errors.New("the kernel has no RDMA, or its modules are not loaded (no /sys/class/infiniband)")

// The versions of a GID, as gid_attrs/types has them (drivers/infiniband/core/cache.c,
// gid_type_str).
const (
	RoCEv1 = "IB/RoCE v1"
	RoCEv2 = "RoCE v2"
)

// Port is one port of an RDMA device.
type Port struct {
	// Device is the RDMA device's name, unique in the whole kernel.
	Device string
	Number int
	// State is the name of an enum ib_port_state: "ACTIVE", "DOWN", …
	State string
	// Protocol is "roce", "iw" (iWARP), "ib", …; "" before Linux 5.0.
	Protocol string
	// IfIndex and NetDev name the port's network interface; 0 and "" where that is in
	// another namespace, or the port has none.
	IfIndex int
	NetDev  string
}

// String is "mlx5_3 port 1".
func (p Port) String() string { return fmt.Sprintf("%s port %d", p.Device, p.Number) }

// GID is an entry in use of a port's GID table.
type GID struct {
	Index int
	// Addr is the GID; one that stands for an IPv4 address is given as that.
	Addr netip.Addr
	// Version is RoCEv1 or RoCEv2.
	Version string
	// NetDev is the interface that has the address, by the name it has in its own
	// namespace, which need not be this one; "" where the entry has none.
	NetDev string
}

// View is the RDMA of one network namespace. It is not safe for concurrent use.
type View struct {
	netlink socket
	sysfs   sysfs
}

// Open returns the view of the calling thread's namespace, which must be locked until
// Open returns; the view stays with that namespace whatever the thread does later.
// Without RDMA the error is ErrNone, for the cost of one failed access(2): opening the
// netlink socket first would make the kernel look for a module.
func Open() (*View, error) {
	if err := unix.Access("/sys/class/infiniband", unix.F_OK); err != nil {
		return nil, ErrNone
	}
	netlink, err := openSocket()
	if err != nil {
		return nil, err
	}
	fs, err := openSysfs()
	if err != nil {
		netlink.close()
		return nil, err
	}
	return &View{netlink: netlink, sysfs: fs}, nil
}

// Close closes the view.
func (v *View) Close() {
	v.netlink.close()
	v.sysfs.close()
}

// Ports returns the ports of all devices this namespace can use, by device as the
// kernel lists them, then by number.
func (v *View) Ports() ([]Port, error) {
	devices, err := v.netlink.devices()
	if err != nil {
		return nil, err
	}
	var out []Port
	for _, d := range devices {
		ports, err := v.netlink.ports(d)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) {
			continue // gone since the list was made (ib_device_get_by_index finds none)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, ports...)
	}
	return out, nil
}

// Mode returns RDMA's network namespace mode, "shared" or "exclusive".
func (v *View) Mode() (string, error) { return v.netlink.mode() }

// serving returns the ports whose network interface is one of these links.
func serving(ports []Port, links []int) []Port {
	var out []Port
	for _, p := range ports {
		if p.IfIndex != 0 && slices.Contains(links, p.IfIndex) {
			out = append(out, p)
		}
	}
	return out
}
