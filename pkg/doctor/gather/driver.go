package gather

import "golang.org/x/sys/unix"

// driver asks the kernel for an interface's driver (ETHTOOL_GDRVINFO, which needs no
// capability: net/ethtool/ioctl.c, __dev_ethtool); "" where it does not tell. sysfs
// would show the devices of the mount's namespace and not of this one.
func driver(ifname string) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, ifname)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(info.Driver[:])
}
