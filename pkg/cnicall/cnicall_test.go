package cnicall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/railtune/railtune/pkg/cnicall/versions"
	"github.com/railtune/railtune/pkg/cnierr"
)

// asSkel makes the test binary a plugin whose verbs do nothing, around pkg/skel.
const asSkel = "RAILTUNE_TEST_AS_SKEL"

func TestMain(m *testing.M) {
	if os.Getenv(asSkel) != "" {
		spoken := versions.Spoken
		if os.Getenv("CNI_COMMAND") == Del {
			spoken = append(older, versions.Spoken...)
		}
		nothing := func(*skel.CmdArgs) error { return nil }
		skel.PluginMainFuncs(skel.CNIFuncs{Add: nothing, Check: nothing, Del: nothing, GC: nothing, Status: nothing},
			version.PluginSupports(spoken...), "test")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type environment map[string]string

func (e environment) with(name, value string) environment {
	out := environment{}
	for k, v := range e {
		out[k] = v
	}
	out[name] = value
	return out
}

// skelSays runs the library on a call and returns what it prints and its error code, 0
// for success.
func skelSays(t *testing.T, e environment, stdin string) (out string, code cnierr.Code) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{asSkel + "=1"}
	for k, v := range e {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdin = strings.NewReader(stdin)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		return stdout.String(), 0
	}
	var e2 struct{ Code uint }
	if err := json.Unmarshal(stdout.Bytes(), &e2); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	return stdout.String(), cnierr.Code(e2.Code)
}

func read(e environment, stdin string) (*Call, cnierr.Code, error) {
	c, err := Read(func(name string) string { return e[name] }, strings.NewReader(stdin))
	return c, cnierr.CodeOf(err, 0), err
}

// TestLikeSkel: the library's verdict on a call is ours, for every verb and every way a
// call can be wrong.
func TestLikeSkel(t *testing.T) {
	t.Parallel()
	good := environment{
		"CNI_CONTAINERID": "c-1_a.b", "CNI_NETNS": "/run/netns/none", "CNI_IFNAME": "net1", "CNI_PATH": "/opt/cni/bin",
		"CNI_NETNS_OVERRIDE": "1", // the library's own look at the namespace is not what is compared
	}
	type env struct{ name, value string }
	environments := []env{
		{"", ""},
		{"CNI_CONTAINERID", ""},
		{"CNI_CONTAINERID", "-a"},
		{"CNI_CONTAINERID", "a/b"},
		{"CNI_CONTAINERID", "ä"},
		{"CNI_NETNS", ""},
		{"CNI_PATH", ""},
		{"CNI_IFNAME", ""},
		{"CNI_IFNAME", "."},
		{"CNI_IFNAME", ".."},
		{"CNI_IFNAME", "a b"},
		{"CNI_IFNAME", "a/b"},
		{"CNI_IFNAME", "a:b"},
		{"CNI_IFNAME", "a\u2003b"},
		{"CNI_IFNAME", "fifteen-byte-ifs"},
		{"CNI_IFNAME", "fifteen-byte-if"},
		{"CNI_IFNAME", "all"},
	}
	var configs []string
	for _, v := range []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", "1.2.0", "9.9.9", ""} {
		configs = append(configs, fmt.Sprintf(`{"cniVersion":%q,"name":"n","type":"railtune"}`, v))
	}
	configs = append(configs, "", "{", "[]", "null", "7", `{"name":""}`, `{"cniVersion":"1.0.0"}`, `{"cniVersion":"1.0.0","name":"-n"}`,
		`{"cniVersion":"1.0.0","name":"a b"}`, `{"cniVersion":1,"name":"n"}`, `{"cniVersion":"1.0.0","name":7}`, `{"name":"n"}`,
		`{"cniVersion":"1.0.0","name":"n"} {}`)
	for _, verb := range []string{Add, Check, Del, GC, Status, Version, "add", "NOPE"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			compare := func(e environment, config string) {
				out, want := skelSays(t, e, config)
				_, got, err := read(e, config)
				if got != want {
					t.Errorf("%v %s: code %d (%v), pkg/skel says %d: %s", e, config, got, err, want, out)
				}
			}
			e := good.with("CNI_COMMAND", verb)
			for _, change := range environments {
				compare(e.with(change.name, change.value), configs[5])
			}
			if since(verb) == "" {
				return // the library looks at stdin before it sees that there is no such verb
			}
			for _, config := range configs {
				compare(e, config)
			}
		})
	}
}

// TestVersionResult: what VERSION prints is the library's, to the byte.
func TestVersionResult(t *testing.T) {
	t.Parallel()
	if out, _ := skelSays(t, environment{"CNI_COMMAND": Version}, ""); out != versions.Result() {
		t.Errorf("%q, pkg/skel prints %q", versions.Result(), out)
	}
}

// TestCall: a good call has all that was given.
func TestCall(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"": false, "0": false, "1": true, "true": true, "TRUE": true, "yes": false} {
		config := `{"cniVersion":"1.0.0","name":"n"}`
		c, _, err := read(environment{
			"CNI_COMMAND": Add, "CNI_CONTAINERID": "c", "CNI_NETNS": "/run/netns/x", "CNI_IFNAME": "net1", "CNI_PATH": "/p",
			"CNI_NETNS_OVERRIDE": value,
		}, config)
		if err != nil {
			t.Fatal(err)
		}
		if c.Verb != Add || c.ContainerID != "c" || c.NetNS != "/run/netns/x" || c.IfName != "net1" || c.Override != want || string(c.Config) != config {
			t.Errorf("CNI_NETNS_OVERRIDE=%s: %+v", value, c)
		}
	}
}

// fakeBrokenStdin stands for a pipe whose other end fails.
type fakeBrokenStdin struct{}

func (fakeBrokenStdin) Read([]byte) (int, error) { return 0, errors.New("broken") }

// TestMessages: every mistake is named, and a runtime that forgets several variables is
// told all of them.
func TestMessages(t *testing.T) {
	t.Parallel()
	_, _, err := read(environment{"CNI_COMMAND": Add}, "")
	for _, name := range []string{"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	_, err = Read(func(name string) string { return environment{"CNI_COMMAND": GC, "CNI_PATH": "/p"}[name] }, fakeBrokenStdin{})
	if cnierr.CodeOf(err, 0) != cnierr.IO {
		t.Errorf("unreadable stdin: %v", err)
	}
}
