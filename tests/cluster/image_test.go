//go:build cluster

package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// shipped is the image's name in the manifests.
const shipped = "localhost/railtune"

// release is one made by the scripts of this project.
type release struct {
	dir, version string
}

// dist is the release `make image` has made.
func dist(t *testing.T) release {
	t.Helper()
	r := release{dir: filepath.Join(filepath.Dir(bin.Railtune), "..", "dist")}
	about, err := exec.CommandContext(t.Context(), r.binary(), "version").Output()
	if err != nil {
		t.Fatalf("%v: run `make image`", err)
	}
	r.version = strings.Fields(string(about))[3] // CNI plugin railtune VERSION (…)
	return r
}

// newRelease makes another version of the same sources, for an upgrade.
func newRelease(t *testing.T, version string) release {
	t.Helper()
	r := release{dir: t.TempDir(), version: version}
	for _, script := range []string{"release", "image"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "scripts", script, "build"), r.dir)
		cmd.Env = append(os.Environ(), "VERSION="+version)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", cmd, err, out)
		}
	}
	return r
}

func (r release) binary() string  { return filepath.Join(r.dir, "railtune-linux-"+runtime.GOARCH) }
func (r release) archive() string { return filepath.Join(r.dir, "railtune-image.oci.tar") }

// load imports the image as an administrator of the node would.
func (r release) load(t *testing.T) {
	t.Helper()
	if err := node.ctr("images", "import", r.archive()); err != nil {
		t.Fatal(err)
	}
}

// mustBeInstalled asserts that a file is the release's binary.
func (r release) mustBeInstalled(t *testing.T, path string) {
	t.Helper()
	want, err := os.ReadFile(r.binary())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s is not the binary of %s", path, r.version)
	}
}

// blob is what has a digest in an image layout; the parts of the specification's
// indexes, manifests and configurations that the test reads.
type blob struct {
	Manifests []reference
	Layers    []reference
	Config    json.RawMessage // a reference in a manifest
}

type reference struct {
	Digest   string
	Platform struct{ Architecture, OS string }
}

// TestImage looks into the archive: an image for each architecture, with one file, the
// release's binary, and nothing of the machine it was made on.
func TestImage(t *testing.T) {
	r := dist(t)
	files := mustUntar(t, mustRead(t, r.archive()))
	top := mustBlob(t, files["index.json"])
	if len(top.Manifests) != 1 {
		t.Fatalf("the archive has %d images", len(top.Manifests))
	}
	var archs []string
	for _, m := range mustBlob(t, digested(t, files, top.Manifests[0])).Manifests {
		arch := m.Platform.Architecture
		archs = append(archs, m.Platform.OS+"/"+arch)
		manifest := mustBlob(t, digested(t, files, m))
		if len(manifest.Layers) != 1 {
			t.Fatalf("the image for %s has %d layers", arch, len(manifest.Layers))
		}
		unzipped, err := gzip.NewReader(bytes.NewReader(digested(t, files, manifest.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(unzipped)
		if err != nil {
			t.Fatal(err)
		}
		content := mustUntar(t, layer)
		if want := mustRead(t, filepath.Join(r.dir, "railtune-linux-"+arch)); len(content) != 1 || !bytes.Equal(content["railtune"], want) {
			t.Errorf("the image for %s has %d files, want the release's binary alone", arch, len(content))
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(archs, want) {
		t.Errorf("the image is for %q, want %q", archs, want)
	}
}

func mustBlob(t *testing.T, text []byte) (b blob) {
	t.Helper()
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return b
}

// digested is what a reference is to, which has to have its digest.
func digested(t *testing.T, files map[string][]byte, r reference) []byte {
	t.Helper()
	sum, _ := strings.CutPrefix(r.Digest, "sha256:")
	b := files["blobs/sha256/"+sum]
	if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != sum {
		t.Fatalf("%s has the digest %s", r.Digest, got)
	}
	return b
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run `make image`", err)
	}
	return b
}

// mustUntar returns the files of an archive. All in it has to be root's.
func mustUntar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.FileInfo().Mode().Perm()&0o022 != 0 {
			t.Errorf("%s is of %d:%d (%q) with mode %v", h.Name, h.Uid, h.Gid, h.Uname, h.FileInfo().Mode())
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
