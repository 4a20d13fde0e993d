// Package recorder stands between a CNI client and railtune and writes down what
// the client really sends. Railtune itself runs as it would have without: the same
// environment, the same stdin, its own output and exit status.
//
// It is the test's own binary under the name of the plugin, so a package that uses
// it begins its TestMain with Main.
package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The names in a recorder's folder: the plugin the client finds, the one that is
// meant, and the calls so far, a JSON object a line.
const (
	plugin = "railtune"
	meant  = "railtune.real"
	calls  = "calls"
)

// Call is one execution of railtune by a client.
type Call struct {
	Command, ContainerID, NetNS, IfName, Args string // the CNI_ variables
	Stdin, Stdout, Stderr                     string
	Exit                                      int
}

// Config is the network configuration of the call.
func (c Call) Config() (config map[string]any, err error) {
	return config, json.Unmarshal([]byte(c.Stdin), &config)
}

// Recorder is a folder for CNI_PATH, to be searched before railtune's own.
type Recorder struct{ Dir string }

// New makes a recorder in an empty folder; railtune is the path of the real one.
func New(dir, railtune string) (*Recorder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &Recorder{dir}, errors.Join(
		os.Symlink(self, filepath.Join(dir, plugin)),
		os.Symlink(railtune, filepath.Join(dir, meant)))
}

// Calls returns what was recorded, in the order in which railtune ended.
func (r *Recorder) Calls() ([]Call, error) {
	b, err := os.ReadFile(filepath.Join(r.Dir, calls))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Call
	for dec := json.NewDecoder(bytes.NewReader(b)); ; {
		var c Call
		switch err := dec.Decode(&c); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, c)
	}
}

// MustCalls is Calls for a test, whose log has them.
func (r *Recorder) MustCalls(t testing.TB) []Call {
	t.Helper()
	all, err := r.Calls()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Logf("%s %s exit %d args %s stdin %s", c.Command, c.IfName, c.Exit, c.Args, c.Stdin)
	}
	return all
}

// Main is the plugin: it does not return in a process that was started under
// railtune's name, and does nothing in any other.
func Main() {
	if filepath.Base(os.Args[0]) != plugin {
		return
	}
	exit, err := record(filepath.Dir(os.Args[0]))
	if err != nil {
		fmt.Printf(`{"code":999,"msg":%q}`, "recorder: "+err.Error())
		exit = 1
	}
	os.Exit(exit)
}

func record(dir string) (exit int, err error) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1, err
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(dir, meant))
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), io.MultiWriter(os.Stderr, &errs)
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		return 1, err
	}
	c := Call{
		Command: os.Getenv("CNI_COMMAND"), ContainerID: os.Getenv("CNI_CONTAINERID"), NetNS: os.Getenv("CNI_NETNS"),
		IfName: os.Getenv("CNI_IFNAME"), Args: os.Getenv("CNI_ARGS"),
		Stdin: strings.TrimSpace(string(stdin)), Stdout: out.String(), Stderr: errs.String(), Exit: cmd.ProcessState.ExitCode(),
	}
	line, err := json.Marshal(c)
	if err != nil {
		return 1, err
	}
	f, err := os.OpenFile(filepath.Join(dir, calls), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 1, err
	}
	_, err = f.Write(append(line, '\n'))
	return c.Exit, errors.Join(err, f.Close())
}
