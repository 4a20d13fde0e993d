package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/testbed"
)

// bench is what the sections share.
type bench struct {
	testbed.Tools
	// dir holds what is made for the run, among it copies of all that is measured.
	dir, railtune, floor, floorJSON, launch string
	// old is the railtune of -against, or empty.
	old string
	// reached are the results that the targets are judged by.
	reached map[string]float64
}

func newBench(ctx context.Context) (*bench, error) {
	tools, err := testbed.FindTools()
	if err != nil {
		return nil, err
	}
	if _, err := testbed.FindRailtune(); err != nil {
		return nil, err
	}
	b := &bench{Tools: tools, reached: map[string]float64{}}
	if b.dir, err = os.MkdirTemp("", "railtune-bench-"); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

// prepare builds the floors and the launcher, and copies what is measured, as an installer
// does: a file that was written from start to end is in the page cache in larger pieces
// than one that a linker wrote, and a program of small pieces takes up to a tenth longer to
// start.
func (b *bench) prepare(ctx context.Context) error {
	built := filepath.Join(b.dir, "built")
	// As the plugins are built, so that the floors are theirs.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built+"/",
		"./scripts/bench/floor", "./scripts/bench/floorjson", "./scripts/bench/launch")
	build.Dir = filepath.Dir(filepath.Dir(b.Railtune))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the floor and the launcher in %s: %w: %s", build.Dir, err, out)
	}
	programs := filepath.Dir(b.CNITool)
	for _, c := range []struct {
		to         *string
		from, name string
	}{
		{&b.railtune, b.Railtune, "railtune"},
		{&b.old, *against, "before"},
		{new(string), filepath.Join(programs, "tuning"), "tuning"},
		{new(string), filepath.Join(programs, "sbr"), "sbr"},
		{&b.floor, filepath.Join(built, "floor"), "floor"},
		{&b.floorJSON, filepath.Join(built, "floorjson"), "floorjson"},
		{&b.launch, filepath.Join(built, "launch"), "launch"},
	} {
		if c.from == "" {
			continue
		}
		*c.to = filepath.Join(b.dir, c.name)
		if err := install(c.from, *c.to); err != nil {
			return err
		}
	}
	return nil
}

// install copies a program, in pieces as container runtimes and railtune install do.
func install(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (b *bench) plugin(name string) string { return filepath.Join(b.dir, name) }

// cost is what one process, or several one after another, took.
type cost struct {
	wall, cpu time.Duration
	rss       int64 // the largest, in KiB
}

func (c *cost) add(o cost) {
	c.wall, c.cpu, c.rss = c.wall+o.wall, c.cpu+o.cpu, max(c.rss, o.rss)
}

// process is one call of a plugin.
type process struct {
	program string
	verb    string
	pod     *testbed.Pod
	ifname  string
	config  testbed.Object
}

// environment is what a runtime sets.
func (p process) environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "CNI_COMMAND=" + p.verb, "CNI_PATH=/opt/cni/bin"}
	if p.pod != nil {
		env = append(env, "CNI_CONTAINERID="+p.pod.Name, "CNI_NETNS="+p.pod.Path(), "CNI_IFNAME="+p.ifname)
	}
	return env
}

// stdin is a file in memory: nothing of ours has to run while the process does.
func (p process) stdin() (*os.File, error) {
	raw, err := json.Marshal(p.config)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "stdin")
	_, err = f.Write(raw)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
	}
	return f, err
}

// measure runs the process through the launcher.
func (b *bench) measure(ctx context.Context, p process) (cost, error) {
	report, out, err := b.execute(ctx, p, b.launch, p.program)
	if err != nil {
		return cost{}, err
	}
	var wall, user, system, rss, own int64
	if _, err := fmt.Sscan(report, &wall, &user, &system, &rss, &own); err != nil {
		return cost{}, fmt.Errorf("the launcher said %q: %w: %s", report, err, out)
	}
	return cost{time.Duration(wall), time.Duration(user + system), rss}, nil
}

// execute runs a command line with the process's environment and stdin. It returns
// what was written to file descriptor 3, and stdout and stderr.
func (b *bench) execute(ctx context.Context, p process, command ...string) (report, out string, err error) {
	stdin, err := p.stdin()
	if err != nil {
		return "", "", err
	}
	defer stdin.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return "", "", err
	}
	defer r.Close()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = p.environment(), stdin, &said, &said, []*os.File{w}
	err = cmd.Run()
	w.Close()
	if err != nil {
		return "", said.String(), fmt.Errorf("%s %s %s: %w: %s", filepath.Base(p.program), p.verb, p.ifname, err, strings.TrimSpace(said.String()))
	}
	var buf [256]byte
	n, _ := r.Read(buf[:]) // the launcher's line was in the pipe before it ended
	return string(buf[:n]), said.String(), nil
}
