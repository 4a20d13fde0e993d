//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// packaging is the folder of the manifests.
var packaging = filepath.Join("..", "..", "packaging")

const daemonSets = "/apis/apps/v1/namespaces/railtune/daemonsets"

// lists are where the API server keeps what the manifests define.
var lists = map[string]string{
	"Namespace":      "/api/v1/namespaces",
	"ServiceAccount": "/api/v1/namespaces/railtune/serviceaccounts",
	"RoleBinding":    "/apis/rbac.authorization.k8s.io/v1/namespaces/railtune/rolebindings",
	"DaemonSet":      daemonSets,
}

// daemonSet is what the tests read of one, defaults and all, as the API server says.
type daemonSet struct {
	Metadata struct{ Name string }
	Spec     struct{ Template podTemplate }
}

// kustomize builds a folder of manifests.
func kustomize(t *testing.T, dir string) (objects []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin.clients, "kustomize", "kustomize"), "build", dir)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", cmd, err, errs.String())
	}
	return strings.Split(string(out), "\n---\n")
}

// names finds what kustomize prints of an object's kind and name.
var names = regexp.MustCompile(`(?ms)^kind: (\w+)$.*^metadata:\n(?:  +[^\n]*\n)*?  name: (\S+)$`)

// applyAll gives objects to the API server as `kubectl apply --server-side` does, and
// returns what it makes of the DaemonSet. It must know every field.
func applyAll(t *testing.T, objects []string) (d daemonSet) {
	t.Helper()
	for _, o := range objects {
		found := names.FindStringSubmatch(o)
		if found == nil || lists[found[1]] == "" {
			t.Fatalf("not an object of the manifests:\n%s", o)
		}
		var out json.RawMessage
		path := lists[found[1]] + "/" + found[2]
		if err := node.call(http.MethodPatch, path+"?fieldManager=tests&fieldValidation=Strict", "application/apply-patch+yaml", []byte(o), &out); err != nil {
			t.Fatal(err)
		}
		switch found[1] {
		case "Namespace": // it stays: nothing in the cluster of the tests can delete one
			continue
		case "DaemonSet":
			if err := json.Unmarshal(out, &d); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			// A test may apply one twice, which is removed once.
			if err := node.call(http.MethodDelete, path, "application/json", nil, nil); err != nil && !strings.Contains(err.Error(), "404 Not Found") {
				t.Error(err)
			}
		})
	}
	if d.Metadata.Name == "" {
		t.Fatalf("no DaemonSet among %q", objects)
	}
	return d
}

// overlay writes one on top of another, as a user does: the image's version, and more
// lines.
func overlay(t *testing.T, on, version, more string) (dir string) {
	t.Helper()
	top := t.TempDir()
	if err := os.CopyFS(top, os.DirFS(packaging)); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(top, "overlays", "test")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%s]\nimages: [{name: %s, newTag: %s}]\n%s", filepath.Join("..", "..", on), shipped, version, more)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestManifests gives the base and each overlay to the API server, and a pod of each
// DaemonSet, which its admission must take.
func TestManifests(t *testing.T) {
	overlays, err := filepath.Glob(filepath.Join(packaging, "overlays", "*"))
	if err != nil || len(overlays) < 4 {
		t.Fatalf("overlays: %q (%v)", overlays, err)
	}
	for _, dir := range append(overlays, filepath.Join(packaging, "base")) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			template := applyAll(t, kustomize(t, dir)).Spec.Template
			create(t, "/api/v1/namespaces/railtune/pods", template.pod("railtune"))
			if len(template.Spec.NodeSelector) < 2 {
				t.Errorf("it goes to all nodes: %v", template.Spec.NodeSelector)
			}
		})
	}
}

// TestLeastPrivilege asks the API server what the pod needs that the strictest level of
// pod security does not allow.
func TestLeastPrivilege(t *testing.T) {
	template := applyAll(t, kustomize(t, filepath.Join(packaging, "base"))).Spec.Template
	create(t, "/api/v1/namespaces", testbed.Object{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": testbed.Object{"name": "strict", "labels": testbed.Object{"pod-security.kubernetes.io/enforce": "restricted"}},
	})
	b, err := json.Marshal(template.pod("strict"))
	if err != nil {
		t.Fatal(err)
	}
	err = node.call(http.MethodPost, "/api/v1/namespaces/strict/pods?dryRun=All", "application/json", b, nil)
	if err == nil {
		t.Fatal("the strictest level allows it: then why is it not in the manifests?")
	}
	_, said, _ := strings.Cut(err.Error(), `violates PodSecurity \"restricted:latest\": `)
	var needs []string
	for _, n := range strings.Split(said, "), ") {
		short, _, _ := strings.Cut(n, " (")
		needs = append(needs, short)
	}
	// One folder of the node's, of which the files are root's.
	if want := []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}; !slices.Equal(needs, want) {
		t.Errorf("it needs %q, want %q: %v", needs, want, err)
	}
}
