//go:build cluster

package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/railtune/railtune/pkg/testbed"
)

const (
	server = "https://127.0.0.1:6443"
	token  = "railtune"
)

// machine is a node of a cluster, with four rails: a namespace in which everything
// runs, the API server included, on the loopback nobody else sees.
type machine struct {
	*testbed.Namespace
	fabric     *testbed.Fabric
	rails      []testbed.Rail
	dir        string // of the sandbox's, so it is gone with the process
	kubeconfig string
	// clusterNetwork is the folder with the conflist of eth0. Given the file itself,
	// Multus strips the configuration it keeps for DEL, and host-local's DEL fails.
	clusterNetwork    string
	etcd, api, daemon *process
	containerd        *process
	plugins, standins string // where plugins are, and the folder of stand-ins among them
}

func newMachine() (*machine, error) {
	// Everything below /run is private to the testbed's sandbox.
	dir, err := os.MkdirTemp("/run", "cluster-")
	if err != nil {
		return nil, err
	}
	m := &machine{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), clusterNetwork: filepath.Join(dir, "net.d")}
	if m.fabric, err = testbed.NewFabric(testbed.Options{Layout: testbed.PerRail, Pods: 1, Rails: 4}); err != nil {
		return m, err
	}
	m.Namespace, m.rails = m.fabric.Pods[0].Node, m.fabric.Pods[0].Rails
	return m, errors.Join(m.install(), m.startAPI())
}

// install writes what an installation of Multus and of a cluster network would.
func (m *machine) install() error {
	m.standins = filepath.Join(m.dir, "standins")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// The tests write the kubelet's list of devices; the sandbox shows what is there.
	if err := os.Mkdir("/var/lib/kubelet", 0o755); err != nil {
		return fmt.Errorf("this is a Kubernetes node, and the tests would play its kubelet: %w", err)
	}
	if err := errors.Join(os.Mkdir(m.standins, 0o755), os.Symlink(self, filepath.Join(m.standins, sriov))); err != nil {
		return err
	}
	m.plugins = m.standins + ":" + bin.Path
	for _, set := range []string{"multus", "whereabouts", "loopback"} {
		m.plugins += ":" + filepath.Join(bin.clients, set)
	}
	kubeconfig := testbed.Object{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{testbed.Object{"name": "test", "cluster": testbed.Object{"server": server, "insecure-skip-tls-verify": true}}},
		"users":    []any{testbed.Object{"name": "test", "user": testbed.Object{"token": token}}},
		"contexts": []any{testbed.Object{"name": "test", "context": testbed.Object{"cluster": "test", "user": "test", "namespace": "kube-system"}}},
	}
	cluster := testbed.Object{"cniVersion": "1.0.0", "name": "cluster", "plugins": []any{testbed.Object{
		"type": "bridge", "bridge": "cluster0", "isGateway": true,
		"ipam": testbed.Object{
			"type": "host-local", "routes": []any{testbed.Object{"dst": "0.0.0.0/0"}},
			"ranges": []any{[]any{testbed.Object{"subnet": "172.20.0.0/24"}}},
		},
	}}}
	return errors.Join(writeJSON(m.kubeconfig, kubeconfig), os.Mkdir(m.clusterNetwork, 0o755),
		writeJSON(filepath.Join(m.clusterNetwork, "10-cluster.conflist"), cluster))
}

// linkPlugins puts all plugins into one folder: some clients look in no other.
func (m *machine) linkPlugins(dir string) error {
	for _, from := range filepath.SplitList(m.plugins) {
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(from, e.Name()))
			if err != nil {
				return err
			}
			if info.IsDir() || info.Mode()&0o111 == 0 {
				continue
			}
			if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeJSON(path string, what any) error {
	b, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// startAPI starts etcd and the API server, and defines what Multus and whereabouts
// keep there.
func (m *machine) startAPI() (err error) {
	if m.etcd, err = start(m.Namespace, m.dir, nil, "/usr/bin/etcd", "--data-dir="+filepath.Join(m.dir, "etcd"),
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380"); err != nil {
		return err
	}
	key := filepath.Join(m.dir, "service-account.key")
	if err := errors.Join(writeKey(key), os.WriteFile(filepath.Join(m.dir, "tokens"), []byte(token+",admin,admin,system:masters\n"), 0o600)); err != nil {
		return err
	}
	if m.api, err = start(m.Namespace, m.dir, nil, filepath.Join(bin.clients, "apiserver", "kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=6443",
		"--endpoint-reconciler-type=none", "--cert-dir="+filepath.Join(m.dir, "certs"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.0.0.0/24", "--token-auth-file="+filepath.Join(m.dir, "tokens"), "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount", "--enable-priority-and-fairness=false"); err != nil {
		return err
	}
	if err := m.api.until(func() error { return m.get("/readyz", nil) }); err != nil {
		return err
	}
	crds, err := filepath.Glob(filepath.Join(bin.clients, "whereabouts", "*.yaml"))
	if err != nil {
		return err
	}
	for _, crd := range append(crds, filepath.Join(bin.clients, "multus", "crd.yaml")) {
		b, err := os.ReadFile(crd)
		if err != nil {
			return err
		}
		if err := m.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml", b, nil); err != nil {
			return fmt.Errorf("%s: %w", crd, err)
		}
	}
	for _, list := range []string{nads, ippools} {
		if err := m.api.until(func() error { return m.get(list, nil) }); err != nil {
			return err
		}
	}
	return nil
}

func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// close ends everything, the API server before the store it talks to.
func (m *machine) close() error {
	if m == nil {
		return nil
	}
	errs := []error{m.containerd.stop(), removeCgroups(), m.daemon.stop(), m.api.stop(), m.etcd.stop()}
	if m.fabric != nil {
		errs = append(errs, m.fabric.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(m.dir))...)
}
