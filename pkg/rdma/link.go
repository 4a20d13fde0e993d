package rdma

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/kernel"
	"github.com/railtune/railtune/pkg/netstate"
)

// Link is a network interface with the RDMA ports that have GIDs for its addresses.
// Close it when done.
type Link struct {
	*View
	Name string
	// Ports are those that carry the link's addresses and that its namespace can use:
	// the port's own netdev is the link, or what the link is stacked on.
	Ports []Port
	// Elsewhere are ports that carry the link's addresses too, of devices that are in
	// another namespace (mode exclusive): nothing in this one can use them.
	Elsewhere []Port
}

// Enter runs a function on a thread in another network namespace.
type Enter func(func() error) error

// ForLink finds the ports of a link of the calling thread's namespace. Where the link
// is stacked on one of another namespace (a pod's ipvlan or macvlan child, say), inLower
// enters that; nil where it cannot be reached. Then a port counts whose GID table has
// one of the link's addresses under the link's name. Bonds are not looked through.
func ForLink(l *netstate.Link, inLower Enter) (*Link, error) {
	v, err := Open()
	if err != nil {
		return nil, err
	}
	found, err := v.forLink(l, inLower)
	if err != nil {
		v.Close()
		return nil, err
	}
	return found, nil
}

// Unserved says why the link has no port, "" where it has one.
func (found *Link) Unserved() string {
	if len(found.Ports) > 0 {
		return ""
	}
	mode, err := found.Mode()
	switch {
	case len(found.Elsewhere) > 0:
		return fmt.Sprintf("that of the link below it, %s, is in another network namespace, where this one cannot use it "+
			"(RDMA netns mode %s)", found.Elsewhere[0], mode)
	case mode == "exclusive":
		return "none in its network namespace has a port that is this interface's " +
			"(RDMA netns mode exclusive: the device has to be moved there, before railtune runs)"
	case err != nil:
		return err.Error()
	}
	return "none has a port that is this interface's, or that of the link below it (RDMA netns mode " + mode + ")"
}

func (v *View) forLink(l *netstate.Link, inLower Enter) (*Link, error) {
	ports, err := v.Ports()
	if err != nil {
		return nil, err
	}
	found := &Link{View: v, Name: l.Name, Ports: serving(ports, []int{l.Index})}
	if len(found.Ports) > 0 || !Stacked(l) {
		return found, nil
	}
	switch {
	case l.ParentNSID < 0: // in this namespace
		found.Ports, err = above(ports, l.Parent)
	case inLower != nil:
		err = inLower(func() error { return found.fromBelow(ports, l.Parent) })
	default:
		found.Ports, err = v.listing(ports, l)
	}
	return found, err
}

// Stacked reports whether a link is of a kind that gets its GIDs in the table of the
// link below it. A veth has a "parent" too, its peer, and is not.
func Stacked(l *netstate.Link) bool {
	return l.Parent != 0 && slices.Contains([]string{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"}, l.Kind)
}

// above returns the ports that a link stacked on this one has its GIDs on: those of the
// lower link, or of what that is stacked on in turn.
func above(ports []Port, lower int) ([]Port, error) {
	links, err := lowerLinks(lower)
	return serving(ports, links), err
}

// maxStack bounds how many links are followed downwards; the kernel allows eight
// (include/linux/netdevice.h, MAX_NEST_DEV).
const maxStack = 8

// lowerLinks returns the link with this index and those it is stacked on, as far as
// they are in the calling thread's namespace.
func lowerLinks(index int) ([]int, error) {
	k, err := kernel.Open()
	if err != nil {
		return nil, err
	}
	defer k.Close()
	var out []int
	for len(out) < maxStack {
		out = append(out, index)
		link, err := k.Link(index)
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return nil, err
		}
		if !Stacked(&link) || link.ParentNSID >= 0 { // one that is gone is on nothing
			break
		}
		index = link.Parent
	}
	return out, nil
}

// fromBelow is called in the namespace of the lower link; ports are what the upper
// link's namespace can use.
func (found *Link) fromBelow(ports []Port, lower int) error {
	v, err := Open()
	if err != nil {
		return err
	}
	defer v.Close()
	there, err := v.Ports()
	if err != nil {
		return err
	}
	theirs, err := above(there, lower)
	if err != nil {
		return err
	}
	for _, p := range theirs {
		here := slices.IndexFunc(ports, func(q Port) bool { return q.Device == p.Device && q.Number == p.Number })
		if here < 0 {
			found.Elsewhere = append(found.Elsewhere, p)
		} else {
			found.Ports = append(found.Ports, ports[here])
		}
	}
	return nil
}

// listing returns the ports whose GID table has an address of the link, under its name.
func (v *View) listing(ports []Port, l *netstate.Link) ([]Port, error) {
	var out []Port
	for _, p := range ports {
		for g, err := range v.GIDs(p) {
			if err != nil {
				return nil, err
			}
			if g.NetDev == l.Name && l.Has(g.Addr) {
				out = append(out, p)
				break
			}
		}
	}
	return out, nil
}
