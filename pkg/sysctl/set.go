package sysctl

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// Set makes the interface's file hold value: it reads, writes where that
// differs, reads back and compares. Values are compared as numbers where both
// are, and but for the kernel's rounding of times to jiffies.
//
// old is what the file held, for the caller's undo; changed tells that it may
// hold something else now, also where err is not nil. An error has code
// cnierr.Sysctl, or cnierr.Config where the kernel has no such setting, names
// the file, what it holds and what was wanted, and wraps the errno.
//
// A write that is refused (read-only /proc/sys, missing capability) is no error
// where the effective value is Acceptable already.
func Set(f Files, k Key, ifname, value string) (old string, changed bool, err error) {
	if err := checkInterface(ifname); err != nil {
		return "", false, cnierr.New(cnierr.Sysctl, "%s: %w", k, err)
	}
	path := k.Path(ifname)
	old, err = f.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, Missing(k, ifname, err)
	case err != nil:
		return "", false, cnierr.New(cnierr.Sysctl, "%s must be %s but cannot be read: %w", k.For(ifname), value, err)
	case same(k, value, old):
		return old, false, nil
	}
	if err := f.Write(path, value); err != nil {
		return old, false, refused(f, k, ifname, old, value, err)
	}
	now, err := f.Read(path)
	if err != nil {
		return old, true, cnierr.New(cnierr.Sysctl, "%s was set to %s but cannot be read back: %w", k.For(ifname), value, err)
	}
	if !same(k, value, now) {
		return old, now != old, cnierr.New(cnierr.Sysctl, "%s (/proc/sys/%s) was set to %s but holds %q: the kernel or someone else changed it at once; look for a daemon that sets it", k.For(ifname), path, value, now)
	}
	return old, true, nil
}

// refused decides whether a failed write matters, and says what to do about it.
func refused(f Files, k Key, ifname, old, value string, cause error) error {
	advice := "the kernel's log may say why"
	mayNot := true
	switch {
	case errors.Is(cause, unix.EROFS):
		advice = "give the plugin a writable /proc/sys"
	case errors.Is(cause, unix.EPERM), errors.Is(cause, unix.EACCES):
		advice = "run the plugin with CAP_NET_ADMIN over the pod's network namespace"
	case errors.Is(cause, unix.EINVAL):
		advice, mayNot = "the kernel does not take this value; give another", false
	default:
		mayNot = false
	}
	found := old
	if mayNot {
		advice += ", or set it before: sysctl -w " + k.For(ifname) + "=" + value
		v, err := Effective(f, k, ifname)
		if err == nil && Acceptable(k, value, v.Effective) {
			return nil
		}
		if err == nil && v.Overridden {
			found = fmt.Sprintf("%s (effectively %s: %s)", old, v.Effective, v.Rule)
		}
	}
	return cnierr.New(cnierr.Sysctl, "%s is %s and must be %s: %w; %s", k.For(ifname), found, value, cause, advice)
}

// Missing is the error for a setting the kernel does not have for the
// interface; cause is wrapped and may be nil. The code is cnierr.Config.
func Missing(k Key, ifname string, cause error) error {
	advice := "check its name in /proc/sys/net/" + string(k.Family) + "/" + string(k.Tree) + "/" + ifname
	if k.known() != nil {
		advice = "this kernel was built without it or is too old, or the interface has no " + string(k.Family) + "; leave it out"
	} else if other, ok := k.Suggest(); ok {
		advice = "did you mean " + other.String() + "?"
	}
	if cause == nil {
		return cnierr.New(cnierr.Config, "sysctl: the kernel has no %s for %s; %s", k, ifname, advice)
	}
	return cnierr.New(cnierr.Config, "sysctl: the kernel has no %s for %s (%w); %s", k, ifname, cause, advice)
}
