package plugin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/config"
)

// Log levels in rising order of importance.
const (
	levelDebug = iota
	levelInfo
	levelWarn
	levelError
)

// levelOf is the level of a word of the configuration.
func levelOf(word string) int {
	switch word {
	case "debug":
		return levelDebug
	case "info":
		return levelInfo
	case "warn":
		return levelWarn
	}
	return levelError
}

// Logger writes to stderr, which runtimes drop when a verb succeeds, and to a file
// where the configuration names one.
type Logger struct {
	level  int
	prefix string
	file   io.WriteCloser
}

// NewLogger opens the log of one call. A log file that cannot be opened is said on
// stderr and does not stop the pod.
func NewLogger(cfg *config.Config, verb, containerID, ifname string) *Logger {
	l := &Logger{level: levelOf(cfg.LogLevel), prefix: verb + " " + containerID + " " + ifname + ": "}
	if cfg.LogFile != "" {
		f, err := openLog(cfg.LogFile)
		if err != nil {
			l.Warnf("logFile: %v", err)
			return l
		}
		l.file = f
	}
	return l
}

// openLog opens a file to append to. Where it is was chosen by the author of a network
// definition, who need not be the node's administrator: no symbolic link is followed
// below /var/log, nothing that is not a plain file is written to, and nothing waits.
func openLog(path string) (*os.File, error) {
	dir, err := unix.Open(logDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: logDir, Err: err}
	}
	defer unix.Close(dir)
	name := strings.TrimPrefix(path, logDir+"/")
	if folder, file, ok := strings.Cut(name, "/"); ok {
		below, err := unix.Openat(dir, folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: logDir + "/" + folder, Err: err}
		}
		defer unix.Close(below)
		dir, name = below, file
	}
	fd, err := unix.Openat(dir, name, unix.O_APPEND|unix.O_CREAT|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o640)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a plain file of one name", path))
	}
	return f, nil
}

// logDir is where log files are; the configuration allows no others.
const logDir = "/var/log"

// Close closes the log file, where there is one.
func (l *Logger) Close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

func (l *Logger) write(level int, name, format string, args ...any) {
	if level < l.level {
		return
	}
	line := name + ": " + l.prefix + fmt.Sprintf(format, args...) + "\n"
	fmt.Fprint(os.Stderr, "railtune: "+line)
	if l.file != nil {
		_, _ = io.WriteString(l.file, time.Now().UTC().Format(time.RFC3339Nano)+" "+line)
	}
}

// Debugf, Warnf and Errorf write one line.
func (l *Logger) Debugf(format string, args ...any) { l.write(levelDebug, "debug", format, args...) }

func (l *Logger) Warnf(format string, args ...any) { l.write(levelWarn, "warning", format, args...) }

func (l *Logger) Errorf(format string, args ...any) { l.write(levelError, "error", format, args...) }
