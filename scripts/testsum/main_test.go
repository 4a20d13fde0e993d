package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestSummarise(t *testing.T) {
	const (
		pass = `{"Action":"pass","Package":"p","Test":"A"}` + "\n"
		skip = `{"Action":"output","Package":"p","Test":"S","Output":"needs a VM\n"}` + "\n" +
			`{"Action":"skip","Package":"p","Test":"S"}` + "\n"
		fail = `{"Action":"output","Package":"p","Test":"F","Output":"boom\n"}` + "\n" +
			`{"Action":"fail","Package":"p","Test":"F"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"
		unbuilt = `{"ImportPath":"q","Action":"build-output","Output":"undefined: x\n"}` + "\n" +
			`{"Action":"fail","Package":"q"}` + "\n"
		noTests = `{"Action":"skip","Package":"r"}` + "\n"
	)
	for _, c := range []struct {
		name, in string
		ok       bool
		want     []string
	}{
		{"pass", pass + noTests, true, []string{"1 passed, 0 failed, 0 skipped\n"}},
		{"allowed skip", pass + skip, true, []string{"needs a VM", "1 passed, 0 failed, 1 skipped\n"}},
		{"other skip", pass + strings.ReplaceAll(skip, "a VM", "root"), false, []string{"NOT ALLOWED", "1 passed, 0 failed, 1 skipped\n"}},
		{"fail", pass + fail, false, []string{"boom", "1 passed, 1 failed, 0 skipped\n"}},
		{"does not build", pass + unbuilt, false, []string{"undefined: x", "1 passed, 1 failed, 0 skipped\n"}},
		{"not JSON", "make: hello\n" + pass, true, []string{"make: hello", "1 passed, 0 failed, 0 skipped\n"}},
		{"nothing", "", false, []string{"0 passed, 1 failed, 0 skipped\n"}},
	} {
		var out strings.Builder
		ok := summarise(strings.NewReader(c.in), &out, []*regexp.Regexp{regexp.MustCompile("needs a VM")})
		if ok != c.ok {
			t.Errorf("%s: %v, want %v", c.name, ok, c.ok)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q lacks %q", c.name, out.String(), want)
			}
		}
	}
}
