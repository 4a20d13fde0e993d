package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Object is a JSON object of a network configuration.
type Object map[string]any

// Railtune is the shortest railtune entry of a chain.
var Railtune = Object{"type": "railtune"}

// Outcome is what a process left: its output and exit code.
type Outcome struct {
	Stdout, Stderr string
	Exit           int
	Took           time.Duration // from its start to its end
}

// Err is nil when the process ended 0, and else holds all it said.
func (o Outcome) Err() error {
	if o.Exit == 0 {
		return nil
	}
	return fmt.Errorf("exit %d: %s%s", o.Exit, o.Stdout, o.Stderr)
}

// Call is one execution of a CNI plugin, as a runtime would make it.
type Call struct {
	Plugin      string // path of the binary
	Command     string // ADD, CHECK, …
	ContainerID string
	NetNS       string // a path, Namespace.Path for instance
	IfName      string
	Args        string   // CNI_ARGS
	Env         []string // more variables, or other values of those above
	Config      any      // stdin: []byte and string go as they are, all else as JSON
	Host        *Namespace
}

// Run executes the plugin, in Host when that is set. The error is only about
// starting it: a plugin that fails is an Outcome.
func (c Call) Run(ctx context.Context) (Outcome, error) {
	stdin, err := encode(c.Config)
	if err != nil {
		return Outcome{}, err
	}
	cmd := exec.CommandContext(ctx, c.Plugin)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"CNI_COMMAND=" + c.Command,
		"CNI_CONTAINERID=" + c.ContainerID,
		"CNI_NETNS=" + c.NetNS,
		"CNI_IFNAME=" + c.IfName,
		"CNI_ARGS=" + c.Args,
		"CNI_PATH=" + filepath.Dir(c.Plugin),
	}, c.Env...)
	return finish(cmd, c.Host)
}

func encode(config any) ([]byte, error) {
	switch v := config.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	default:
		return json.Marshal(v)
	}
}

// finish runs cmd, in host when that is not nil.
func finish(cmd *exec.Cmd, host *Namespace) (Outcome, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	run := cmd.Start
	if host != nil {
		run = func() error { return host.Start(cmd) }
	}
	if err := run(); err != nil {
		return Outcome{}, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	err := cmd.Wait()
	o := Outcome{Stdout: out.String(), Stderr: errs.String(), Exit: cmd.ProcessState.ExitCode(), Took: time.Since(start)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return o, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	return o, nil
}

// Conflist is the network of one rail: macvlan on its parent with the rail's
// address from static, then the chained plugins.
func (r Rail) Conflist(chain ...Object) Object {
	addr := Object{"address": r.Addr.String()}
	if r.Gateway.IsValid() {
		addr["gateway"] = r.Gateway.String()
	}
	plugins := []Object{{
		"type": "macvlan", "master": r.Parent, "mode": "bridge",
		"ipam": Object{"type": "static", "addresses": []Object{addr}},
	}}
	return Object{"cniVersion": "1.0.0", "name": r.network(), "plugins": append(plugins, chain...)}
}

func (r Rail) network() string { return fmt.Sprintf("rail-%d", r.Index) }

// CNITool runs `cnitool verb` for one rail in the pod's node, with the network
// that Configure wrote.
func (p *Pod) CNITool(ctx context.Context, verb string, r Rail) (Outcome, error) {
	tools, err := FindTools()
	if err != nil {
		return Outcome{}, err
	}
	cmd := exec.CommandContext(ctx, tools.CNITool, verb, r.network(), p.Path())
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + tools.Path, "NETCONFPATH=" + p.conflists, "CNI_IFNAME=" + r.Name}
	return finish(cmd, p.Node)
}

// Configure writes the network of one rail where CNITool finds it. The file
// appears whole: other rails' cnitool reads every file of the folder.
func (p *Pod) Configure(r Rail, conflist Object) error {
	b, err := json.Marshal(conflist)
	if err != nil {
		return err
	}
	part := filepath.Join(p.conflists, r.network()+".part")
	if err := os.WriteFile(part, b, 0o644); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(p.conflists, r.network()+".conflist"))
}

// Attach adds every rail of every pod through cnitool and Rail.Conflist(chain),
// all at once, and returns what failed.
func (f *Fabric) Attach(ctx context.Context, chain ...Object) error {
	return f.eachRail(func(p *Pod, r Rail) error { return p.attach(ctx, r, chain) })
}

// AttachInOrder is Attach as Multus does it: the pods at the same time, the rails
// of each one after another.
func (f *Fabric) AttachInOrder(ctx context.Context, chain ...Object) error {
	return f.EachPod(func(p *Pod) error {
		for _, r := range p.Rails {
			if err := p.attach(ctx, r, chain); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *Pod) attach(ctx context.Context, r Rail, chain []Object) error {
	if err := p.Configure(r, r.Conflist(chain...)); err != nil {
		return err
	}
	return p.tool(ctx, "add", r)
}

// Detach removes every rail that Attach or AttachInOrder added, all at once.
func (f *Fabric) Detach(ctx context.Context) error {
	return f.eachRail(func(p *Pod, r Rail) error { return p.tool(ctx, "del", r) })
}

func (p *Pod) tool(ctx context.Context, verb string, r Rail) error {
	o, err := p.CNITool(ctx, verb, r)
	if err == nil && o.Exit != 0 {
		// cnitool prints its usage between the error and the error again.
		said := strings.TrimSpace(o.Stderr)
		err = errors.New(said[strings.LastIndexByte(said, '\n')+1:])
	}
	if err != nil {
		return fmt.Errorf("cnitool %s %s: %w", verb, p.Prefixed(r), err)
	}
	return nil
}
