package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/railtune/railtune/pkg/config"
)

// Log levels in rising order of importance.
const (
	levelDebug = iota
	levelInfo
	levelWarn
	levelError
)

// levels maps the configuration's words.
var levels = map[string]int{"debug": levelDebug, "info": levelInfo, "warn": levelWarn, "error": levelError}

// logger writes to stderr, which runtimes drop when a verb succeeds, and to a file
// where the configuration names one.
type logger struct {
	level  int
	prefix string
	file   io.WriteCloser
}

// newLogger opens the log of one call. A log file that cannot be opened is said on
// stderr and does not stop the pod.
func newLogger(cfg *config.Config, verb, containerID, ifname string) *logger {
	l := &logger{level: levels[cfg.LogLevel], prefix: verb + " " + containerID + " " + ifname + ": "}
	if cfg.LogFile != "" {
		f, err := os.OpenFile(cfg.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			l.Warnf("logFile: %v", err)
			return l
		}
		l.file = f
	}
	return l
}

func (l *logger) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

func (l *logger) write(level int, name, format string, args ...any) {
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
func (l *logger) Debugf(format string, args ...any) { l.write(levelDebug, "debug", format, args...) }

func (l *logger) Warnf(format string, args ...any) { l.write(levelWarn, "warning", format, args...) }

func (l *logger) Errorf(format string, args ...any) { l.write(levelError, "error", format, args...) }
