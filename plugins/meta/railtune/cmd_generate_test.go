package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestGenerateCommand: a file, flags over it, a folder, and its own output again.
func TestGenerateCommand(t *testing.T) {
	binary, dir := testbed.MustRailtune(t), t.TempDir()
	file := filepath.Join(dir, "rails.yml")
	if err := os.WriteFile(file, []byte("rails: 4\nplugin: macvlan\nipam: dhcp\nparent: rdma%d\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustSay(t, binary, 0, "generate nad --file "+file+" --rails 2 --parent gpu%d --out "+dir)
	made, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(made) != 2 || filepath.Base(made[1]) != "rail-1.yaml" {
		t.Fatalf("the folder has %v (%v)", made, err)
	}
	text, err := os.ReadFile(made[1])
	if err != nil || !strings.Contains(string(text), `"master": "gpu1"`) || !strings.Contains(string(text), `"type": "macvlan"`) {
		t.Errorf("%v: %s", err, text)
	}
	again, err := exec.CommandContext(t.Context(), binary, "generate", "from-tuning", made[1]).Output()
	if err != nil || string(again) != string(text) {
		t.Errorf("what it generated comes back as %s (%v)", again, err)
	}
	mustSay(t, binary, 0, "generate from-tuning --supernets 10.61.0.0/16 "+made[1], `"dst": "10.61.0.0/16"`)
	mustSay(t, binary, 0, "generate --help", "from-tuning", "sysctl.d")
	mustSay(t, binary, 0, "generate from-tuning --help", "tuning and sbr")
}

func TestGenerateCommandRefuses(t *testing.T) {
	binary := testbed.MustRailtune(t)
	for line, says := range map[string]string{
		"generate":                          "which kind?",
		"generate nads":                     "none of nad, sriovnetwork",
		"generate nad --ipam dhcp x":        `unexpected argument "x"`,
		"generate nad --file /no/such":      "no such file",
		"generate conflist --ipam dhcp":     "give a folder",
		"generate from-tuning":              "which file?",
		"generate from-tuning /no/such":     "no such file",
		"generate nad --ipam dhcp --out /x": "/x/rail-0.yaml",
	} {
		mustSay(t, binary, 2, line, says)
	}
}
