package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/containernetworking/plugins/pkg/ns"
)

// target is the namespace a subcommand works on, as the command line names it.
type target struct {
	netns string
	pid   int
	host  bool
}

const targetSynopsis = "[--netns PATH | --pid N | --host]"

func (t *target) flags(fs *flag.FlagSet) {
	fs.StringVar(&t.netns, "netns", "", "network namespace, as a `PATH` such as /run/netns/pod1")
	fs.IntVar(&t.pid, "pid", 0, "network namespace of the process with this `PID`")
	fs.BoolVar(&t.host, "host", false, "the namespace railtune itself is called in (the node's, or with kubectl exec the pod's)")
}

// path returns the namespace's path; without any flag it is the calling one.
func (t *target) path() (string, error) {
	given := 0
	for _, is := range []bool{t.netns != "", t.pid != 0, t.host} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return "", errors.New("--netns, --pid and --host exclude each other: give one")
	case t.netns != "":
		return t.netns, nil
	case t.pid < 0:
		return "", fmt.Errorf("--pid %d is no process", t.pid)
	case t.pid > 0:
		return "/proc/" + strconv.Itoa(t.pid) + "/ns/net", nil
	}
	return "/proc/thread-self/ns/net", nil
}

// do runs f on a thread locked in the namespace. host is the namespace that railtune
// was called in.
func (t *target) do(f func(path string, host ns.NetNS) error) error {
	path, err := t.path()
	if err != nil {
		return err
	}
	pod, err := ns.GetNS(path)
	if err != nil {
		return fmt.Errorf("the network namespace %s cannot be entered: %w", path, err)
	}
	defer pod.Close()
	return pod.Do(func(host ns.NetNS) error { return f(path, host) })
}

// list is a flag that can be given several times, or once with commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return errors.New("an empty name")
		}
		*l = append(*l, part)
	}
	return nil
}
