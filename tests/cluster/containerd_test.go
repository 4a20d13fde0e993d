//go:build cluster

package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/railtune/railtune/pkg/testbed"
)

// image is what every container of the tests runs; the tests make it themselves.
const image = "localhost/railtune/pod:test"

// startContainerd starts containerd with Multus as its network, in a process
// namespace of its own: when the first process of that ends, all shims and containers
// do, whatever state they are in.
func (m *machine) startContainerd(multus testbed.Object) (err error) {
	dir := filepath.Join(m.dir, "containerd")
	conf := filepath.Join(dir, "net.d")
	plugins := filepath.Join(dir, "bin")
	config := fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
[grpc]
  address = %[3]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[4]q
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %[5]q
  conf_dir = %[6]q
[plugins."io.containerd.internal.v1.opt"]
  path = %[7]q
`, filepath.Join(dir, "root"), filepath.Join(dir, "state"), m.socket(), image, plugins, conf, filepath.Join(dir, "opt"))
	list := testbed.Object{"cniVersion": "1.0.0", "name": "multus-cni-network", "plugins": []any{multus}}
	if err := errors.Join(
		os.MkdirAll(conf, 0o755), os.Mkdir(plugins, 0o755), m.linkPlugins(plugins),
		os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600),
		writeJSON(filepath.Join(conf, "00-multus.conflist"), list),
	); err != nil {
		return err
	}
	m.containerd, err = startFirst(m.Namespace, dir, "/usr/bin/containerd", "--config", filepath.Join(dir, "config.toml"))
	if err != nil {
		return err
	}
	if err := m.containerd.until(func() error { return m.ctr("version") }); err != nil {
		return err
	}
	archive := filepath.Join(dir, "image.tar")
	return errors.Join(buildImage(archive), m.ctr("images", "import", archive))
}

func (m *machine) socket() string { return filepath.Join(m.dir, "containerd.sock") }

func (m *machine) ctr(args ...string) error {
	out, err := exec.Command("ctr", append([]string{"--address", m.socket(), "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %v: %w: %s", args, err, out)
	}
	return nil
}

// buildImage writes an image of one layer with one file, as `docker save` would.
func buildImage(archive string) error {
	program := archive + ".pod"
	build := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-trimpath", "-o", program, "./pod")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the image's program: %w: %s", err, out)
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := archived(map[string][]byte{"pod": binary}, "pod")
	if err != nil {
		return err
	}
	config, err := json.Marshal(testbed.Object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": testbed.Object{"Entrypoint": []string{"/pod"}},
		"rootfs": testbed.Object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{testbed.Object{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	whole, err := archived(map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest}, "layer.tar", "config.json", "manifest.json")
	if err != nil {
		return err
	}
	return os.WriteFile(archive, whole, 0o644)
}

func archived(files map[string][]byte, order ...string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range order {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}
