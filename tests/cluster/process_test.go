//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// patience bounds each wait for a program of the cluster; only one that does not
// work reaches it.
const patience = 3 * time.Minute

// process is a server the tests started.
type process struct {
	cmd   *exec.Cmd
	log   string // its output
	ended chan struct{}
}

// start runs a server in a namespace. It dies with the test's process, however
// that ends.
func start(host *testbed.Namespace, dir string, env []string, argv ...string) (*process, error) {
	return startIn(host, dir, env, 0, argv)
}

// startFirst runs a server as the first process of a process namespace: all it has
// started, and left, dies with it.
func startFirst(host *testbed.Namespace, dir string, argv ...string) (*process, error) {
	line := append([]string{"/bin/sh", "-c", `mount -t proc proc /proc && exec "$0" "$@"`}, argv...)
	return startIn(host, dir, nil, syscall.CLONE_NEWPID|syscall.CLONE_NEWNS, line)
}

func startIn(host *testbed.Namespace, dir string, env []string, clone uintptr, argv []string) (*process, error) {
	p := &process{cmd: exec.Command("nsenter", append([]string{"--net=" + host.Path(), "--"}, argv...)...), ended: make(chan struct{})}
	f, err := os.CreateTemp(dir, "log-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p.log = f.Name()
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + dir}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: clone}
	started := make(chan error)
	go func() {
		// The death signal comes with the end of the thread that started the server
		// (prctl(2)), so this one is kept. It is also why nsenter enters the
		// namespace: Namespace.Do would use a thread of its own.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// until waits for ready to return nil. None of these servers tells anybody when it
// is, so it is asked again and again.
func (p *process) until(ready func() error) error {
	limit, again := time.After(patience), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s has ended: %s", p.name(), p.said())
		case <-limit:
			return fmt.Errorf("%s is not ready after %s: %w: %s", p.name(), patience, err, p.said())
		case <-again.C:
		}
	}
}

func (p *process) name() string { return strings.Join(p.cmd.Args, " ") }

// said is the end of what the server printed.
func (p *process) said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// stop ends the server and waits until it is gone.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(30 * time.Second):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("%s did not end when asked to: %s", p.name(), p.said())
}
