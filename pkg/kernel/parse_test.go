package kernel

import "testing"

// FuzzParse: no message, however broken, may do more than be refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte{2, 32, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0, 2, 0, 10, 61, 1, 11, 8, 0, 15, 0, 5, 221, 109, 0})
	f.Add([]byte{2, 24, 128, 0, 5, 0, 0, 0, 8, 0, 1, 0, 10, 61, 1, 11, 8, 0, 2, 0, 10, 61, 1, 11})
	f.Add([]byte{10, 64, 0, 0, 5, 0, 0, 0, 3, 0, 1, 0})
	f.Add([]byte{2, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 1, 8, 0, 1, 0, 10, 61, 1, 11, 10, 0, 2, 0, 2, 0, 0, 0, 0, 1, 0, 0})
	f.Add([]byte{2, 0, 0, 0, 8, 0, 4, 0, 0, 4, 0, 0, 12, 0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, m []byte) {
		if r, err := parseRule(m); err == nil && r.From.IsValid() && r.From.Bits() < 0 {
			t.Errorf("rule %v", r)
		}
		if a, err := parseAddr(m); err == nil && a.Prefix.IsValid() && !a.Prefix.Addr().IsValid() {
			t.Errorf("address %v", a)
		}
		if n, err := parseNeighbour(m); err == nil && len(n.MAC) > len(m) {
			t.Errorf("neighbour %v", n)
		}
		if table, ok, err := parseNeighbourTable(m); err == nil && ok && len(m) < 100 {
			t.Errorf("neighbour table %v", table)
		}
		if l, err := parseLink(m); err == nil && len(l.MAC) > len(m) {
			t.Errorf("link %v", l)
		}
		if h, attrs, err := parseRtmsg(m); err == nil {
			if r, err := parseRoute(h, attrs); err == nil && r.Dst.IsValid() && r.Dst.Bits() < 0 {
				t.Errorf("route %v", r)
			}
		}
	})
}
