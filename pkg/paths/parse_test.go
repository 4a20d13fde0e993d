package paths

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseMap(t *testing.T) {
	got, err := ParseMap("# rails\n\nnet1 10.61.1.12\n  net2\tfd61::12/64 worker-1 # with its length\n")
	if want := "[{ net1 10.61.1.12} {worker-1 net2 fd61::12}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, c := range []struct{ text, say string }{
		{"net1", `line 1: "net1"; give RAIL ADDRESS`},
		{"\nnet1 10.61.1.12 a b", "line 2"},
		{"net1 10.61.1.300", `"10.61.1.300" of net1 is no address`},
		{"net1 fe80::1", "link-local"},
		{"net1 127.0.0.1", "no address of a rail"},
		{"net1 0.0.0.0", "no address of a rail"},
		{"net1 ff02::1", "no address of a rail"},
	} {
		if got, err := ParseMap(c.text); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: %v, %v; want it to say %q", c.text, got, err, c.say)
		}
	}
}

func TestParsePeers(t *testing.T) {
	got, err := ParsePeers("net1=10.61.1.12, net2=::ffff:10.61.2.12")
	if want := "[{ net1 10.61.1.12} { net2 10.61.2.12}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, s := range []string{"net1", "=10.61.1.12", "net1=", ""} {
		if got, err := ParsePeers(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
	twice, err := ParsePeers("net1=10.61.1.12,net2=10.61.1.12")
	if err != nil {
		t.Fatal(err)
	}
	if err := check(twice); err == nil || !strings.Contains(err.Error(), "for net1 and for net2") {
		t.Errorf("an address twice: %v", err)
	}
}

// quoted4 is an ICMP error of a router at 10.61.1.254 about a request to 10.61.2.12.
func quoted4(kind, code byte, req []byte) []byte {
	header := func(protocol byte, to [4]byte) []byte {
		b := make([]byte, ipv4Header)
		b[0], b[9] = 0x45, protocol
		copy(b[16:], to[:])
		return b
	}
	b := append(header(protocolICMP, [4]byte{10, 61, 1, 11}), kind, code, 0, 0, 0, 0, 0, 0)
	b = append(b, header(protocolICMP, [4]byte{10, 61, 2, 12})...)
	return append(b, req[:echoHeader]...) // RFC 792 promises no more
}

func TestRead4(t *testing.T) {
	n := nonce{1, 2, 3}
	req := request(true, 7, 513, n)
	if sum := checksum(req); sum != 0 {
		t.Errorf("the checksum of a request with its checksum is %#x", sum)
	}
	reply := append(make([]byte, ipv4Header), req...)
	reply[0], reply[ipv4Header] = 0x45, echoReply4
	if s, ok := read4(reply, 7, n); !ok || !s.reply || s.seq != 513 {
		t.Errorf("a reply: %+v %v", s, ok)
	}
	for _, c := range []struct {
		kind, code byte
		want       class
	}{{3, 0, noRoute}, {3, 1, noHost}, {3, 13, filtered}, {11, 0, timeExceeded}} {
		s, ok := read4(quoted4(c.kind, c.code, req), 7, n)
		if !ok || s.reply || s.class != c.want || s.seq != 513 || s.to.String() != "10.61.2.12" {
			t.Errorf("type %d code %d: %+v %v", c.kind, c.code, s, ok)
		}
	}
	// Not ours: another identifier, other data, another protocol, another type, cut.
	other := quoted4(11, 0, req)
	other[ipv4Header+echoHeader+9] = 17
	for name, b := range map[string][]byte{
		"protocol": other, "type": quoted4(5, 0, req), "cut": quoted4(11, 0, req)[:ipv4Header+echoHeader+ipv4Header+4], "empty": nil,
	} {
		if s, ok := read4(b, 7, n); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s, ok := read4(reply, 8, n); ok {
		t.Errorf("another identifier: %+v", s)
	}
	if s, ok := read4(reply, 7, nonce{}); ok {
		t.Errorf("other data: %+v", s)
	}
}

func TestRead6(t *testing.T) {
	n := nonce{4, 5, 6}
	req := request(false, 9, 77, n)
	reply := append([]byte(nil), req...)
	reply[0] = echoReply6
	if s, ok := read6(reply, 9, n); !ok || !s.reply || s.seq != 77 {
		t.Errorf("a reply: %+v %v", s, ok)
	}
	quoted := func(kind, code, next byte) []byte {
		b := append([]byte{kind, code}, make([]byte, 6+ipv6Header)...)
		b[echoHeader], b[echoHeader+6], b[echoHeader+24], b[echoHeader+39] = 0x60, next, 0xfd, 12
		return append(b, req...)
	}
	for _, c := range []struct {
		kind, code byte
		want       class
	}{{1, 0, noRoute}, {1, 1, filtered}, {1, 3, noHost}, {1, 5, filtered}, {1, 6, filtered}, {3, 0, timeExceeded}} {
		s, ok := read6(quoted(c.kind, c.code, protocolICMPv6), 9, n)
		if !ok || s.reply || s.class != c.want || s.seq != 77 || s.to.String() != "fd00::c" {
			t.Errorf("type %d code %d: %+v %v", c.kind, c.code, s, ok)
		}
	}
	for name, b := range map[string][]byte{"protocol": quoted(3, 0, 17), "type": quoted(2, 0, protocolICMPv6), "cut": quoted(3, 0, protocolICMPv6)[:50], "empty": nil} {
		if s, ok := read6(b, 9, n); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s, ok := read6(quoted(3, 0, protocolICMPv6), 8, n); ok {
		t.Errorf("another identifier: %+v", s)
	}
}

// FuzzRead: nothing on the wire makes it panic.
func FuzzRead(f *testing.F) {
	req := request(true, 7, 513, nonce{1})
	f.Add(quoted4(11, 0, req))
	f.Add(append([]byte{exceeded6, 0, 0, 0, 0, 0, 0, 0, 0x60, 0, 0, 0, 0, 16, 58, 1}, make([]byte, 48)...))
	f.Fuzz(func(_ *testing.T, b []byte) {
		read4(b, 7, nonce{1})
		read6(b, 7, nonce{1})
	})
}
