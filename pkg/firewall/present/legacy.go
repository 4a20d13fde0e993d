package present

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// Socket options of ip_tables and ip6_tables, the same in both
// (include/uapi/linux/netfilter_ipv4/ip_tables.h, IPT_BASE_CTL).
const (
	soGetInfo    = 64
	soGetEntries = 65
)

// tableName is the name all of ip_tables' requests start with (XT_TABLE_MAXNAMELEN).
type tableName [32]byte

// getInfo is struct ipt_getinfo.
type getInfo struct {
	name                 tableName
	validHooks           uint32
	hookEntry, underflow [5]uint32
	entries, size        uint32
}

// legacy looks for the rail's chain in the filter table of ip_tables. A chain
// starts with an entry that holds its name. A namespace that never
// used the table has none, and is not asked for it, as asking makes one.
func legacy(ifname string, f policy.Family) (bool, error) {
	names, family, level := "ip_tables_names", unix.AF_INET, unix.IPPROTO_IP
	if f == policy.IPv6 {
		names, family, level = "ip6_tables_names", unix.AF_INET6, unix.IPPROTO_IPV6
	}
	// Below /proc/net is the namespace of the process's first thread, not this one's.
	text, err := read("/proc/thread-self/net/" + names)
	if err != nil || !slices.Contains(strings.Fields(text), Table) {
		return false, nil // no file: no ip_tables
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return false, fmt.Errorf("raw socket, to look for chain %s: %w", Chain(ifname), err)
	}
	defer unix.Close(fd)
	entries, err := legacyEntries(fd, level)
	if err != nil {
		return false, fmt.Errorf("%s table %s: %w", Command(f), Table, err)
	}
	return bytes.Contains(entries, chainHead(Chain(ifname))), nil
}

// chainHead is what the entry that starts a chain holds: the name of the target ERROR in
// 29 bytes, its revision, 0, and the chain's name (struct xt_error_target,
// include/uapi/linux/netfilter/x_tables.h).
func chainHead(chain string) []byte {
	var target [29 + 1]byte
	copy(target[:], "ERROR")
	return append(append(target[:], chain...), 0)
}

// legacyEntries reads the whole table. It can change between its size and its content.
func legacyEntries(fd, level int) ([]byte, error) {
	for range 10 {
		info := getInfo{}
		copy(info.name[:], Table)
		if err := getsockopt(fd, level, soGetInfo, unsafe.Slice((*byte)(unsafe.Pointer(&info)), unsafe.Sizeof(info))); err != nil {
			return nil, err
		}
		// struct ipt_get_entries: the name, the size, and entries that hold 64-bit counters.
		align := int(unsafe.Alignof(uint64(0)))
		head := (len(info.name) + 4 + align - 1) / align * align
		buf := make([]byte, head+int(info.size))
		copy(buf, info.name[:])
		*(*uint32)(unsafe.Pointer(&buf[len(info.name)])) = info.size
		err := getsockopt(fd, level, soGetEntries, buf)
		if !errors.Is(err, unix.EAGAIN) {
			return buf[head:], err
		}
	}
	return nil, unix.EAGAIN
}

// getsockopt is getsockopt(2) with a request in the buffer; x/sys/unix has none.
func getsockopt(fd, level, option int, buf []byte) error {
	size := uint32(len(buf))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
