// Package cnicall reads what a CNI runtime calls a plugin with: the environment, the
// head of the configuration on stdin, and whether the two fit together (CNI SPEC.md,
// section 2, "Parameters" and "Errors").
//
// It does what github.com/containernetworking/cni/pkg/skel does, whose verdict its tests
// compare with, in a fifth of the time of a VERSION: that package compiles regular
// expressions and registers the results of every CNI version before main, and reads the
// configuration three times.
package cnicall

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/railtune/railtune/pkg/cnicall/versions"
	"github.com/railtune/railtune/pkg/cnierr"
)

// The verbs.
const (
	Add     = "ADD"
	Check   = "CHECK"
	Del     = "DEL"
	GC      = "GC"
	Status  = "STATUS"
	Version = "VERSION"
)

// older are the versions that a DEL may still come with: Multus sends an empty
// cniVersion, which means 0.1.0, when it has lost the configuration. A DEL that fails
// leaks the device, so it is served all the same.
var older = []string{"0.1.0", "0.2.0", "0.3.0"}

// since is the first version that has a verb, "" for what is none.
func since(verb string) string {
	switch verb {
	case Add, Del, Version:
		return "0.1.0"
	case Check:
		return "0.4.0"
	case GC, Status:
		return "1.1.0"
	}
	return ""
}

// Call is one call of the plugin.
type Call struct {
	Verb        string
	ContainerID string
	NetNS       string
	IfName      string
	// Override says that NetNS may be the namespace the plugin itself runs in
	// (CNI_NETNS_OVERRIDE).
	Override bool
	// Config is what came on stdin; nil for VERSION.
	Config []byte
}

// Read reads a call. Its errors carry the codes of the specification: Environment,
// Decode, Config, Incompatible. A VERSION is complete without anything else.
func Read(getenv func(string) string, stdin io.Reader) (*Call, error) {
	c := &Call{Verb: getenv("CNI_COMMAND")}
	if c.Verb == Version {
		return c, nil
	}
	if since(c.Verb) == "" {
		return nil, cnierr.New(cnierr.Environment, "CNI_COMMAND %q is none of ADD, CHECK, DEL, GC, STATUS, VERSION", c.Verb)
	}
	if err := c.environment(getenv); err != nil {
		return nil, err
	}
	var err error
	if c.Config, err = io.ReadAll(stdin); err != nil {
		return nil, cnierr.New(cnierr.IO, "the configuration cannot be read from stdin: %w", err)
	}
	return c, c.head()
}

// environment reads the variables, and names all that are missing at once.
func (c *Call) environment(getenv func(string) string) error {
	o := getenv("CNI_NETNS_OVERRIDE")
	c.Override = o == "1" || strings.EqualFold(o, "true")
	attachment := c.Verb == Add || c.Verb == Check || c.Verb == Del
	var missing []string
	for _, v := range []struct {
		name     string
		to       *string
		required bool
		valid    func(string) error
	}{
		{"CNI_CONTAINERID", &c.ContainerID, attachment, identifier},
		{"CNI_NETNS", &c.NetNS, attachment && c.Verb != Del, nil},
		{"CNI_IFNAME", &c.IfName, attachment, interfaceName},
		{"CNI_PATH", new(string), true, nil},
	} {
		value := getenv(v.name)
		*v.to = value
		switch {
		case value == "" && v.required:
			missing = append(missing, v.name)
		case value != "" && v.required && v.valid != nil:
			if err := v.valid(value); err != nil {
				return cnierr.New(cnierr.Environment, "%s %q %w", v.name, value, err)
			}
		}
	}
	if len(missing) > 0 {
		return cnierr.New(cnierr.Environment, "%s needs %s, which the runtime did not set", c.Verb, strings.Join(missing, ", "))
	}
	return nil
}

// head checks the part of the configuration that is the same for every plugin.
func (c *Call) head() error {
	var head struct {
		Name       string `json:"name"`
		CNIVersion string `json:"cniVersion"`
	}
	if err := json.Unmarshal(c.Config, &head); err != nil {
		return cnierr.New(cnierr.Decode, "the configuration on stdin is no network configuration: %w", err)
	}
	if head.Name == "" {
		return cnierr.New(cnierr.Config, `the configuration has no "name", which every network has`)
	}
	if err := identifier(head.Name); err != nil {
		return cnierr.New(cnierr.Config, `"name" %q %w`, head.Name, err)
	}
	if head.CNIVersion == "" {
		head.CNIVersion = "0.1.0" // SPEC.md of that version, which had no such field
	}
	return c.version(head.CNIVersion)
}

func (c *Call) version(v string) error {
	known := versions.Spoken
	if c.Verb == Del {
		known = slices.Concat(older, versions.Spoken)
	}
	if !slices.Contains(known, v) {
		return cnierr.New(cnierr.Incompatible, "incompatible CNI versions: cniVersion %q is none that railtune speaks: %s", v, strings.Join(versions.Spoken, ", "))
	}
	if first := since(c.Verb); slices.Index(versions.Spoken, v) < slices.Index(versions.Spoken, first) {
		return cnierr.New(cnierr.Incompatible, "incompatible CNI versions: %s came with cniVersion %s, and this configuration is of %s", c.Verb, first, v)
	}
	return nil
}

// identifier checks a container id or network name (SPEC.md: a letter or digit, then
// also underscore, dot and hyphen).
func identifier(s string) error {
	for i, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case i > 0 && strings.ContainsRune("_.-", r):
		default:
			return fmt.Errorf("has %q in it, or first: letters, digits and, not first, \"_\", \".\" and \"-\" are allowed", r)
		}
	}
	return nil
}

// interfaceName checks a name as the kernel does (net/core/dev.c, dev_valid_name).
func interfaceName(s string) error {
	const longest = 15 // IFNAMSIZ, less the zero at the end
	switch {
	case len(s) > longest:
		return fmt.Errorf("is longer than the %d bytes of an interface name", longest)
	case s == ".", s == "..":
		return fmt.Errorf("is no name of an interface")
	}
	for _, r := range s {
		if r == '/' || r == ':' || unicode.IsSpace(r) {
			return fmt.Errorf("has %q in it, which no name of an interface has", r)
		}
	}
	return nil
}
