package neigh

import (
	"github.com/railtune/railtune/pkg/hwaddr"
	"github.com/railtune/railtune/pkg/netstate"
)

// owners knows which link of this namespace has a MAC.
type owners struct {
	self      mac
	links     map[mac]owner
	arpIgnore func(ifindex int) string
	// list reads the namespace's links anew.
	list func() ([]netstate.Link, error)
}

type owner struct {
	name      string
	ifindex   int
	arpIgnore string
}

func newOwners(req Request, list func() ([]netstate.Link, error)) *owners {
	o := &owners{
		self:      req.Rail.Link.ethernet(),
		links:     map[mac]owner{},
		arpIgnore: req.EffectiveARPIgnore,
		list:      list,
	}
	for _, s := range req.Siblings {
		o.add(s.Link.MAC, owner{name: s.Link.Name, ifindex: s.Link.Index, arpIgnore: s.ARPIgnore})
	}
	o.links[o.self] = owner{name: req.Rail.Link.Name, ifindex: req.Rail.Link.Index, arpIgnore: req.Rail.ARPIgnore}
	return o
}

// add keeps the first link of several with one MAC (ipvlan children).
func (o *owners) add(address hwaddr.MAC, link owner) {
	if len(address) != 6 {
		return
	}
	if _, known := o.links[mac(address)]; !known && mac(address) != (mac{}) {
		o.links[mac(address)] = link
	}
}

func (o *owners) name(m mac) string { return o.links[m].name }

// inside says whether a MAC is another link's of this namespace.
func (o *owners) inside(m mac) bool {
	_, known := o.links[m]
	return known && m != o.self
}

// refresh looks for links that arrived after the request was put together:
// sixteen rails may be attached at once, and an untuned newcomer answers for
// everyone's addresses. It is called only when an unknown MAC contests an
// address, and what it cannot read stays unknown.
func (o *owners) refresh() {
	links, err := o.list()
	if err != nil {
		return
	}
	for _, l := range links {
		o.add(l.MAC, owner{name: l.Name, ifindex: l.Index})
	}
}

// ignore is the effective arp_ignore of a MAC's link, read now if it can be.
func (o *owners) ignore(m mac) string {
	link := o.links[m]
	if o.arpIgnore != nil && link.ifindex != 0 {
		if v := o.arpIgnore(link.ifindex); v != "" {
			return v
		}
	}
	return link.arpIgnore
}
