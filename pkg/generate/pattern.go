package generate

import (
	"fmt"
	"strconv"
	"strings"
)

// expand replaces what stands for a rail's number in a pattern: %d is the number, %x
// the same in hexadecimal, as IPv6 has it, %02d fills it with zeros, %+1d adds to it
// first, and %% is a percent sign. It is not fmt's: in fmt "%+1d" is another thing, and
// a pattern that is wrong is an error here, not text with "%!" in it.
func expand(pattern string, number int) (string, error) {
	return replace(pattern, func(v verb) string { return v.write(number) })
}

// glob turns a pattern for an interface's name into one for sysctl.d: the number
// becomes *.
func glob(pattern string) (string, error) {
	return replace(pattern, func(verb) string { return "*" })
}

// replace puts something in the place of each number of a pattern.
func replace(pattern string, number func(verb) string) (string, error) {
	var out strings.Builder
	rest := pattern
	for {
		before, after, found := strings.Cut(rest, "%")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if strings.HasPrefix(after, "%") {
			out.WriteByte('%')
			rest = after[1:]
			continue
		}
		v, err := parseVerb(after)
		if err != nil {
			return "", fmt.Errorf("%q: %w", pattern, err)
		}
		out.WriteString(number(v))
		rest = after[v.length:]
	}
}

// verb is what follows a percent sign.
type verb struct {
	add, width, base, length int
}

func parseVerb(s string) (v verb, err error) {
	at := 0
	digits := func() (n int) {
		for at < len(s) && s[at] >= '0' && s[at] <= '9' && n < 1000 {
			n = 10*n + int(s[at]-'0')
			at++
		}
		return n
	}
	if strings.HasPrefix(s, "+") {
		at++
		v.add = digits()
	} else if strings.HasPrefix(s, "0") {
		v.width = digits()
	}
	switch {
	case v.width > 9 || v.add > 999:
	case strings.HasPrefix(s[at:], "d"):
		v.base, v.length = 10, at+1
		return v, nil
	case strings.HasPrefix(s[at:], "x"):
		v.base, v.length = 16, at+1
		return v, nil
	}
	return v, fmt.Errorf("%%%.3s stands for no number; give %%d or %%x, %%02d, %%+1d, or %%%% for a percent sign", s)
}

func (v verb) write(number int) string {
	s := strconv.FormatInt(int64(number+v.add), v.base)
	return strings.Repeat("0", max(0, v.width-len(s))) + s
}

// numbered tells whether a pattern gives each rail another text.
func numbered(pattern string) bool {
	one, err1 := expand(pattern, 0)
	two, err2 := expand(pattern, 1)
	return err1 == nil && err2 == nil && one != two
}
