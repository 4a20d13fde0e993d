package sysctl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/railtune/railtune/pkg/cnierr"
)

// inNamespace runs do on a thread of its own in new network and mount
// namespaces, with the links net1 and rail0.100. The thread ends with it, and
// so do the namespaces.
func inNamespace(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime drops the thread
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
			t.Errorf("making mounts private: %v", err)
			return
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "net1"
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "rail0.100"}); err != nil {
			t.Errorf("adding a veth pair: %v", err)
			return
		}
		do(t)
	}()
	<-done
}

// Every range of the tables is written to a real interface and read back, so
// that a misspelled leaf or a limit the kernel refuses cannot stay.
func TestTablesAgainstKernel(t *testing.T) {
	younger := map[string]bool{ // than the oldest kernel worth testing on
		"force_forwarding": true, "ra_honor_pio_pflag": true, "ra_honor_pio_life": true, "accept_untracked_na": true,
		"interval_probe_time_ms": true, "accept_ra_min_lft": true, "regen_min_advance": true, "bc_forwarding": true,
		"ioam6_enabled": true, "ioam6_id": true, "ioam6_id_wide": true, "rpl_seg_enabled": true, "ndisc_evict_nocarrier": true,
		"arp_evict_nocarrier": true, "drop_unsolicited_na": true, "ra_defrtr_metric": true,
		"seg6_require_hmac": true, "seg6_enabled": true, "optimistic_dad": true, "use_optimistic": true, "accept_ra_rtr_pref": true,
		"accept_ra_rt_info_min_plen": true, "accept_ra_rt_info_max_plen": true, "router_probe_interval": true, // by build options
	}
	narrower := map[string]string{ // ends of a range that this link or state does not allow
		"mtu": "1500", "addr_gen_mode": "1", "unres_qlen": "1000",
	}
	inNamespace(t, func(t *testing.T) {
		f := Proc{}
		for _, family := range []Family{IPv4, IPv6} {
			for _, tree := range []Tree{Conf, Neigh} {
				for _, s := range settings(family, tree) {
					k := Key{family, tree, s.leaf}
					if !f.Exists(k.Path("net1")) {
						if !younger[s.leaf] {
							t.Errorf("the kernel has no %v", k)
						}
						continue
					}
					if s.unit == readOnly || s.unit == secret {
						if err := f.Write(k.Path("net1"), "1"); err == nil && s.unit == readOnly {
							t.Errorf("%v can be written", k)
						}
						continue
					}
					ends := []string{strconv.FormatInt(s.min, 10), strconv.FormatInt(s.max, 10), strconv.FormatInt(s.min, 10)}
					if s.also != 0 {
						ends = append(ends, strconv.FormatInt(s.also, 10))
					}
					if n := narrower[s.leaf]; n != "" {
						ends[1] = n
					}
					if s.max == maxInt && (s.unit != exact || tree == Neigh || strings.HasPrefix(s.leaf, "router_")) {
						ends[1] = "1009" // times in seconds and jiffies overflow long before
					}
					for _, v := range ends {
						if err := k.CheckValue(v); err != nil {
							t.Errorf("%v", err)
						}
						if _, _, err := Set(f, k, "net1", v); err != nil {
							t.Errorf("%v", err)
						}
					}
				}
			}
		}
	})
}

func TestSetKernel(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		f := Proc{}
		for _, ifname := range []string{"net1", "rail0.100"} { // RT-24
			old, changed, err := Set(f, ARPIgnore, ifname, "1")
			if err != nil || old != "0" || !changed {
				t.Errorf("%s: %q, %v, %v", ifname, old, changed, err)
			}
			old, changed, err = Set(f, ARPIgnore, ifname, "1")
			if err != nil || old != "1" || changed {
				t.Errorf("%s again: %q, %v, %v", ifname, old, changed, err)
			}
			if v, err := Effective(f, ARPIgnore, ifname); err != nil || v.Effective != "1" || v.All != "0" || v.Overridden {
				t.Errorf("%s: %+v, %v", ifname, v, err)
			}
		}
		if v, err := f.Read(ARPIgnore.Path("all")); err != nil || v != "0" {
			t.Errorf("conf/all is %q, %v", v, err)
		}
		if _, err := os.Stat("/proc/sys/net/ipv4/conf/rail0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("conf/rail0: %v", err)
		}
		_, _, err := Set(f, Key{IPv4, Conf, "accept_ra"}, "net1", "1") // RT-51
		if cnierr.CodeOf(err, 0) != cnierr.Config || !errors.Is(err, unix.ENOENT) {
			t.Errorf("a key of the other family: %v", err)
		}
		_, changed, err := Set(f, Key{IPv6, Conf, "hop_limit"}, "net1", "256")
		if changed || cnierr.CodeOf(err, 0) != cnierr.Sysctl || !errors.Is(err, unix.EINVAL) {
			t.Errorf("a value the kernel refuses: %v", err)
		}
	})
}

// RT-46, with a /proc/sys that really is read-only.
func TestSetReadOnly(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		f := Proc{}
		if err := f.Write(ARPIgnore.Path("net1"), "1"); err != nil {
			t.Error(err)
		}
		if err := f.Write(ARPAnnounce.Path("all"), "2"); err != nil {
			t.Error(err)
		}
		if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err != nil {
			t.Errorf("bind mount: %v", err)
			return
		}
		if err := unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Errorf("remount: %v", err)
			return
		}
		if err := f.Write(ARPIgnore.Path("net1"), "1"); !errors.Is(err, unix.EROFS) {
			t.Errorf("the mount is not read-only: %v", err)
			return
		}
		for _, c := range []struct {
			k     Key
			value string
			ok    bool
		}{{ARPIgnore, "1", true}, {ARPAnnounce, "2", true}, {ARPIgnore, "2", false}, {ARPFilter, "1", false}} {
			_, changed, err := Set(f, c.k, "net1", c.value)
			if (err == nil) != c.ok || changed {
				t.Errorf("%v=%s: changed %v, %v", c.k, c.value, changed, err)
			}
			if err != nil && (!errors.Is(err, unix.EROFS) || cnierr.CodeOf(err, 0) != cnierr.Sysctl ||
				!strings.Contains(err.Error(), "/proc/sys/"+c.k.Path("net1")) || !strings.Contains(err.Error(), "read-only file system")) {
				t.Errorf("%v=%s: %v", c.k, c.value, err)
			}
		}
	})
}

func TestProcRoot(t *testing.T) {
	root := t.TempDir()
	f := Proc{Root: root}
	path := ARPIgnore.Path("net1")
	full := filepath.Join(root, path)
	if f.Exists(path) {
		t.Error("a missing file exists")
	}
	if _, err := f.Read(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), full) {
		t.Errorf("reading a missing file: %v", err)
	}
	if err := f.Write(path, "1"); !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), full) {
		t.Errorf("writing a missing file: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(path, "1"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("writing created a file: %v", err)
	}
	if err := os.WriteFile(full, []byte("10\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v, err := f.Read(path); err != nil || v != "10" {
		t.Errorf("%q, %v", v, err)
	}
	if err := f.Write(path, "2"); err != nil {
		t.Error(err)
	}
	if v, err := f.Read(path); err != nil || v != "2" || !f.Exists(path) {
		t.Errorf("%q, %v", v, err)
	}
	if got := (Proc{}).full(path); got != "/proc/sys/"+path {
		t.Errorf("the default root leads to %q", got)
	}
}
