package sysctl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CheckValue tells whether v is a value the setting can have. Known settings
// take the decimal integers that have a meaning; the kernel's own check is no
// help, for it takes any int for most of them and an empty write as success.
// Of a setting this package does not know, any one-line value passes.
func (k Key) CheckValue(v string) error {
	switch {
	case strings.TrimSpace(v) == "":
		return fmt.Errorf("the value %s is blank", quote(v))
	case strings.TrimSpace(v) != v:
		return fmt.Errorf("the value %s has blanks or a line end around it; give %s", quote(v), quote(strings.TrimSpace(v)))
	case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the value %s is not one line of text", quote(v))
	case len(v) > 256:
		return fmt.Errorf("the value %s is longer than any setting's", quote(v))
	}
	s := k.known()
	if s == nil {
		return nil
	}
	switch s.unit {
	case readOnly:
		return fmt.Errorf("%s is read-only in the kernel: a multicast routing daemon turns it on", k.Leaf)
	case secret:
		return fmt.Errorf("%s cannot be undone once it is set, so it is not set here", k.Leaf)
	}
	n, err := decimal(v)
	if err != nil || (n < s.min || n > s.max) && (s.also == 0 || n != s.also) {
		return fmt.Errorf("%s takes %s, not %s", k.Leaf, s.values(), quote(v))
	}
	return nil
}

// values says in words which values the setting takes.
func (s *setting) values() string {
	switch {
	case s.also != 0:
		return fmt.Sprintf("%d to %d or %d", s.min, s.max, s.also)
	case s.min == 0 && s.max == 1:
		return "0 or 1"
	}
	return fmt.Sprintf("an integer from %d to %d", s.min, s.max)
}

var errNotDecimal = errors.New("not a plain decimal integer")

// decimal reads an integer written the one way the kernel prints it: the
// kernel would read "010" as 8 and "0x10" as 16.
func decimal(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != v {
		return 0, errNotDecimal
	}
	return n, nil
}

// SameSetting tells whether a and b are two files of one value in the kernel,
// seen in different units, so that only one of them can be set.
func SameSetting(a, b Key) bool {
	if a.Family != b.Family || a.Tree != Neigh || b.Tree != Neigh {
		return false
	}
	stem := func(k Key) string { return strings.TrimSuffix(strings.TrimSuffix(k.Leaf, "_ms"), "_bytes") }
	return stem(a) == stem(b)
}

// Acceptable tells whether the effective value serves as well as the wanted
// one: where they are equal (numerically, and but for the kernel's rounding of
// times), and for arp_ignore 2 where 1 is wanted, since 2 is 1 with one more
// condition on the sender. 3 and 8 are stricter in number only.
func Acceptable(k Key, want, effective string) bool {
	if k == ARPIgnore && want == "1" && effective == "2" {
		return true
	}
	return same(k, want, effective)
}

// same tells whether a file that holds got holds what was wanted.
func same(k Key, want, got string) bool {
	w, errW := decimal(want)
	g, errG := decimal(got)
	if errW != nil || errG != nil {
		return want == got
	}
	u := exact
	if s := k.known(); s != nil {
		u = s.unit
	}
	switch {
	case w == g:
		return true
	case u == millis && w > 0:
		return g > w && g-w < 10
	case u == ticks && w > 0:
		// net/ipv6/ndisc.c replaces this one handler: IPv6 retrans_time is exact.
		return g == w-1 && !(k.Family == IPv6 && k.Leaf == "retrans_time")
	}
	return false
}
