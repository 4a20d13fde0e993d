// Command index makes the images of an OCI layout, one for each architecture and
// called by it, into one image that a runtime takes its own architecture's from.
package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The parts of the OCI image specification 1.0 that are used (image-index.md,
// descriptor.md, annotations.md).
const (
	indexType = "application/vnd.oci.image.index.v1+json"
	refName   = "org.opencontainers.image.ref.name"
	// imageName is what containerd names an imported image by, registry and all.
	imageName = "io.containerd.image.name"
)

type (
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
)

func main() {
	name := flag.String("name", "", "the image's `name`, with its registry")
	version := flag.String("version", "", "its `tag`")
	flag.Parse()
	if flag.NArg() != 1 || *name == "" || *version == "" {
		fmt.Fprintln(os.Stderr, "usage: index -name NAME -version TAG LAYOUT")
		os.Exit(2)
	}
	if err := join(flag.Arg(0), *name, *version); err != nil {
		fmt.Fprintln(os.Stderr, "index:", err)
		os.Exit(1)
	}
}

// join replaces the layout's list of images by one image, the index of them all.
func join(layout, name, version string) error {
	file := filepath.Join(layout, "index.json")
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all index
	if err := json.Unmarshal(old, &all); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for i, m := range all.Manifests {
		arch := m.Annotations[refName]
		if arch == "" || m.Platform != nil && m.Platform.Architecture != arch {
			return fmt.Errorf("%s has an image that is not called by its architecture: %+v", file, m)
		}
		all.Manifests[i].Platform, all.Manifests[i].Annotations = &platform{arch, "linux"}, nil
	}
	slices.SortFunc(all.Manifests, func(a, b descriptor) int {
		return cmp.Compare(a.Platform.Architecture, b.Platform.Architecture)
	})
	all.SchemaVersion, all.MediaType = 2, indexType
	inner, err := json.Marshal(all)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(inner))
	if err := os.WriteFile(filepath.Join(layout, "blobs", "sha256", sum), inner, 0o644); err != nil {
		return err
	}
	outer, err := json.Marshal(index{2, indexType, []descriptor{{
		MediaType: indexType, Digest: "sha256:" + sum, Size: int64(len(inner)),
		Annotations: map[string]string{refName: version, imageName: name + ":" + version},
	}}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, outer, 0o644)
}
