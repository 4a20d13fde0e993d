package firewall

import (
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/policy"
)

// place is where a rail's chain is: iptables has two backends, and each family its own.
type place struct {
	family policy.Family
	legacy bool
}

// commands are those that can work on the chain, the surest first: plain iptables is
// one of the two, whichever the host prefers.
func (p place) commands() []string {
	name := command(p.family)
	if p.legacy {
		return []string{name + "-legacy", name}
	}
	return []string{name + "-nft", name}
}

// present finds the rail's chains without executing anything, and without making the
// kernel load a packet filter that it does not have yet: DEL asks for every rail,
// whether or not it ever had a chain, as the configuration may be lost by then.
func present(ifname string) ([]place, error) {
	var out []place
	nft, err := presentNFT(ifname)
	if err != nil {
		return nil, err
	}
	for _, f := range nft {
		out = append(out, place{family: f})
	}
	for _, f := range []policy.Family{policy.IPv4, policy.IPv6} {
		ok, err := presentLegacy(ifname, f)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, place{family: f, legacy: true})
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
