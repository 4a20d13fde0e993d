package install

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestHelper is not a test but what the others start: a process that installs two
// programs in turn, and says so, until it is killed.
func TestHelper(t *testing.T) {
	dir := os.Getenv("INSTALL_TEST_DIR")
	for i := 0; dir != ""; i++ {
		state, err := Install(os.Getenv(fmt.Sprint("INSTALL_TEST_", i%2)), dir, name)
		if err != nil {
			fmt.Println("failed:", err)
			return
		}
		fmt.Println("installed", state.Changed)
	}
}

// installer is such a process. It is one of its own because a program that is started
// while another thread copies inherits the copy's open file for a moment, and then
// nobody can start that; railtune starts nothing.
type installer struct {
	cmd  *exec.Cmd
	says *bufio.Scanner
}

func startInstaller(t *testing.T, dir string, programs [2]string) *installer {
	t.Helper()
	i := &installer{cmd: exec.Command(Self, "-test.run", "^TestHelper$")}
	i.cmd.Env = append(os.Environ(), "INSTALL_TEST_DIR="+dir, "INSTALL_TEST_0="+programs[0], "INSTALL_TEST_1="+programs[1])
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	i.says = bufio.NewScanner(out)
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return i
}

// wait waits for the next installation.
func (i *installer) wait() error {
	if !i.says.Scan() || !strings.HasPrefix(i.says.Text(), "installed") {
		return fmt.Errorf("an installation said %q", i.says.Text())
	}
	return nil
}

func (i *installer) kill() {
	_ = i.cmd.Process.Kill() // it may have ended
	_ = i.cmd.Wait()
}

// scripts are two programs of some length that say which one they are in the end.
func scripts(t *testing.T) (both [2]string) {
	t.Helper()
	for i, says := range []string{"one", "two"} {
		both[i] = program(t, "#!/bin/sh\n"+strings.Repeat("# "+says+"\n", 1<<16)+"echo "+says+"\n")
	}
	return both
}

// TestBusy installs one program over another, from several sides, while it is being
// started all the time: each start must be of a whole one.
func TestBusy(t *testing.T) {
	dir, programs := t.TempDir(), scripts(t)
	mustInstall(t, programs[0], dir, true)
	done := make(chan struct{})
	var starters, installers sync.WaitGroup
	seen := make([]map[string]int, 2)
	for i := range seen {
		seen[i] = map[string]int{}
		starters.Go(func() {
			for {
				out, err := exec.Command(filepath.Join(dir, name)).CombinedOutput()
				if err != nil {
					t.Errorf("a start failed: %v: %s", err, out)
				}
				seen[i][string(out)]++
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 3 {
		p := startInstaller(t, dir, programs)
		installers.Go(func() {
			defer p.kill()
			for range 100 {
				if err := p.wait(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	installers.Wait()
	close(done)
	starters.Wait()
	t.Logf("starts, by what they said: %v", seen)
	for _, s := range seen {
		for out := range s {
			if out != "one\n" && out != "two\n" {
				t.Errorf("what was started said %q", out)
			}
		}
	}
}

// TestKilled kills installations at any moment, which must never show, and only ever
// leave what the next one removes.
func TestKilled(t *testing.T) {
	dir, programs := t.TempDir(), scripts(t)
	mustInstall(t, programs[0], dir, true)
	left := 0
	for range 40 {
		p := startInstaller(t, dir, programs)
		err := p.wait()
		p.kill() // at the second or third one
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.HasSuffix(got, []byte("echo one\n")) && !bytes.HasSuffix(got, []byte("echo two\n")) {
			t.Fatalf("a killed installation left %d bytes (%v)", len(got), err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		left += len(entries) - 1
	}
	t.Logf("40 killed installations left %d unfinished copies", left)
	if _, err := Install(programs[1], dir, name); err != nil {
		t.Fatal(err)
	}
	mustHold(t, dir, programs[1])
}
