// Command operator renders a SriovNetwork into the NetworkAttachmentDefinition that
// the SR-IOV Network Operator would make of it, with the operator's own code and
// templates: JSON in, JSON out.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	sriovv1 "github.com/k8snetworkplumbingwg/sriov-network-operator/api/v1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sriovv1.ManifestsPath = filepath.Join(filepath.Dir(self), "cni-config") // as the script "also" left it
	var network sriovv1.SriovNetwork
	if err := json.NewDecoder(os.Stdin).Decode(&network); err != nil {
		return fmt.Errorf("the SriovNetwork on stdin: %w", err)
	}
	nad, err := network.RenderNetAttDef()
	if err != nil {
		return fmt.Errorf("rendering %s: %w", network.Name, err)
	}
	return json.NewEncoder(os.Stdout).Encode(nad)
}
