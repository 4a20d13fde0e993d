package arp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
)

var (
	us   = MAC{2, 0, 0, 0, 0, 1}
	them = MAC{2, 0, 0, 0, 0, 2}
	own  = netip.MustParseAddr("10.61.1.1")
	peer = netip.MustParseAddr("10.61.2.1")
)

// The bytes as RFC 826 lays them out, written by hand.
func TestBytes(t *testing.T) {
	t.Parallel()
	announce := Announcements(us, own)
	for name, c := range map[string]struct {
		packet Packet
		want   string
	}{
		"probe":    {Question(us, netip.IPv4Unspecified(), own), "0001080006040001" + "020000000001" + "00000000" + "000000000000" + "0a3d0101"},
		"question": {Question(us, own, peer), "0001080006040001" + "020000000001" + "0a3d0101" + "000000000000" + "0a3d0201"},
		"announced, request form": {
			announce[0], "0001080006040001" + "020000000001" + "0a3d0101" + "000000000000" + "0a3d0101",
		},
		"announced, reply form": {
			announce[1], "0001080006040002" + "020000000001" + "0a3d0101" + "020000000001" + "0a3d0101",
		},
		"no addresses":      {Packet{Operation: Reply}, "0001080006040002" + "000000000000" + "00000000" + "000000000000" + "00000000"},
		"IPv6 is none here": {Question(us, netip.MustParseAddr("fe80::1"), own), "0001080006040001" + "020000000001" + "00000000" + "000000000000" + "0a3d0101"},
		"IPv4 in 16 bytes":  {Question(us, netip.MustParseAddr("::ffff:10.61.1.1"), peer), "0001080006040001" + "020000000001" + "0a3d0101" + "000000000000" + "0a3d0201"},
	} {
		if got := hex.EncodeToString(c.packet.Marshal()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := Question(us, own, peer).Marshal()
	if _, err := Parse(append(good, make([]byte, 18)...)); err != nil {
		t.Errorf("a padded packet: %v", err)
	}
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "short": good[:Size-1], "hardware": change(1, 6), "protocol": change(2, 0x86),
		"hardware length": change(4, 8), "protocol length": change(5, 16),
	} {
		if _, err := Parse(b); !errors.Is(err, ErrNotARP) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Question(us, own, peer).Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrNotARP) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		if again := p.Marshal(); !bytes.Equal(again, b[:Size]) {
			t.Errorf("read and written again:\n got %x\nfrom %x", again, b[:Size])
		}
	})
}

// The filter, run by the virtual machine of golang.org/x/net/bpf; the lab tests
// run it in the kernel.
func TestFilter(t *testing.T) {
	t.Parallel()
	with := func(change func(b []byte)) []byte {
		b := Packet{Operation: Reply, SenderMAC: them, SenderIP: peer, TargetMAC: us, TargetIP: own}.Marshal()
		change(b)
		return b
	}
	many := make([]netip.Addr, maxClaims+1)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 9, 0, byte(i)})
	}
	second := netip.MustParseAddr("10.61.1.2")
	for name, c := range map[string]struct {
		own  []netip.Addr
		b    []byte
		pass bool
	}{
		"a reply":                       {[]netip.Addr{own}, with(func([]byte) {}), true},
		"a request of somebody":         {[]netip.Addr{own}, Question(them, peer, own).Marshal(), false},
		"a request with our address":    {[]netip.Addr{own}, Question(them, own, peer).Marshal(), true},
		"a request with the second":     {[]netip.Addr{own, second}, Question(them, second, peer).Marshal(), true},
		"with our address in 16 bytes":  {[]netip.Addr{netip.MustParseAddr("::ffff:10.61.1.1")}, Question(them, own, peer).Marshal(), true},
		"a request, no own address":     {nil, Question(them, own, peer).Marshal(), false},
		"a request, only IPv6 own":      {[]netip.Addr{netip.MustParseAddr("fd00::1")}, Question(them, own, peer).Marshal(), false},
		"a request, too many addresses": {many, Question(them, peer, own).Marshal(), true},
		"RARP, too many addresses":      {many, with(func(b []byte) { b[7] = 3 }), false},
		"RARP":                          {[]netip.Addr{own}, with(func(b []byte) { b[7] = 3 }), false},
		"InfiniBand":                    {[]netip.Addr{own}, with(func(b []byte) { b[1] = 32 }), false},
		"another protocol":              {[]netip.Addr{own}, with(func(b []byte) { b[2] = 0x86 }), false},
		"other lengths":                 {[]netip.Addr{own}, with(func(b []byte) { b[4] = 8 }), false},
		"cut short":                     {[]netip.Addr{own}, with(func([]byte) {})[:5], false},
	} {
		raw, err := Filter(c.own)
		if err != nil {
			t.Fatal(err)
		}
		program, whole := bpf.Disassemble(raw)
		if !whole {
			t.Fatal("the filter does not disassemble")
		}
		vm, err := bpf.NewVM(program)
		if err != nil {
			t.Fatal(err)
		}
		n, err := vm.Run(c.b)
		if err != nil || (n > 0) != c.pass {
			t.Errorf("%s: passes %d bytes, error %v; want it to pass: %v", name, n, err, c.pass)
		}
	}
}
