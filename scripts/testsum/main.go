// Testsum reads `go test -json` on stdin, prints what failed and what was
// skipped, and ends with one line of counts. It exits 1 on a failure and on a
// skip that no pattern of its arguments allows.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	var allowed []*regexp.Regexp
	for _, arg := range os.Args[1:] {
		allowed = append(allowed, regexp.MustCompile(arg))
	}
	if !summarise(os.Stdin, os.Stdout, allowed) {
		os.Exit(1)
	}
}

// event is a line of `go test -json` (go doc test2json; build events: go help
// buildjson).
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// summarise reports whether all is well.
func summarise(in io.Reader, out io.Writer, allowed []*regexp.Regexp) bool {
	var passed, failed, skipped, unwelcome int
	output := map[string]string{} // by package and test
	failures := map[string]int{}  // by package
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			fmt.Fprintln(out, lines.Text()) // make's own, or the toolchain's
			continue
		}
		id := e.Package + " " + e.Test
		switch {
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output":
			output[id] += e.Output
		case e.Action == "pass" && e.Test != "":
			passed++
		case e.Action == "skip" && e.Test != "":
			skipped++
			verdict := "allowed"
			if !allows(allowed, output[id]) {
				verdict = "NOT ALLOWED"
				unwelcome++
			}
			fmt.Fprintf(out, "skipped (%s): %s\n%s", verdict, id, output[id])
		case e.Action == "fail" && e.Test != "":
			failed++
			failures[e.Package]++
			fmt.Fprintf(out, "failed: %s\n%s", id, output[id])
		case e.Action == "fail": // a package: it did not build, crashed, or ran out of time
			if failures[e.Package] == 0 {
				failed++
			}
			fmt.Fprintf(out, "failed: %s\n%s", id, output[id])
		}
		if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
			delete(output, id)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, "reading test output:", err)
		failed++
	}
	if passed == 0 {
		fmt.Fprintln(out, "no test passed: was this go test -json?")
		failed++
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed == 0 && unwelcome == 0
}

func allows(allowed []*regexp.Regexp, reason string) bool {
	for _, re := range allowed {
		if re.MatchString(strings.TrimSpace(reason)) {
			return true
		}
	}
	return false
}
