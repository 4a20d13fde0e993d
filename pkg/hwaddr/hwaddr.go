// Package hwaddr has link-layer addresses. It is what railtune needs of package net,
// which a plugin that runs for a millisecond does without (docs/speed.md).
package hwaddr

import (
	"errors"
	"strings"
)

// MAC is a link-layer address: 6 bytes on Ethernet, 20 on IP over InfiniBand.
type MAC []byte

const hexDigits = "0123456789abcdef"

// String prints the address as ip(8) does: "02:00:00:00:00:01".
func (m MAC) String() string {
	if len(m) == 0 {
		return ""
	}
	text := make([]byte, 0, len(m)*3-1)
	for i, b := range m {
		if i > 0 {
			text = append(text, ':')
		}
		text = append(text, hexDigits[b>>4], hexDigits[b&0xf])
	}
	return string(text)
}

// errForm is a text that is no link-layer address.
var errForm = errors.New("not a link-layer address")

// ParseMAC reads an address of 6, 8 or 20 bytes in one of the forms that net.ParseMAC
// takes: 00:00:5e:00:53:01, 00-00-5E-00-53-01, 0000.5e00.5301 and 00005e005301.
func ParseMAC(text string) (MAC, error) {
	if len(text) < 12 {
		return nil, errForm
	}
	digits, separator := len(text), "." // of each part, and between them
	switch {
	case text[2] == ':' || text[2] == '-':
		digits, separator = 2, text[2:3]
	case text[4] == '.':
		digits = 4
	}
	var out MAC
	for part := range strings.SplitSeq(text, separator) {
		if len(part) != digits || digits%2 != 0 {
			return nil, errForm
		}
		for i := 0; i < digits; i += 2 {
			high, low := digit(part[i]), digit(part[i+1])
			if high < 0 || low < 0 {
				return nil, errForm
			}
			out = append(out, byte(high<<4|low))
		}
	}
	switch len(out) {
	case 6, 8, 20:
		return out, nil
	}
	return nil, errForm
}

// digit is the value of a hexadecimal digit, -1 of anything else.
func digit(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte(hexDigits, c)
}
