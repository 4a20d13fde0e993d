//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/tests/docs"
)

// checkout is the top of the repository.
var checkout = filepath.Join("..", "..")

// TestDocs runs the commands of the documentation that need a cluster, with the real
// kubectl, and gives the API server all Kubernetes objects in it.
func TestDocs(t *testing.T) {
	pages, err := docs.Pages(checkout)
	if err != nil {
		t.Error(err)
	}
	ci, err := docs.ReadCI(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		for _, blocks := range p.ByWorld() {
			if !docs.Cluster(blocks[0].World) {
				continue
			}
			t.Run(fmt.Sprintf("%s/line%d", strings.TrimSuffix(p.Path, ".md"), blocks[0].Line), func(t *testing.T) {
				if strings.Contains(blocks[0].World, "sriov") {
					mustDefineSriov(t)
				}
				if strings.Contains(blocks[0].World, "containerd") {
					mustContainerd(t)
				}
				s, dir := newKubectl(t)
				// Other tests have applied the manifests without kubectl, which minds that.
				must(t, s, "kubectl get namespace railtune -o json | kubectl apply set-last-applied --create-annotation -f - || true")
				t.Cleanup(func() { // before the shell ends
					must(t, s, "kubectl delete network-attachment-definitions,pods,validatingadmissionpolicies,validatingadmissionpolicybindings,nodes --all --force --grace-period=0")
				})
				for _, b := range blocks {
					if err := b.Run(s, dir, ci); err != nil {
						t.Errorf("%s:%d: %v", p.Path, b.Line, err)
					}
				}
			})
		}
		for _, b := range p.Blocks {
			if b.Manifest() {
				t.Run(fmt.Sprintf("%s/manifest%d", strings.TrimSuffix(p.Path, ".md"), b.Line), func(t *testing.T) {
					mustBeAccepted(t, b)
				})
			}
		}
	}
}

// newKubectl starts a shell on the node, which finds the cluster as an administrator
// does.
func newKubectl(t *testing.T) (s *docs.Shell, dir string) {
	t.Helper()
	dir, err := docs.NewDir(t.TempDir(), checkout)
	if err != nil {
		t.Fatal(err)
	}
	standins, err := filepath.Abs(filepath.Join("..", "docs", "standins"))
	if err != nil {
		t.Fatal(err)
	}
	// Its own, as a context's namespace is also where whereabouts keeps its pools.
	kubeconfig := filepath.Join(dir, "kubeconfig")
	raw, err := os.ReadFile(node.kubeconfig)
	if err == nil {
		err = os.WriteFile(kubeconfig, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := []string{filepath.Join(bin.clients, "kubectl"), standins, filepath.Dir(bin.Railtune), filepath.Dir(bin.CNITool), os.Getenv("PATH"), "/usr/sbin", "/sbin"}
	env := []string{"PATH=" + strings.Join(path, ":"), "HOME=" + dir, "LANG=C.UTF-8", "KUBECONFIG=" + kubeconfig, "CONTAINERD_ADDRESS=" + node.socket()}
	if s, err = docs.NewShell(dir, env, node.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	must(t, s, "kubectl config set-context --current --namespace=default")
	return s, dir
}

func must(t *testing.T, s *docs.Shell, command string) {
	t.Helper()
	if out, exit, err := s.Run(command); err != nil || exit != 0 {
		t.Errorf("%s: %d, %v: %s", command, exit, err, out)
	}
}

// mustBeAccepted gives the objects of a block to the API server, which knows their
// kinds and must know all of their fields.
func mustBeAccepted(t *testing.T, b docs.Block) {
	t.Helper()
	s, dir := newKubectl(t)
	if err := os.WriteFile(filepath.Join(dir, "block.yaml"), []byte(b.Text), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, s, "kubectl create --dry-run=server --validate=strict -f block.yaml")
}
