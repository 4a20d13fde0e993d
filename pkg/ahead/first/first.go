// Package first is what a call of the plugin begins with, before nearly anything else of
// the program is initialised: it imports no more than package syscall, of which the rest
// is made. See package ahead.
package first

import (
	"runtime"
	"syscall"

	"github.com/railtune/railtune/pkg/cnicall/versions"
)

func init() {
	switch verb, _ := syscall.Getenv("CNI_COMMAND"); verb {
	case "":
	case "VERSION":
		syscall.Exit(answer(versions.Result()))
	default:
		prepare()
	}
}

// answer writes the answer to VERSION, which needs nothing else, and returns the exit
// status.
func answer(text string) (status int) {
	for left := []byte(text); len(left) > 0; {
		n, err := syscall.Write(1, left)
		switch err {
		case nil:
			left = left[n:]
		case syscall.EINTR:
		default:
			_, _ = syscall.Write(2, []byte("railtune: VERSION cannot be written to stdout: "+err.Error()+"\n"))
			return 1
		}
	}
	return 0
}

// prepare does at once, on a stack of a few calls, what would be done later on one of
// many: the runtime then looks up every function of the stack, in tables of megabytes.
// That is a tenth of the memory that an ADD takes (docs/speed.md).
func prepare() {
	// The thread changes its network namespace later; other threads are not to be started
	// from it then, and from now on are not.
	runtime.LockOSThread()
	grow(false)
}

// stack is what an ADD takes of it.
type stack [24 << 10]byte

// grow makes room for a stack. It does not touch it, as that would be memory: the room is
// made when the function is entered, for what is never done in it.
//
//go:noinline
func grow(touched bool) {
	if touched {
		var s stack
		touch(&s)
	}
}

//go:noinline
func touch(s *stack) { s[0]++ }
