package rdma

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/nl"
)

// attrs is an answer of NLDEV without its header, as these build it.
func attrs(build func(m *nl.Message)) []byte {
	m := request(cmdGet)
	build(&m)
	return m[unix.SizeofNlMsghdr:]
}

// TestAnswers reads answers as a kernel without RDMA does not give them; the tests in a
// virtual machine read a real one's.
func TestAnswers(t *testing.T) {
	d, err := parseDevice(attrs(func(m *nl.Message) {
		m.Uint32(1, 7)
		m.Attr(2, []byte("mlx5_3\x00")...)
		m.Uint32(3, 1) // here the number of ports
		m.Attr(67, []byte("roce\x00")...)
	}))
	if want := (device{7, "mlx5_3", "roce"}); err != nil || d != want {
		t.Errorf("%+v, %v, want %+v", d, err, want)
	}
	p, err := parsePort(attrs(func(m *nl.Message) {
		m.Uint32(1, 7)
		m.Uint32(3, 2)
		m.Attr(12, 4)
		m.Uint32(50, 9)
		m.Attr(51, []byte("net1\x00")...)
	}))
	if want := (Port{Number: 2, State: "ACTIVE", IfIndex: 9, NetDev: "net1"}); err != nil || p != want {
		t.Errorf("%#v, %v, want %#v", p, err, want)
	}
	for value, want := range map[byte]string{0: "exclusive", 1: "shared"} {
		mode, err := parseMode(attrs(func(m *nl.Message) {
			m.Attr(66, value)
			m.Attr(99, 0) // a later kernel's
		}))
		if err != nil || mode != want {
			t.Errorf("%d: %q, %v, want %q", value, mode, err, want)
		}
	}
}

// TestBrokenAnswers: an attribute that ends outside the answer is an error, not an
// answer without it.
func TestBrokenAnswers(t *testing.T) {
	broken := attrs(func(m *nl.Message) { m.Uint32(1, 7) })[:6]
	_, device := parseDevice(broken)
	_, port := parsePort(broken)
	_, mode := parseMode(broken)
	for what, err := range map[string]error{"device": device, "port": port, "mode": mode} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
