// Command sbom describes a binary of a release as a CycloneDX bill of materials: the
// modules that are in it, as the linker wrote them down, with go.sum's hash of each,
// and which of them requires which, from the module graph. The same binary gives the
// same bytes. A binary that is not static and stripped is refused.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	version := flag.String("version", "", "the release's `version`")
	date := flag.String("date", "", "the release's `date`, as in RFC 3339")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" || *date == "" {
		fmt.Fprintln(os.Stderr, "usage: sbom -version VERSION -date DATE BINARY")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, version, date string) error {
	if err := mustBeStatic(binary); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	hash, err := hashOf(binary)
	if err != nil {
		return err
	}
	graph, err := exec.Command("go", "mod", "graph").Output()
	if err != nil {
		return fmt.Errorf("go mod graph: %w", err)
	}
	bill, err := describe(info, version, date, hash, string(graph))
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false) // it is in no page, and purls have & in them
	return out.Encode(bill)
}
