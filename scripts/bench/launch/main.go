// Launch runs one program and writes what it took to file descriptor 3: the wall
// time from before the fork to after the wait, user and system time, all in
// nanoseconds, and the peak resident set in KiB.
//
// It is a process of its own, and small, because of the last number: at exec the
// kernel carries the peak of the old address space over into the new one's
// ru_maxrss (fs/exec.c, exec_mmap), and Go forks without copying, so a program
// started by a large one is never measured below that one's size. What launch
// reports is therefore exact above launch's own size, which it writes too.
//
//	launch PROGRAM        run PROGRAM
//	NAME                  run NAME.real and append to NAME.log: in the place of a
//	                      plugin that something else calls
package main

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

func main() {
	os.Exit(run())
}

func run() int {
	program, report := os.Args[0]+".real", 3
	if len(os.Args) > 1 {
		program = os.Args[1]
	} else {
		var err error
		report, err = syscall.Open(os.Args[0]+".log", syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CREAT|syscall.O_CLOEXEC, 0o644)
		if err != nil {
			return 125
		}
	}
	start := time.Now()
	pid, err := syscall.ForkExec(program, []string{program}, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 126
	}
	var status syscall.WaitStatus
	var used, own syscall.Rusage
	for {
		_, err = syscall.Wait4(pid, &status, 0, &used)
		if err != syscall.EINTR {
			break
		}
	}
	wall := time.Since(start)
	if err != nil || syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil {
		return 127
	}
	line := make([]byte, 0, 80)
	for _, n := range []int64{wall.Nanoseconds(), used.Utime.Nano(), used.Stime.Nano(), used.Maxrss, own.Maxrss} {
		line = append(strconv.AppendInt(line, n, 10), ' ')
	}
	if _, err := syscall.Write(report, append(line, '\n')); err != nil {
		return 127
	}
	return status.ExitStatus()
}
