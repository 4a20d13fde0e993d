package config

// Firewall says what to let in through the namespace's own packet filter.
type Firewall struct {
	// AcceptRails asks for a chain that accepts what the rail's prefixes and
	// supernets send, ahead of what others drop.
	AcceptRails bool
}

// decode takes the firewall object.
func (f *Firewall) decode(n node, r *report) {
	if !n.want(r, object, `{"acceptRails":true}`) {
		return
	}
	for _, m := range n.fields(r, "firewall", "acceptRails") {
		m.flag(r, &f.AcceptRails)
	}
}
