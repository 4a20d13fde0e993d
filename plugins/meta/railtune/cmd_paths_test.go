package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestPathsCommand makes a peer map with one command and tries it with the other.
func TestPathsCommand(t *testing.T) {
	f := testbed.MustFabric(t, testbed.Options{Layout: testbed.PerRail, Rails: 2})
	binary := testbed.MustRailtune(t)
	if err := f.Attach(t.Context(), testbed.Object{"type": "railtune", "supernets": []any{testbed.Object{"dst": testbed.Supernet.String()}}}); err != nil {
		t.Fatal(err)
	}
	a, b := f.Pods[0], f.Pods[1]
	mine, err := exec.CommandContext(t.Context(), binary, "paths", "--mine", "--netns", b.Path()).Output()
	if want := "net1 10.61.1.12\nnet2 10.61.2.12\n"; err != nil || string(mine) != want {
		t.Fatalf("--mine prints %q (%v), want %q", mine, err, want)
	}
	file := filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(file, mine, 0o644); err != nil {
		t.Fatal(err)
	}
	mustSay(t, binary, 0, fmt.Sprintf("paths --netns %s --peer-map %s", a.Path(), file), "4 paths, all work", "net1 ++   ++")
	inside := exec.CommandContext(t.Context(), binary, "paths", "-o", "json", "--peer", "net1=10.61.1.12", "--peer", "net2=10.61.2.12")
	out := new(strings.Builder)
	inside.Stdout = out
	if err := a.Start(inside); err != nil {
		t.Fatal(err)
	}
	if err := inside.Wait(); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Pairs []struct {
			From, Rail, Addr, Via, Code string
			Device, Source              struct{ Sent, Back int }
			Hops                        []string
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil || len(report.Pairs) != 4 {
		t.Fatalf("%v: %s", err, out)
	}
	if got := fmt.Sprint(report.Pairs[1]); got != "{net1 net2 10.61.2.12 10.61.1.254 ok {3 3} {3 3} [10.61.1.254 10.61.2.12]}" {
		t.Errorf("the path from rail 1 to rail 2 is %s", got)
	}
	if _, err := a.Run(t.Context(), "ip", "route", "flush", "table", "all", "proto", "72"); err != nil {
		t.Fatal(err)
	}
	mustSay(t, binary, 1, "paths --timeout 2s --netns "+a.Path()+" --peer net1=10.61.1.12,net2=10.61.2.12", "no-route", "4 do not work")
}

func TestPathsCommandRefuses(t *testing.T) {
	testbed.NeedRoot(t) // to enter a namespace, the own one too
	binary := testbed.MustRailtune(t)
	for line, says := range map[string]string{
		"paths":                                                 "give --peer-map FILE or --peer RAIL=ADDRESS",
		"paths --peer net1":                                     "give RAIL=ADDRESS",
		"paths --peer net1=10.61.1.300":                         "is no address",
		"paths --peer-map /no/such":                             "no such file",
		"paths -o yaml --peer net1=10.61.1.1":                   "give table or json",
		"paths --count 0 --peer net1=10.61.1.1":                 "give --count",
		"paths --netns /no/such --peer net1=10.61.1.1":          "cannot be entered",
		"paths --host --pid 1 --peer net1=10.61.1.1":            "exclude each other",
		"paths --peer no-such=10.61.1.1":                        "there is no no-such here",
		"paths --peer no-such=10.61.1.1 --peer other=10.61.1.1": "is given for no-such and for other",
	} {
		mustSay(t, binary, 2, line, says)
	}
}
