package hwaddr

import (
	"bytes"
	"net"
	"testing"
)

// FuzzLikeNet: package net's verdict on a text is ours, and so is what it prints.
func FuzzLikeNet(f *testing.F) {
	for _, text := range []string{
		"", "0", ":::::", "00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "00:00:5e:00:53:0", "00:00:5e:00:53:01:",
		"00:00:5e:00:53:01:02:03", "0000.5e00.5301.0203", "00:00:5e:00:53", "00:00-5e:00:53:01", "0000.5e00:5301", "00005e005301",
		"80:00:00:48:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:10:23:45", "8000.0048.fe80.0000.0000.0000.7cfe.9003.0010.2345",
		"g0:00:5e:00:53:01", "00:00:5e:00:53:\xff1", "0x:00:5e:00:53:01", "00:00:5e:00:53:001",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, wantErr := net.ParseMAC(text)
		got, err := ParseMAC(text)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Errorf("%q: %v, %v; package net says %v, %v", text, got, err, want, wantErr)
		}
		if got.String() != want.String() || MAC(text).String() != net.HardwareAddr(text).String() {
			t.Errorf("%q: printed as %s, by package net as %s", text, got, want)
		}
	})
}
