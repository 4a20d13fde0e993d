package docs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds a command; only one that hangs reaches it.
const patience = 2 * time.Minute

// Shell is one bash that runs the commands of a page one after another, so that what
// one of them sets the next ones find.
type Shell struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	status chan string
	out    string // the file with what the last command printed
}

// NewShell starts a shell in a working directory by start, which decides about the
// network namespace. env is all the environment there is.
func NewShell(dir string, env []string, start func(*exec.Cmd) error) (*Shell, error) {
	s := &Shell{cmd: exec.Command("bash", "--noprofile", "--norc"), status: make(chan string), out: filepath.Join(dir, ".printed")}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.ExtraFiles = []*os.File{write} // file descriptor 3
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	s.cmd.Stderr = os.Stderr // complaints about the lines below, if they are wrong
	err = start(s.cmd)
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	go func() {
		defer read.Close()
		defer close(s.status)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			s.status <- lines.Text()
		}
	}()
	return s, nil
}

// Run runs a command and returns what it printed, stdout and stderr, and its status.
func (s *Shell) Run(command string) (printed string, exit int, err error) {
	if _, err := fmt.Fprintf(s.stdin, "{ %s\n} </dev/null >%s 2>&1 3>&-; echo $? >&3\n", command, s.out); err != nil {
		return "", 0, err
	}
	var said string
	var alive bool
	select {
	case said, alive = <-s.status:
	case <-time.After(patience):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		err = fmt.Errorf("it had not ended after %s", patience)
	}
	b, readErr := os.ReadFile(s.out)
	printed = string(b)
	switch {
	case err != nil:
		return printed, 0, err
	case !alive:
		return printed, 0, fmt.Errorf("the shell has ended")
	case readErr != nil:
		return "", 0, readErr
	}
	exit, err = strconv.Atoi(strings.TrimSpace(said))
	return printed, exit, err
}

// Close ends the shell and what it left running.
func (s *Shell) Close() error {
	_ = s.stdin.Close()
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	for range s.status {
	}
	_ = s.cmd.Wait() // it was killed
	return nil
}
