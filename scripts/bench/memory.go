package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// memory is what a process has in its memory when it ends, in KiB.
type memory struct {
	own   int // pages of its own
	files int // pages of files, which all processes of a program share
}

// memoryOfAdd is the mean of some ADDs: how many threads the runtime starts, which have
// stacks, and where its heap begins is chance.
func (b *bench) memoryOfAdd(ctx context.Context, d *bed, e entry) (mean memory, err error) {
	const adds = 25
	for range adds {
		if err := d.afresh(ctx, d.pod.Rails[0]); err != nil {
			return memory{}, err
		}
		m, err := b.remembers(d.process(d.pod.Rails[0], e, "ADD"))
		if err != nil {
			return memory{}, err
		}
		mean.own, mean.files = mean.own+m.own, mean.files+m.files
	}
	return memory{mean.own / adds, mean.files / adds}, nil
}

// remembers runs a process and looks at its memory in the moment it ends. The process is
// traced for it, its main thread only.
func (b *bench) remembers(p process) (m memory, err error) {
	stdin, err := p.stdin()
	if err != nil {
		return m, err
	}
	defer stdin.Close()
	runtime.LockOSThread() // ptrace(2): a tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(p.program)
	cmd.Env, cmd.Stdin, cmd.SysProcAttr = p.environment(), stdin, &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return m, err
	}
	err = untilExit(cmd.Process.Pid)
	if err == nil {
		m, err = memoryOf(cmd.Process.Pid)
	}
	if detached := syscall.PtraceDetach(cmd.Process.Pid); detached != nil || err != nil {
		_ = cmd.Process.Kill()
	}
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	if err != nil {
		return m, fmt.Errorf("%s %s: %w", filepath.Base(p.program), p.verb, err)
	}
	return m, nil
}

// untilExit returns when a process that stopped at its start is about to end.
func untilExit(pid int) error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(pid, unix.PTRACE_O_TRACEEXIT); err != nil {
		return err
	}
	for signal := 0; ; {
		if err := syscall.PtraceCont(pid, signal); err != nil {
			return err
		}
		if _, err := syscall.Wait4(pid, &status, unix.WALL, nil); err != nil {
			return err
		}
		switch {
		case !status.Stopped():
			return fmt.Errorf("it ended with %#x, unseen", status)
		case status.TrapCause() == unix.PTRACE_EVENT_EXIT:
			return nil
		}
		signal = int(status.StopSignal())
	}
}

func memoryOf(pid int) (m memory, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(raw)) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "RssAnon":
			_, err = fmt.Sscan(value, &m.own)
		case "RssFile":
			_, err = fmt.Sscan(value, &m.files)
		}
	}
	return m, err
}
