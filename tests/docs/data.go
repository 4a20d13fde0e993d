package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/railtune/railtune/pkg/config"
)

var errUnknown = errors.New("neither a network, nor a plugin's object in one, nor a Kubernetes object")

// Object is a JSON object, or what YAML has in its place.
type Object = map[string]any

// CheckData tells what is wrong with a json, jsonc or yaml block.
func (b Block) CheckData() error {
	if !slices.Contains([]string{"json", "jsonc", "yaml"}, b.Language) {
		return nil
	}
	objects, err := b.Objects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		err := checkObject(o)
		if errors.Is(err, errUnknown) && b.File != "" {
			continue // the commands that read the file judge it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var lineComment = regexp.MustCompile(`(?m)(^|[\s,{\[])//.*$`)

// Objects decodes a json, jsonc or yaml block.
func (b Block) Objects() (all []Object, err error) {
	var from interface{ Decode(any) error }
	switch b.Language {
	case "yaml":
		from = yaml.NewDecoder(strings.NewReader(b.Text), yaml.Strict())
	case "jsonc":
		from = json.NewDecoder(strings.NewReader(lineComment.ReplaceAllString(b.Text, "$1")))
	default:
		from = json.NewDecoder(strings.NewReader(b.Text))
	}
	for {
		var o Object
		switch err := from.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, o)
	}
}

// checkObject knows networks, plugins in them, and the Kubernetes objects that hold
// them.
func checkObject(o Object) error {
	switch kind, _ := o["kind"].(string); {
	case kind == "NetworkAttachmentDefinition":
		text, _ := dig(o, "spec", "config").(string)
		var network Object
		if err := json.Unmarshal([]byte(text), &network); err != nil {
			return fmt.Errorf("spec.config: %w", err)
		}
		return checkObject(network)
	case kind == "SriovNetwork":
		text, _ := dig(o, "spec", "metaPlugins").(string)
		var plugins []Object
		if err := json.Unmarshal([]byte("["+text+"]"), &plugins); err != nil {
			return fmt.Errorf("spec.metaPlugins: %w", err)
		}
		return checkPlugins(plugins)
	case kind != "" && o["apiVersion"] != nil:
		return nil // the API server's to judge
	case o["plugins"] != nil:
		return checkNetwork(o)
	case o["type"] != nil:
		return checkPlugins([]Object{o})
	}
	return fmt.Errorf("%w: %.80v", errUnknown, o)
}

// checkNetwork wants what libcni wants of a network configuration list.
func checkNetwork(o Object) error {
	list, _ := o["plugins"].([]any)
	var plugins []Object
	for _, p := range list {
		plugin, _ := p.(Object)
		if kind, _ := plugin["type"].(string); kind == "" {
			return fmt.Errorf("a plugin without a type: %v", p)
		}
		plugins = append(plugins, plugin)
	}
	if name, _ := o["name"].(string); name == "" || len(plugins) == 0 {
		return fmt.Errorf("a network without a name or without plugins: %.80v", o)
	}
	return checkPlugins(plugins)
}

func checkPlugins(plugins []Object) error {
	for _, p := range plugins {
		if p["type"] != "railtune" {
			continue
		}
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(p); err != nil {
			return err
		}
		if _, err := config.Parse(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func dig(o Object, path ...string) (v any) {
	v = o
	for _, name := range path {
		m, _ := v.(Object)
		v = m[name]
	}
	return v
}

// Manifest tells whether a block holds Kubernetes objects that an API server can
// judge: neither a fragment of one, nor a configuration file of the same form.
func (b Block) Manifest() bool {
	objects, err := b.Objects()
	if b.Language != "yaml" || err != nil || len(objects) == 0 {
		return false
	}
	for _, o := range objects {
		if o["kind"] == nil || o["apiVersion"] == nil || o["kind"] == "Kustomization" {
			return false
		}
	}
	return true
}
