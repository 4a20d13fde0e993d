package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
)

// FromTuning turns what uses tuning and sbr into what uses railtune: network attachment
// definitions and SriovNetworks in YAML or JSON, several documents and lists of them
// too, or a conflist. Its own output comes back as it is. The notes say what was
// dropped, moved and kept, and why.
func FromTuning(text []byte, add Addition) (Output, error) {
	if o, err := parseObject(string(text)); err == nil && o.get("kind") == nil {
		return conflistFrom(o, add)
	}
	var out Output
	var docs []string
	comments := yaml.CommentMap{}
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.UseOrderedMap(), yaml.CommentToMap(comments))
	for {
		clear(comments)
		var doc yaml.MapSlice
		err := guarded("reading", func() error { return dec.Decode(&doc) })
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
		}
		if len(doc) == 0 {
			continue // nothing between two lines of dashes
		}
		if err := out.convert(doc, add); err != nil {
			return out, err
		}
		text, err := document(doc, yaml.WithComment(comments))
		if err != nil {
			return out, err
		}
		docs = append(docs, text)
	}
	if len(docs) == 0 {
		return out, errors.New("there is no object in it; give a NetworkAttachmentDefinition, a SriovNetwork or a conflist")
	}
	out.Files = []File{{"converted.yaml", strings.Join(docs, "---\n")}}
	return out, nil
}

func conflistFrom(o object, add Addition) (out Output, err error) {
	text, err := out.config(o.text("name"), o, add)
	if text == "" {
		text = pretty(o)
	}
	out.Files = []File{{"converted.conflist", text}}
	return out, err
}

// convert changes a Kubernetes object in its place.
func (out *Output) convert(doc yaml.MapSlice, add Addition) error {
	name, _ := at(doc, "metadata", "name").(string)
	kind, _ := at(doc, "kind").(string)
	switch kind {
	case "NetworkAttachmentDefinition":
		text, _ := at(doc, "spec", "config").(string)
		if strings.TrimSpace(text) == "" {
			out.left(name, "its configuration is in a file of the node's")
			return nil
		}
		o, err := parseObject(text)
		if err != nil {
			return fmt.Errorf("%s: spec.config is no JSON object: %w", name, err)
		}
		text, err = out.config(name, o, add)
		if err == nil && text != "" {
			put(doc, text, "spec", "config")
		}
		return err
	case "SriovNetwork":
		return out.metaPlugins(doc, name, add)
	case "List", "NetworkAttachmentDefinitionList", "SriovNetworkList":
		items, _ := at(doc, "items").([]any)
		for _, item := range items {
			if one, ok := item.(yaml.MapSlice); ok {
				if err := out.convert(one, add); err != nil {
					return err
				}
			}
		}
		return nil
	}
	out.left(name, fmt.Sprintf("a %s is no network", kind))
	return nil
}

func (out *Output) left(name, why string) {
	out.Notes = append(out.Notes, fmt.Sprintf("%s: left as it is: %s", name, why))
}

// config converts a network's configuration. The text is empty where nothing changed.
func (out *Output) config(name string, o object, add Addition) (string, error) {
	var plugins []object
	if raw := o.get("plugins"); raw == nil {
		out.left(name, "it is a single plugin, which neither tuning nor sbr is chained to")
		return "", nil
	} else if err := json.Unmarshal(raw, &plugins); err != nil {
		return "", fmt.Errorf("%s: plugins: %w", name, err)
	}
	changed, err := out.list(name, plugins, add)
	if err != nil || changed == nil {
		return "", err
	}
	if o.text("cniVersion") == "" {
		out.Notes = append(out.Notes, name+": it has no cniVersion, so Multus would add it as 0.1.0, which no chained plugin can serve: write one, such as 1.0.0")
	}
	o.set("plugins", changed)
	return pretty(o), nil
}

// list converts a plugin list; nil where nothing is to be changed.
func (out *Output) list(name string, plugins []object, add Addition) ([]object, error) {
	c, err := convert(plugins, add)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !c.changed {
		out.left(name, "it has nothing that railtune replaces")
		return nil, nil
	}
	for _, n := range c.notes {
		out.Notes = append(out.Notes, name+": "+n)
	}
	return c.plugins, nil
}

// metaPlugins converts a SriovNetwork's, which are objects with commas between.
func (out *Output) metaPlugins(doc yaml.MapSlice, name string, add Addition) error {
	text, _ := at(doc, "spec", "metaPlugins").(string)
	plugins, err := rawList(text)
	if err != nil {
		return fmt.Errorf("%s: metaPlugins: %w", name, err)
	}
	plugins, err = out.list(name, plugins, add)
	if err != nil || plugins == nil {
		return err
	}
	put(doc, metaPluginsText(plugins), "spec", "metaPlugins")
	return nil
}

// at is the value at a path, or nil.
func at(doc yaml.MapSlice, path ...string) any {
	for _, item := range doc {
		if item.Key != path[0] {
			continue
		}
		if len(path) == 1 {
			return item.Value
		}
		inner, _ := item.Value.(yaml.MapSlice)
		return at(inner, path[1:]...)
	}
	return nil
}

// put replaces the value at a path that is there.
func put(doc yaml.MapSlice, value any, path ...string) {
	for i, item := range doc {
		if item.Key != path[0] {
			continue
		}
		if len(path) == 1 {
			doc[i].Value = value
			return
		}
		inner, _ := item.Value.(yaml.MapSlice)
		put(inner, value, path[1:]...)
	}
}
