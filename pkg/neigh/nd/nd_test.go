package nd

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"reflect"
	"testing"

	"github.com/mdlayher/ndp"
)

var (
	us   = [6]byte{2, 0, 0, 0, 0, 1}
	own  = netip.MustParseAddr("fd5a::1")
	peer = netip.MustParseAddr("fd5a::12:3456")
)

// The bytes of a neighbour solicitation by RFC 8200 and RFC 4861, by hand
// except for the checksum, which is verified below.
func TestSolicitationBytes(t *testing.T) {
	t.Parallel()
	m, err := Solicitation(us, own, peer)
	if err != nil {
		t.Fatal(err)
	}
	if m.To != [6]byte{0x33, 0x33, 0xff, 0x12, 0x34, 0x56} {
		t.Errorf("sent to %x", m.To)
	}
	b := bytes.Clone(m.Packet)
	b[42], b[43] = 0, 0
	want := "60000000" + "0020" + "3a" + "ff" +
		"fd5a0000000000000000000000000001" + "ff0200000000000000000001ff123456" +
		"8700" + "0000" + "00000000" + "fd5a0000000000000000000000123456" + "0101020000000001"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	router, err := Advertisement(us, own, true)
	if err != nil {
		t.Fatal(err)
	}
	host, err := Advertisement(us, own, false)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := RouterSolicitation(us, own)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := RouterSolicitation(us, netip.IPv6Unspecified())
	if err != nil {
		t.Fatal(err)
	}
	ns, err := Solicitation(us, own, peer)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m       Message
		icmp    byte
		flags   byte // of an advertisement: router 0x80, override 0x20
		options int
		to      string
	}{
		"advertisement of a router":  {router, 136, 0xa0, 8, "333300000001"},
		"advertisement of a host":    {host, 136, 0x20, 8, "333300000001"},
		"router solicitation":        {rs, 133, 0, 8, "333300000002"},
		"router solicitation from :": {bare, 133, 0, 0, "333300000002"},
		"solicitation":               {ns, 135, 0, 8, "3333ff123456"},
	} {
		fixed := 24
		if c.icmp == 133 {
			fixed = 8
		}
		b := c.m.Packet
		if b[40] != c.icmp || b[44] != c.flags || len(b) != 40+fixed+c.options || hex.EncodeToString(c.m.To[:]) != c.to {
			t.Errorf("%s: type %d, flags %#x, %d bytes, to %x", name, b[40], b[44], len(b), c.m.To)
		}
		if sum := checksum(b); sum != 0xffff {
			t.Errorf("%s: the checksum does not add up: %#04x", name, sum)
		}
	}
	if _, err := Solicitation(us, netip.MustParseAddr("10.0.0.1"), peer); err == nil {
		t.Error("an IPv4 source was accepted")
	}
}

// checksum adds up a packet and its pseudo-header (RFC 8200 section 8.1); a
// right one gives all ones.
func checksum(b []byte) uint16 {
	sum := uint32(len(b)-40) + protocolICMPv6
	for i := 8; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 > 0 {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

func TestParseClaim(t *testing.T) {
	t.Parallel()
	m, err := Advertisement(us, own, false)
	if err != nil {
		t.Fatal(err)
	}
	icmp := m.Packet[40:]
	if c, ok := ParseClaim(icmp); !ok || c.Addr != own || c.MAC != us {
		t.Errorf("got %v %v", c, ok)
	}
	ns, err := Solicitation(us, own, peer)
	if err != nil {
		t.Fatal(err)
	}
	source := bytes.Clone(icmp)
	source[24] = 1 // a source link-layer address is not the target's
	for name, b := range map[string][]byte{
		"nothing": nil, "no option": icmp[:24], "a solicitation": ns.Packet[40:], "cut short": icmp[:30], "source option": source,
	} {
		if c, ok := ParseClaim(b); ok {
			t.Errorf("%s is taken for a claim: %v", name, c)
		}
	}
}

// reference is what github.com/mdlayher/ndp reads in a message, which is stricter about
// options that are nothing to railtune.
func reference(b []byte) (Claim, bool) {
	message, err := ndp.ParseMessage(b)
	na, ok := message.(*ndp.NeighborAdvertisement)
	if err != nil || !ok || na.TargetAddress.IsMulticast() { // RFC 4861 section 7.1.2 forbids that
		return Claim{}, false
	}
	for _, option := range na.Options {
		if ll, ok := option.(*ndp.LinkLayerAddress); ok && ll.Direction == ndp.Target && len(ll.Addr) == 6 {
			return Claim{Addr: na.TargetAddress, MAC: [6]byte(ll.Addr)}, true
		}
	}
	return Claim{}, false
}

// TestReadByOthers: another implementation reads what we send.
func TestReadByOthers(t *testing.T) {
	t.Parallel()
	ns, _ := Solicitation(us, own, peer)
	na, _ := Advertisement(us, own, true)
	rs, _ := RouterSolicitation(us, own)
	ll := func(d ndp.Direction) []ndp.Option {
		return []ndp.Option{&ndp.LinkLayerAddress{Direction: d, Addr: us[:]}}
	}
	for _, c := range []struct {
		sent Message
		want ndp.Message
	}{
		{ns, &ndp.NeighborSolicitation{TargetAddress: peer, Options: ll(ndp.Source)}},
		{na, &ndp.NeighborAdvertisement{Router: true, Override: true, TargetAddress: own, Options: ll(ndp.Target)}},
		{rs, &ndp.RouterSolicitation{Options: ll(ndp.Source)}},
	} {
		got, err := ndp.ParseMessage(c.sent.Packet[40:])
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("read as %+v, %v, want %+v", got, err, c.want)
		}
	}
}

func FuzzParseClaim(f *testing.F) {
	if m, err := Advertisement(us, own, true); err == nil {
		f.Add(m.Packet[40:])
	}
	f.Add([]byte("\x88\x00\x00\x00\x20\x00\x00\x00\xfd\x5a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x01\x01\x02\x00\x00\x00\x00\x09\x02\x01\x02\x00\x00\x00\x00\x01\x02\x01\x02\x00\x00\x00\x00\x07"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := ParseClaim(b)
		if want, known := reference(b); known && (!ok || c != want) {
			t.Errorf("%x is taken for %v %v, and is %v", b, c, ok, want)
		}
		if !ok {
			return
		}
		if b[0] != typeAdvertisement || !bytes.Contains(b, c.MAC[:]) || c.Addr != netip.AddrFrom16([16]byte(b[8:24])) {
			t.Errorf("%x is taken for %v", b, c)
		}
	})
}
