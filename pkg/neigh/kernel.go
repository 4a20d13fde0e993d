package neigh

import (
	"net/netip"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/neigh/nd"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/policy"
)

// lists is what a proof reads of the kernel, through one socket. That is opened when it is
// first needed, which most proofs never do, on a thread in the rail's namespace.
type lists struct{ socket *kernel.Netlink }

func (l *lists) open() (*kernel.Netlink, error) {
	if l.socket != nil {
		return l.socket, nil
	}
	var err error
	l.socket, err = kernel.Open()
	return l.socket, err
}

func (l *lists) close() {
	if l.socket != nil {
		l.socket.Close()
	}
}

// links are the namespace's links as they are now.
func (l *lists) links() ([]netstate.Link, error) {
	k, err := l.open()
	if err != nil {
		return nil, err
	}
	return k.Links()
}

// states are those of a link's IPv6 addresses. See nd.States.
func (l *lists) states(ifindex int) (map[netip.Addr]nd.State, error) {
	k, err := l.open()
	if err != nil {
		return nil, err
	}
	return nd.States(k, ifindex)
}

// table reads the neighbour table's state; ok is false where the kernel does not tell.
func (l *lists) table(f policy.Family) (t kernel.NeighbourTable, ok bool) {
	k, err := l.open()
	if err != nil {
		return kernel.NeighbourTable{}, false
	}
	t, ok, err = k.NeighbourTable(f)
	return t, ok && err == nil
}

// statesOnce is states where nothing else is read.
func statesOnce(ifindex int) (map[netip.Addr]nd.State, error) {
	var l lists
	defer l.close()
	return l.states(ifindex)
}
