package main_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// rounds is how often TestParallel attaches sixteen rails at once (RT-33). With 3200
// proven ADDs it is also the test for false alarms of the neighbour proof.
const rounds = 200

// TestParallel adds sixteen rails of one subnet at once, as processes, again and again,
// and takes them away at once: sixteen tables, 48 rules, no error, nothing left. Every
// round starts with untuned rails, which answer for each other until their own ADD has
// come to them.
func TestParallel(t *testing.T) {
	testbed.MustRailtune(t)
	fabric := testbed.MustFabric(t, testbed.Options{Pods: 1, Direct: true})
	pod := fabric.Pods[0]
	n := rounds
	if testing.Short() {
		n = 5
	}
	before := testbed.MustSnapshot(t, pod.Namespace)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range n {
		attachAll(t, pod)
		if round%20 == 0 {
			mustHaveAll(t, pod)
		}
		if round%4 == 3 {
			detachInOrder(t, pod, random.Perm(len(pod.Rails)))
		} else {
			detachAll(t, pod)
		}
		untune(t, pod)
		if round%20 == 0 {
			if d := testbed.Diff(before, testbed.MustSnapshot(t, pod.Namespace)); len(d) > 0 {
				t.Fatalf("round %d left:\n%s", round, d)
			}
		}
	}
	if d := testbed.Diff(before, testbed.MustSnapshot(t, pod.Namespace)); len(d) > 0 {
		t.Fatalf("left:\n%s", d)
	}
}

func attachAll(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	if err := eachAtOnce(pod.Rails, chained(t, pod, "ADD")); err != nil {
		t.Fatal(err)
	}
}

func detachAll(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	if err := eachAtOnce(pod.Rails, chained(t, pod, "DEL")); err != nil {
		t.Fatal(err)
	}
}

// chained returns a function that runs the plugin for one rail, as the next of its chain.
func chained(t *testing.T, pod *testbed.Pod, verb string) func(testbed.Rail) error {
	return func(r testbed.Rail) error {
		_, err := pod.Chain(t.Context(), verb, r, testbed.Railtune)
		return err
	}
}

func detachInOrder(t *testing.T, pod *testbed.Pod, order []int) {
	t.Helper()
	for _, k := range order {
		if err := chained(t, pod, "DEL")(pod.Rails[k]); err != nil {
			t.Fatal(err)
		}
	}
}

var tableOf = regexp.MustCompile(`lookup (72\d{5})`)

func mustHaveAll(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	rules := testbed.MustSnapshot(t, pod.Namespace).Matching("rule4")
	tables := map[string]bool{}
	ours := 0
	for _, r := range rules {
		if strings.Contains(r, mark) {
			ours++
		}
		if m := tableOf.FindStringSubmatch(r); m != nil {
			tables[m[1]] = true
		}
	}
	if want := len(pod.Rails); len(tables) != want || ours != 3*want {
		t.Fatalf("%d tables and %d rules, want %d and %d:\n%s", len(tables), ours, want, 3*want, strings.Join(rules, "\n"))
	}
}

func untune(t *testing.T, pod *testbed.Pod) {
	t.Helper()
	for _, r := range pod.Rails {
		for _, leaf := range []string{"arp_ignore", "arp_announce"} {
			if err := pod.SetSysctl("ipv4/conf/"+r.Name+"/"+leaf, "0"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
