package generate

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// File is one generated object, under the name it should have in a folder.
type File struct {
	Name string
	Text string
}

// Output is what was generated, and notes for the person who asked for it.
type Output struct {
	Files []File
	Notes []string
}

// Stream is all files as one text: YAML documents with a line of dashes between. Several
// files of another form are an error, since nobody reads such a text.
func (o Output) Stream() (string, error) {
	var texts []string
	for _, f := range o.Files {
		if len(o.Files) > 1 && !strings.HasSuffix(f.Name, ".yaml") {
			return "", fmt.Errorf("%d files like %s cannot be one text; give a folder (--out), or one rail (--rails 1 --first N)", len(o.Files), f.Name)
		}
		texts = append(texts, f.Text)
	}
	return strings.Join(texts, "---\n"), nil
}

// Kind is something Rails.Generate makes.
type Kind struct {
	Name string
	Says string // one line about it
	make func(Rails, []rail) ([]File, error)
}

// Kinds returns all kinds, in the order in which help lists them.
func Kinds() []Kind {
	return []Kind{
		{"nad", "a NetworkAttachmentDefinition for each rail", perRail("yaml", Rails.nad)},
		{"sriovnetwork", "a SriovNetwork for each rail, railtune in metaPlugins", perRail("yaml", Rails.sriovNetwork)},
		{"conflist", "a conflist for each rail, for cnitool", perRail("conflist", Rails.conflistFile)},
		{"sysctl.d", "settings of a node whose pods use hostNetwork, by interface pattern", sysctlD},
		{"dranet", "a ResourceClaimTemplate with DRANET's interface configuration", dranet},
		{"pod", "a pod with the two ARP values in its securityContext", pod},
	}
}

// Generate makes the objects of a kind.
func (r Rails) Generate(kind string) (Output, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name != kind {
			names = append(names, k.Name)
			continue
		}
		rails, err := r.each()
		if err != nil {
			return Output{}, err
		}
		files, err := k.make(r, rails)
		if err != nil {
			return Output{}, err
		}
		return Output{Files: files, Notes: r.notes(kind)}, nil
	}
	return Output{}, fmt.Errorf("%q is none of %s", kind, strings.Join(names, ", "))
}

// perRail makes a file for each rail.
func perRail(suffix string, one func(Rails, rail, int) (string, error)) func(Rails, []rail) ([]File, error) {
	return func(r Rails, rails []rail) (files []File, err error) {
		for i, rail := range rails {
			text, err := one(r, rail, r.First+i)
			if err != nil {
				return nil, err
			}
			files = append(files, File{rail.name + "." + suffix, text})
		}
		return files, nil
	}
}

func (r Rails) conflistFile(one rail, number int) (string, error) {
	list, err := r.conflist(one, number)
	return pretty(list), err
}

// metadata is an object's; the namespace and the annotations only where they are some.
func metadata(name, namespace string, annotations yaml.MapSlice) yaml.MapSlice {
	m := yaml.MapSlice{{Key: "name", Value: name}}
	if namespace != "" {
		m = append(m, yaml.MapItem{Key: "namespace", Value: namespace})
	}
	if len(annotations) > 0 {
		m = append(m, yaml.MapItem{Key: "annotations", Value: annotations})
	}
	return m
}

// resourceName is where Multus looks for the device plugin's resource.
const resourceName = "k8s.v1.cni.cncf.io/resourceName"

func (r Rails) nad(one rail, number int) (string, error) {
	list, err := r.conflist(one, number)
	if err != nil {
		return "", err
	}
	var annotations yaml.MapSlice
	if one.resource != "" {
		annotations = yaml.MapSlice{{Key: resourceName, Value: one.resource}}
	}
	return document(yaml.MapSlice{
		{Key: "apiVersion", Value: "k8s.cni.cncf.io/v1"},
		{Key: "kind", Value: "NetworkAttachmentDefinition"},
		{Key: "metadata", Value: metadata(one.name, r.Namespace, annotations)},
		{Key: "spec", Value: yaml.MapSlice{{Key: "config", Value: pretty(list)}}},
	})
}

// operatorNamespace is where the SR-IOV Network Operator looks for its objects; the
// definitions it makes go where networkNamespace says.
const operatorNamespace = "sriov-network-operator"

func (r Rails) sriovNetwork(one rail, number int) (string, error) {
	_, resource, _ := strings.Cut(one.resource, "/")
	if resource == "" {
		resource = one.resource
	}
	if resource == "" {
		return "", fmt.Errorf("a SriovNetwork needs a resource: give the resourceName of its node policy, such as --resource %s", r.Parent)
	}
	rest, err := r.metaPlugins(one, number)
	if err != nil {
		return "", err
	}
	manage, err := r.ipam(one, number)
	if err != nil {
		return "", err
	}
	spec := yaml.MapSlice{{Key: "resourceName", Value: resource}}
	if r.Namespace != "" {
		spec = append(spec, yaml.MapItem{Key: "networkNamespace", Value: r.Namespace})
	}
	more, err := objectOf("interface", r.Interface, number)
	if err != nil {
		return "", err
	}
	if manage.runtime {
		more.set("capabilities", `{"ips": true}`)
	}
	fromJSON, err := toYAML(more)
	if err != nil {
		return "", err
	}
	spec = append(append(spec, fromJSON...),
		yaml.MapItem{Key: "ipam", Value: pretty(manage.object)},
		yaml.MapItem{Key: "metaPlugins", Value: metaPluginsText(rest)})
	for _, item := range spec {
		if s, ok := item.Value.(string); ok && strings.Contains(s, "'") {
			return "", fmt.Errorf("%s of %s has an apostrophe, on which the SR-IOV Network Operator's rendering breaks: %s", item.Key, one.name, strings.TrimSpace(s))
		}
	}
	return document(yaml.MapSlice{
		{Key: "apiVersion", Value: "sriovnetwork.openshift.io/v1"},
		{Key: "kind", Value: "SriovNetwork"},
		{Key: "metadata", Value: metadata(one.name, operatorNamespace, nil)},
		{Key: "spec", Value: spec},
	})
}

// metaPluginsText writes objects as the operator takes them, with commas between.
func metaPluginsText(plugins []object) string {
	var texts []string
	for _, o := range plugins {
		texts = append(texts, strings.TrimSuffix(pretty(o), "\n"))
	}
	return strings.Join(texts, ",\n") + "\n"
}

// toYAML turns a JSON object into what the YAML library writes, in its order.
func toYAML(o object) (out yaml.MapSlice, err error) {
	err = yaml.UnmarshalWithOptions(marshal(o), &out, yaml.UseOrderedMap())
	return out, err
}

// document is one YAML document. Texts of several lines are written as such.
func document(value any, more ...yaml.EncodeOption) (string, error) {
	var text []byte
	options := append([]yaml.EncodeOption{yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(false)}, more...)
	err := guarded("writing", func() (err error) {
		text, err = yaml.MarshalWithOptions(value, options...)
		return err
	})
	return string(text), err
}

// guarded runs a call of the YAML library's, which panics over some documents nobody
// would write (found by fuzzing; 1.19.2).
func guarded(what string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s YAML: the library gives up over this document (%v); write it more plainly", what, p)
		}
	}()
	return call()
}
