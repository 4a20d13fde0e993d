// Command validate checks bills of materials against the schema of CycloneDX 1.6, as
// its authors publish it, and that no reference in them leads nowhere. It has a module
// of its own, so that what only a test needs is not in the product's.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: validate BILL…")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "validate:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	schema, err := compile()
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		if err := validate(schema, file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(errs...)
}

// compile reads the schemas, which are in the source of the library.
func compile() (*jsonschema.Schema, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		return nil, fmt.Errorf("where the schemas are: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "schema")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	// They name each other by these addresses, which nobody is asked for.
	for url, name := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":  "bom-1.6.schema.json",
		"http://cyclonedx.org/schema/spdx.schema.json":     "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = c.AddResource(url, document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
}

func validate(schema *jsonschema.Schema, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := schema.Validate(document); err != nil {
		return err
	}
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		return err
	}
	return references(&bill)
}

// references is nil when every component is one of the graph, once, and nothing else is.
func references(bill *cyclonedx.BOM) error {
	known := map[string]bool{bill.Metadata.Component.BOMRef: true}
	for _, c := range *bill.Components {
		if known[c.BOMRef] {
			return fmt.Errorf("%s is there twice", c.BOMRef)
		}
		known[c.BOMRef] = true
	}
	seen := map[string]bool{}
	for _, d := range *bill.Dependencies {
		if !known[d.Ref] || seen[d.Ref] {
			return fmt.Errorf("the graph has %s, which is no component or comes twice", d.Ref)
		}
		seen[d.Ref] = true
		if d.Dependencies == nil {
			continue
		}
		for _, to := range *d.Dependencies {
			if !known[to] {
				return fmt.Errorf("%s depends on %s, which is no component", d.Ref, to)
			}
		}
	}
	if len(seen) != len(known) {
		return fmt.Errorf("the graph has %d of %d components", len(seen), len(known))
	}
	return nil
}
