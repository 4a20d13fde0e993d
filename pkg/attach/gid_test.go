package attach_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/config"
	"github.com/railtune/railtune/pkg/netstate"
	"github.com/railtune/railtune/pkg/prevresult"
	"github.com/railtune/railtune/pkg/rdma"
	"github.com/railtune/railtune/pkg/testbed"
)

// fakeDevice is the RDMA device of a rail: this machine need not have any. The real ones
// are in the tests that run in a virtual machine.
type fakeDevice struct {
	unserved string
	lacks    bool // the rail's second address
	full     bool
	err      error
	closed   int
}

func (f *fakeDevice) Unserved() string { return f.unserved }
func (f *fakeDevice) Close()           { f.closed++ }

func (f *fakeDevice) Wait(ctx context.Context, addrs []netip.Addr) ([]rdma.Absent, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("would wait for ever")
	}
	if !f.lacks {
		return nil, f.err
	}
	return []rdma.Absent{{Port: rdma.Port{Device: "mlx5_3", Number: 1}, Addr: addrs[1], Full: f.full, Used: 256}}, f.err
}

// warnings keeps what a verb warned of.
type warnings struct{ lines []string }

func (w *warnings) Warnf(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}
func (w *warnings) Debugf(string, ...any) {}

// TestGIDModes is the table of what verify.gid makes of what is found. A failed ADD has
// changed nothing; CHECK looks only where GIDs are enforced.
func TestGIDModes(t *testing.T) {
	testbed.NeedRoot(t)
	pod := newPod(t)
	before := testbed.MustSnapshot(t, pod)
	const (
		lack  = "net1: RDMA device mlx5_3 port 1 has no RoCE v2 GID for fd5a:1::11"
		noted = -1 // succeeds with a warning
	)
	for _, c := range []struct {
		name   string
		mode   string
		device *fakeDevice
		open   error
		code   int
		says   []string
	}{
		{"all there", "enforce", &fakeDevice{}, nil, 0, nil},
		{"one lacks, by default", "", &fakeDevice{lacks: true}, nil, noted, []string{lack, "ibv_modify_qp failed with 61 No data available"}},
		{"one lacks, enforced", "enforce", &fakeDevice{lacks: true}, nil, 101, []string{lack, "ibv_modify_qp failed with 61 No data available", "kernel log"}},
		{"full, enforced", "enforce", &fakeDevice{lacks: true, full: true}, nil, 101, []string{"all 256 entries", "use fewer"}},
		{"unreadable, warned", "warn", &fakeDevice{err: errors.New("EIO")}, nil, noted, []string{"net1", "EIO"}},
		{"unreadable, enforced", "enforce", &fakeDevice{err: errors.New("EIO")}, nil, 101, []string{"net1", "EIO"}},
		{"no device, warned", "warn", &fakeDevice{unserved: "why"}, nil, 0, nil},
		{"no device, enforced", "enforce", &fakeDevice{unserved: "why"}, nil, 101, []string{"net1", "no RDMA device: why", "on a rail without RDMA"}},
		{"no RDMA, warned", "warn", nil, rdma.ErrNone, 0, nil},
		{"no RDMA, enforced", "enforce", nil, rdma.ErrNone, 104, []string{"/sys/class/infiniband", "load the RDMA driver"}},
		{"not opened, warned", "warn", nil, errors.New("EPERM"), noted, []string{"net1", "EPERM"}},
		{"not opened, enforced", "enforce", nil, errors.New("EPERM"), 101, []string{"net1", "EPERM"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked, log := 0, &warnings{}
			err := with(t, pod, func(r *attach.Rail) error {
				r.Log = log
				r.RDMA = func(l *netstate.Link) (attach.RDMA, error) {
					if asked++; l.Name != "net1" {
						t.Errorf("asked for %s", l.Name)
					}
					if c.open != nil {
						return nil, c.open
					}
					return c.device, nil
				}
				if err := addAs(r, gidConf(c.mode)); err != nil || c.mode != "enforce" {
					return err
				}
				return check(r, gidConf(c.mode))
			})
			if got := cnierr.CodeOf(err, 0); int(got) != max(c.code, 0) {
				t.Fatalf("code %d, want %d: %v", got, c.code, err)
			}
			said := fmt.Sprint(err)
			if c.code == noted {
				said = strings.Join(log.lines, "\n")
			} else if len(log.lines) > 0 {
				t.Errorf("warned: %q", log.lines)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("lacks %q: %s", want, said)
				}
			}
			if c.device != nil && c.device.closed != asked {
				t.Errorf("opened %d times, closed %d times", asked, c.device.closed)
			}
			if c.code > 0 {
				if left := testbed.Diff(before, testbed.MustSnapshot(t, pod)); len(left) > 0 {
					t.Errorf("a failed ADD left:\n%s", left)
				}
				return
			}
			mustRestore(t, pod, before)
		})
	}
}

// TestGIDsCheck: CHECK finds a GID that went, where it is asked to.
func TestGIDsCheck(t *testing.T) {
	testbed.NeedRoot(t)
	pod := newPod(t)
	device, opened := &fakeDevice{}, 0
	err := with(t, pod, func(r *attach.Rail) error {
		r.RDMA = func(*netstate.Link) (attach.RDMA, error) { opened++; return device, nil }
		if err := addAs(r, gidConf("enforce")); err != nil {
			return err
		}
		device.lacks = true
		if err := check(r, gidConf("warn")); err != nil || opened != 1 {
			return fmt.Errorf("warn: opened %d times: %w", opened, err)
		}
		if err := check(r, gidConf("enforce")); cnierr.CodeOf(err, 0) != cnierr.Link || !strings.Contains(err.Error(), "mlx5_3 port 1") {
			return fmt.Errorf("enforce: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestGIDsOff: nothing is opened.
func TestGIDsOff(t *testing.T) {
	testbed.NeedRoot(t)
	err := with(t, newPod(t), func(r *attach.Rail) error {
		r.RDMA = func(*netstate.Link) (attach.RDMA, error) { return nil, errors.New("opened") }
		r.Log = &warnings{}
		if err := addAs(r, gidConf("off")); err != nil {
			return err
		}
		if log := r.Log.(*warnings); len(log.lines) > 0 {
			return fmt.Errorf("warned: %q", log.lines)
		}
		return check(r, gidConf("off"))
	})
	if err != nil {
		t.Error(err)
	}
}

func gidConf(mode string) string {
	if mode == "" {
		return conf
	}
	return strings.Replace(conf, `"verify":{`, `"verify":{"gid":"`+mode+`",`, 1)
}

func check(r *attach.Rail, conf string) error {
	cfg, err := config.Parse([]byte(conf))
	if err != nil {
		return err
	}
	res, err := prevresult.Parse([]byte(prev), cfg.CNIVersion, nil)
	if err != nil {
		return err
	}
	return r.Check(cfg, res)
}
