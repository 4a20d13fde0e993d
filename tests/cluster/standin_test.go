//go:build cluster

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/railtune/railtune/pkg/testbed"
)

// sriov is the name of a STAND-IN for the sriov plugin, which needs hardware this
// machine has not got: the real host-device, with the PCI address that Multus put
// into the configuration translated to one of the node's rails. VLAN, spoof check
// and trust of the VF are ignored.
const sriov = "sriov"

// vf is the PCI address that stands for a rail.
func vf(r testbed.Rail) string { return fmt.Sprintf("0000:3b:00.%d", r.Index) }

// standInForSRIOV is the stand-in: it does not return in a process that was started
// under its name.
func standInForSRIOV() {
	if filepath.Base(os.Args[0]) != sriov {
		return
	}
	exit, err := hostDevice()
	if err != nil {
		fmt.Printf(`{"code":999,"msg":%q}`, "stand-in for sriov: "+err.Error())
		exit = 1
	}
	os.Exit(exit)
}

func hostDevice() (exit int, err error) {
	var config map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&config); err != nil {
		return 1, err
	}
	id, _ := config["deviceID"].(string)
	var index int
	if _, err := fmt.Sscanf(id, "0000:3b:00.%d", &index); err != nil {
		return 1, fmt.Errorf("deviceID %q: %w", id, err)
	}
	for _, key := range []string{"deviceID", "pciBusID", "runtimeConfig"} {
		delete(config, key)
	}
	config["type"], config["device"] = "host-device", fmt.Sprintf("rail%d", index)
	stdin, err := json.Marshal(config)
	if err != nil {
		return 1, err
	}
	for _, dir := range filepath.SplitList(os.Getenv("CNI_PATH")) {
		plugin := filepath.Join(dir, "host-device")
		if _, err := os.Stat(plugin); err != nil {
			continue
		}
		cmd := exec.Command(plugin)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), os.Stdout, os.Stderr
		var ended *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
			return 1, err
		}
		return cmd.ProcessState.ExitCode(), nil
	}
	return 1, errors.Join(errors.New("no host-device in CNI_PATH"), io.EOF)
}
