// Package present finds out from the kernel whether it has a rail's iptables chains,
// without iptables: pkg/firewall makes and removes them.
package present

import (
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// Table is the table of iptables that the chains are in.
const Table = "filter"

// Chain is the name of a rail's chain. Names have at most 28 characters
// (XT_EXTENSION_MAXNAMELEN with its final zero, include/uapi/linux/netfilter/x_tables.h),
// those of interfaces 15, so nothing is cut off and no two rails share one.
func Chain(ifname string) string { return "RAILTUNE-" + ifname }

// Command is the iptables of a family.
func Command(f policy.Family) string {
	if f == policy.IPv6 {
		return "ip6tables"
	}
	return "iptables"
}

// Place is where a rail's chain is: iptables has two backends, and each family its own.
type Place struct {
	Family policy.Family
	// Legacy says that ip_tables has it, else nf_tables.
	Legacy bool
}

// Find finds a rail's chains without executing anything, and without making the
// kernel load a packet filter that it does not have yet: DEL asks for every rail,
// whether or not it ever had a chain, as the configuration may be lost by then.
func Find(ifname string) ([]Place, error) {
	var out []Place
	inNFT, err := nft(ifname)
	if err != nil {
		return nil, err
	}
	for _, f := range inNFT {
		out = append(out, Place{Family: f})
	}
	for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
		ok, err := legacy(ifname, f)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, Place{Family: f, Legacy: true})
		}
	}
	return out, nil
}

// exists reports whether a file is there.
func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// read returns a file, whole, without the poller that package os would start for it.
func read(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var text []byte
	var piece [8192]byte
	for {
		n, err := unix.Read(fd, piece[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n == 0:
			return string(text), nil
		default:
			text = append(text, piece[:n]...)
		}
	}
}
