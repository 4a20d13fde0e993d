package attach_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/policy"
	"github.com/railtune/railtune/pkg/sysctl"
	"github.com/railtune/railtune/pkg/testbed"
)

// A victim is this test binary, running one verb and killing itself after a number of
// kernel writes.
const (
	victimEnv  = "RAILTUNE_TEST_VICTIM" // ADD or DEL
	victimNS   = "RAILTUNE_TEST_NETNS"
	victimDies = "RAILTUNE_TEST_WRITES"
)

func victim() {
	writes, err := strconv.Atoi(os.Getenv(victimDies))
	if err != nil {
		panic(err)
	}
	err = ns.WithNetNSPath(os.Getenv(victimNS), func(ns.NetNS) error {
		r, k, err := openRail(os.Getenv(victimNS), stderrLog{})
		if err != nil {
			return err
		}
		defer k.Close()
		left := &writes
		r.Kernel, r.Files = deadlyKernel{r.Kernel, left}, deadlyFiles{r.Files, left}
		if os.Getenv(victimEnv) == "ADD" {
			return add(r)
		}
		return del(r)
	})
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// dieAfter does a write and then kills the process if it was the last one it may do.
func dieAfter(left *int, write func() error) error {
	err := write()
	if *left--; *left == 0 {
		_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
		select {}
	}
	return err
}

type deadlyKernel struct {
	attach.Kernel
	left *int
}

func (k deadlyKernel) AddRule(r policy.Rule) error {
	return dieAfter(k.left, func() error { return k.Kernel.AddRule(r) })
}

func (k deadlyKernel) DelRule(r policy.Rule) error {
	return dieAfter(k.left, func() error { return k.Kernel.DelRule(r) })
}

func (k deadlyKernel) AddRoute(r policy.Route) error {
	return dieAfter(k.left, func() error { return k.Kernel.AddRoute(r) })
}

func (k deadlyKernel) DelRoute(r policy.Route) error {
	return dieAfter(k.left, func() error { return k.Kernel.DelRoute(r) })
}

type deadlyFiles struct {
	sysctl.Files
	left *int
}

func (f deadlyFiles) Write(path, value string) error {
	return dieAfter(f.left, func() error { return f.Files.Write(path, value) })
}

// kill runs a verb that dies after n writes. It reports false when the verb ended
// before it came to that.
func kill(t *testing.T, pod *testbed.Namespace, verb string, n int) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), victimEnv+"="+verb, victimNS+"="+pod.Path(), victimDies+"="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(interface{ Signaled() bool }); !ok || !status.Signaled() {
		t.Fatalf("%s with %d writes: %v\n%s", verb, n, err, out)
	}
	return true
}

// TestKilledADD kills ADD after every write; then DEL leaves nothing, with and without
// the link, and ADD works as if nothing had been.
func TestKilledADD(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	if err := with(t, pod, add); err != nil {
		t.Fatal(err)
	}
	want := testbed.MustSnapshot(t, pod)
	mustRestore(t, pod, before)
	n := 1
	for ; kill(t, pod, "ADD", n); n++ {
		if n%2 == 0 { // every other time ADD comes without a DEL in between
			mustRestore(t, pod, before)
		}
		if err := with(t, pod, add); err != nil {
			t.Fatalf("ADD after one killed at write %d: %v", n, err)
		}
		if d := testbed.Diff(want, testbed.MustSnapshot(t, pod)); len(d) > 0 {
			t.Fatalf("ADD after one killed at write %d differs:\n%s", n, d)
		}
		mustRestore(t, pod, before)
	}
	mustRestore(t, pod, before)
	if n < 10 {
		t.Errorf("ADD made only %d writes: too few to be the whole", n)
	}
}

// TestKilledDEL kills DEL after every write; the next DEL finds the rest.
func TestKilledDEL(t *testing.T) {
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	for n := 1; ; n++ {
		if err := with(t, pod, add); err != nil {
			t.Fatal(err)
		}
		killed := kill(t, pod, "DEL", n)
		mustRestore(t, pod, before)
		if !killed {
			break
		}
	}
}

// TestKilledADDThenLinkGone kills ADD after every write and takes the link away: what
// is left has to be found without it.
func TestKilledADDThenLinkGone(t *testing.T) {
	for n := 1; ; n++ {
		pod := newPod(t)
		killed := kill(t, pod, "ADD", n)
		mustRun(t, pod, "link", "del", "net1")
		if err := with(t, pod, del); err != nil {
			t.Fatal(err)
		}
		for _, line := range testbed.MustSnapshot(t, pod).Matching("rule", "route") {
			if containsMark(line) {
				t.Errorf("killed at write %d, link gone, and DEL left: %s", n, line)
			}
		}
		if !killed {
			return
		}
	}
}
