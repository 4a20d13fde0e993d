package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"table", "supernets", "mainTable", "arp_ignore", "gw"}
	for _, c := range []struct{ word, want string }{
		{"supernet", "supernets"},
		{"SUPERNETS", "supernets"},
		{"arp_ignroe", "arp_ignore"}, // a swap is one edit
		{"maintable", "mainTable"},
		{"tabel", "table"},
		{"GW", "gw"},
		{"gv", ""}, // one edit is half the word
		{"master", ""},
		{"", ""},
		{string(make([]byte, 1<<20)), ""},
	} {
		if got := Nearest(c.word, known); got != c.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", c.word, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
