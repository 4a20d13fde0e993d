package main

import "fmt"

// targets says which of the aims this run reached. Reaching none is no failure: times
// on a busy machine are not a test.
func (b *bench) targets() {
	t := newTable("aim", "at most", "here", "")
	for _, aim := range []struct {
		what, key string
		most      float64
		form      string
	}{
		{"ADD without proof / (" + both + "), 16 rails", "add", 0.5, "%.2f"},
		{"VERSION / do nothing", "version", 1.25, "%.2f"},
		{"peak RSS of ADD without proof / tuning's", "rss ratio", 1, "%.2f"},
		{"ADD with " + full + " / empty", "growth", 1.5, "%.2f"},
		{"the proof of a clean link, ms", "proof", 30, "%.1f"},
		{"stripped binary, MB", "size", 8, "%.2f"},
	} {
		value, ok := b.reached[aim.key]
		switch aim.key {
		case "rss ratio":
			value, ok = b.reached["rss"]/b.reached["tuning rss"], b.reached["tuning rss"] > 0
		case "size":
			value /= 1e6
		}
		if !ok {
			continue
		}
		verdict := "reached"
		if value > aim.most {
			verdict = "not reached"
		}
		t.row(aim.what, fmt.Sprintf("%g", aim.most), fmt.Sprintf(aim.form, value), verdict)
	}
	t.print("Aims")
}
