package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace is a named network namespace, its loopback up.
type Namespace struct {
	// Name is unique in the run; /run/netns/Name is what cnitool and ip take.
	Name  string
	netns ns.NetNS
}

var made atomic.Int64

// fromZero are the IPv4 settings a new namespace takes over from the initial
// one (net/ipv4/devinet.c, devinet_init_net), where distributions change some:
// measurements start from the kernel's own zero.
var fromZero = []string{
	"rp_filter", "arp_ignore", "arp_announce", "arp_filter", "arp_accept", "arp_notify", "accept_local",
	"proxy_arp", "proxy_arp_pvlan", "route_localnet", "promote_secondaries", "ignore_routes_with_linkdown", "forwarding",
}

// The main goroutine keeps the process' first thread. A goroutine that is locked to that
// one and ends, as NewNamespace's does, leaves the thread where it is instead of ending it
// (runtime.LockOSThread), and its namespace would never go.
func init() { runtime.LockOSThread() }

// NewNamespace makes a namespace whose name starts with role. Close it, or leave
// that to the end of the process.
func NewNamespace(role string) (*Namespace, error) {
	if !inside() {
		return nil, errors.New("testbed: namespaces are made in the sandbox only: call testbed.Enter, or testbed.Main in TestMain")
	}
	name := fmt.Sprintf("%s-%d-%d", role, os.Getpid(), made.Add(1))
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine: it would stay in the new namespace.
		runtime.LockOSThread()
		h, err := netns.NewNamed(name)
		if err == nil {
			h.Close()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", name, err)
	}
	n := &Namespace{Name: name}
	var err error
	if n.netns, err = ns.GetNS(n.Path()); err != nil {
		return nil, errors.Join(err, netns.DeleteNamed(name))
	}
	if err := n.Do(n.reset); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing %s: %w", name, err), n.Close())
	}
	return n, nil
}

func (n *Namespace) reset() error {
	for _, scope := range []string{"all", "default"} {
		for _, key := range fromZero {
			err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", scope, key), []byte("0"), 0o644)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // older kernels lack some
				return err
			}
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// Path is the namespace's file, as CNI_NETNS has it.
func (n *Namespace) Path() string { return filepath.Join("/run/netns", n.Name) }

// Close removes the name. The kernel removes the rest when the last process
// has left.
func (n *Namespace) Close() error {
	return errors.Join(n.netns.Close(), netns.DeleteNamed(n.Name))
}

// Do calls f on a thread inside the namespace. Goroutines f starts are outside,
// and f must not end its own (t.Fatal does): it returns its error.
func (n *Namespace) Do(f func() error) error {
	return n.netns.Do(func(ns.NetNS) error { return f() })
}

// Start starts cmd inside the namespace.
func (n *Namespace) Start(cmd *exec.Cmd) error { return n.Do(cmd.Start) }

// Run runs a command inside the namespace and returns what it printed. The error
// of a command that failed holds its stderr.
func (n *Namespace) Run(ctx context.Context, name string, args ...string) (string, error) {
	return n.Feed(ctx, "", name, args...)
}

// Feed is Run with stdin.
func (n *Namespace) Feed(ctx context.Context, stdin, name string, args ...string) (string, error) {
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := n.Start(cmd); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if err := cmd.Wait(); err != nil {
		return out.String(), fmt.Errorf("%s in %s: %w: %s", cmd, n.Name, err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Sysctl reads a value below /proc/sys/net, its key written with slashes.
func (n *Namespace) Sysctl(key string) (value string, err error) {
	err = n.Do(func() error {
		b, err := os.ReadFile(filepath.Join("/proc/sys/net", key))
		value = strings.TrimSpace(string(b))
		return err
	})
	return value, err
}

// SetSysctl writes a value below /proc/sys/net, its key written with slashes.
func (n *Namespace) SetSysctl(key, value string) error {
	return n.Do(func() error { return os.WriteFile(filepath.Join("/proc/sys/net", key), []byte(value), 0o644) })
}
