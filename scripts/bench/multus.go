package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/railtune/railtune/pkg/testbed"
)

// multus attaches sixteen rails one after another through the real Multus, with
// different plugins behind macvlan, and says what part of the time they are.
func multus(ctx context.Context, b *bench) (err error) {
	program := filepath.Join(filepath.Dir(b.Railtune), "clients", "multus", "multus")
	if _, err := os.Stat(program); err != nil {
		fmt.Printf("\n### Multus\n\nLeft out: %v. `make test-clients` builds it.\n", err)
		return nil
	}
	f, err := testbed.NewFabric(testbed.Options{Pods: 1, Gateway: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	pod := f.Pods[0]
	// Multus makes the pod's eth0 itself.
	if _, err := pod.Run(ctx, "ip", "link", "del", "eth0"); err != nil {
		return err
	}
	m := &attaching{bench: b, pod: pod, bin: filepath.Join(b.dir, "bin")}
	if err := m.interpose("railtune", "tuning", "sbr"); err != nil {
		return err
	}
	chains := []struct {
		name  string
		chain []testbed.Object
	}{
		{"macvlan alone", nil},
		{"and " + withoutProof, []testbed.Object{unproven}},
		{"and " + withProof, []testbed.Object{testbed.Railtune}},
		{"and " + both, []testbed.Object{tuningConfig, sbrConfig}},
	}
	pods, share := make([]series, len(chains)), make([]series, len(chains))
	for range max(3, *runs/4) {
		for i, c := range chains {
			whole, part, err := m.once(ctx, filepath.Dir(program), c.chain)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			pods[i], share[i] = append(pods[i], whole), append(share[i], part)
		}
	}
	t := newTable("a pod of 16 rails", "attached in", "of it in the chain", "share", "chain's CPU")
	for i, c := range chains {
		t.row(c.name, pods[i].spread(wall), share[i].spread(wall), ratio(share[i].median(wall), pods[i].median(wall)), share[i].spread(cpu))
	}
	t.print("Multus, one delegate after another")
	return nil
}

// attaching is a pod and a folder in which launchers stand for the plugins.
type attaching struct {
	*bench
	pod *testbed.Pod
	bin string
}

// interpose puts the launcher in the place of plugins.
func (m *attaching) interpose(names ...string) error {
	launcher, err := os.ReadFile(m.launch)
	if err != nil {
		return err
	}
	if err := os.Mkdir(m.bin, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		at := filepath.Join(m.bin, name)
		if err := errors.Join(os.WriteFile(at, launcher, 0o755), os.Symlink(m.plugin(name), at+".real")); err != nil {
			return err
		}
	}
	return nil
}

// once attaches and detaches the pod. part is what the interposed plugins took.
func (m *attaching) once(ctx context.Context, multusDir string, chain []testbed.Object) (whole, part cost, err error) {
	dir, err := os.MkdirTemp(m.dir, "net.d-")
	if err != nil {
		return whole, part, err
	}
	config := testbed.Object{"cniVersion": "1.0.0", "name": "pod", "plugins": []testbed.Object{{
		"type": "multus", "cniDir": filepath.Join(dir, "state"), "binDir": multusDir, "logLevel": "error", "delegates": m.delegates(chain),
	}}}
	raw, err := json.Marshal(config)
	if err != nil {
		return whole, part, err
	}
	if err := os.WriteFile(filepath.Join(dir, "net.conflist"), raw, 0o644); err != nil {
		return whole, part, err
	}
	if _, err := m.logged(); err != nil { // forgets what the last DEL took
		return whole, part, err
	}
	for _, verb := range []string{"add", "del"} {
		cmd := exec.CommandContext(ctx, m.CNITool, verb, "pod", m.pod.Path())
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + m.bin + ":" + m.Path + ":" + multusDir,
			"NETCONFPATH=" + dir, "CNI_IFNAME=eth0",
		}
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		began := time.Now()
		if err := m.pod.Node.Start(cmd); err != nil {
			return whole, part, err
		}
		if err := cmd.Wait(); err != nil {
			return whole, part, fmt.Errorf("cnitool %s: %w: %s", verb, err, said.String())
		}
		if verb == "add" {
			whole.wall = time.Since(began)
			if part, err = m.logged(); err != nil {
				return whole, part, err
			}
		}
	}
	return whole, part, nil
}

func (m *attaching) delegates(chain []testbed.Object) []testbed.Object {
	all := []testbed.Object{{
		"cniVersion": "1.0.0", "name": "cluster",
		"plugins": []testbed.Object{{
			"type": "bridge", "bridge": "cluster0", "isGateway": true,
			"ipam": testbed.Object{
				"type": "host-local", "routes": []testbed.Object{{"dst": "0.0.0.0/0"}},
				"ranges": []any{[]testbed.Object{{"subnet": "172.20.0.0/24"}}},
			},
		}},
	}}
	for _, r := range m.pod.Rails {
		all = append(all, r.Conflist(chain...))
	}
	return all
}

// logged sums up and removes what the launchers have written.
func (m *attaching) logged() (sum cost, err error) {
	logs, err := filepath.Glob(filepath.Join(m.bin, "*.log"))
	if err != nil {
		return sum, err
	}
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			return sum, err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var wall, user, system, rss int64
			if _, err := fmt.Sscan(lines.Text(), &wall, &user, &system, &rss); err != nil {
				f.Close()
				return sum, fmt.Errorf("%s: %w", name, err)
			}
			sum.add(cost{time.Duration(wall), time.Duration(user + system), rss})
		}
		if err := errors.Join(f.Close(), os.Remove(name)); err != nil {
			return sum, err
		}
	}
	return sum, nil
}
