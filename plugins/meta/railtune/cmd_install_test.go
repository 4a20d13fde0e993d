package main_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// mustSay runs a command line of the binary, which must end with the given status and
// say all of the texts.
func mustSay(t *testing.T, binary string, status int, line string, texts ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, strings.Fields(line)...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("railtune %s: exit %d, want %d: %s", line, got, status, out)
	}
	for _, text := range texts {
		if !strings.Contains(string(out), text) {
			t.Errorf("railtune %s lacks %q: %s", line, text, out)
		}
	}
}

// TestInstallCommand goes through the life of an installation by the command line. What
// it installs is a plugin: it answers VERSION.
func TestInstallCommand(t *testing.T) {
	binary, dir := testbed.MustRailtune(t), t.TempDir()
	plugin := filepath.Join(dir, "railtune")
	mustSay(t, binary, 1, "install --check --to "+dir, "there is no "+plugin)
	mustSay(t, binary, 0, "install --to "+dir, plugin+" is installed: CNI plugin railtune")
	mustSay(t, binary, 0, "install --to "+dir, "was there already")
	mustSay(t, binary, 0, "install --check --to "+dir)
	mustSay(t, plugin, 0, "install --to "+dir, "was there already") // over itself
	o, err := testbed.Call{Plugin: plugin, Command: "VERSION", Config: `{"cniVersion":"1.1.0"}`}.Run(t.Context())
	if err != nil || o.Err() != nil || !strings.Contains(o.Stdout, "supportedVersions") {
		t.Errorf("the plugin does not answer: %+v (%v)", o, err)
	}
	mustSay(t, binary, 1, "uninstall --check --from "+dir, plugin+" is there")
	mustSay(t, binary, 0, "uninstall --from "+dir, "railtune is removed from "+dir)
	mustSay(t, binary, 0, "uninstall --from "+dir, "railtune was not in "+dir)
	mustSay(t, binary, 0, "uninstall --check --from "+dir)

	if err := os.WriteFile(plugin, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	mustSay(t, binary, 1, "install --check --to "+dir, "is another program")
	mustSay(t, binary, 2, "uninstall --from "+dir, "remove it by hand")
}

func TestInstallRefusals(t *testing.T) {
	binary, dir := testbed.MustRailtune(t), t.TempDir()
	mustSay(t, binary, 2, "install", "--to is missing")
	mustSay(t, binary, 2, "uninstall", "--from is missing")
	mustSay(t, binary, 2, "install --to "+dir+" --idle --check", "exclude each other")
	mustSay(t, binary, 2, "install --to "+dir+"/missing", "there is no folder", "bin_dir")
	mustSay(t, binary, 2, "install "+dir, "unexpected argument")
}

// TestInstallIdle stops both commands as a kubelet does, which is no failure.
func TestInstallIdle(t *testing.T) {
	binary, dir := testbed.MustRailtune(t), t.TempDir()
	for _, line := range []string{"install --idle --to " + dir, "uninstall --idle --from " + dir} {
		cmd := exec.CommandContext(t.Context(), binary, strings.Fields(line)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Errorf("railtune %s says %q: %v", line, said, err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("railtune %s does not stay: %v", line, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("railtune %s, told to end: %v", line, err)
		}
	}
}
