package attach_test

import (
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/attach"
)

// TestOtherPlanIsFound: the configuration and the addresses have both changed since the
// last ADD, so that nothing of the old plan is where a first ADD looks: not its
// priorities, not its table, no rule for the address. It is taken away all the same.
func TestOtherPlanIsFound(t *testing.T) {
	pod := newPod(t)
	const (
		bare    = `{"cniVersion":"1.0.0","name":"rail","type":"railtune","announce":false,"verify":{"mode":"off"}`
		another = bare + `,"table":501,"rulePriority":3000}`
	)
	prevOf := func(address string) string {
		return `{"cniVersion":"1.0.0","interfaces":[{"name":"net1","sandbox":"/x"}],"ips":[{"interface":0,"address":"` + address + `"}]}`
	}
	if err := with(t, pod, func(r *attach.Rail) error { return addAfter(r, another, prevOf("10.61.1.11/24")) }); err != nil {
		t.Fatal(err)
	}
	mustRun(t, pod, "addr", "add", "10.61.1.12/24", "dev", "net1")
	if err := with(t, pod, func(r *attach.Rail) error { return addAfter(r, bare+"}", prevOf("10.61.1.12/24")) }); err != nil {
		t.Fatal(err)
	}
	rules, err := pod.Run(t.Context(), "ip", "rule", "show")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rules, "300") {
		t.Errorf("the rail's rules of an earlier plan are left:\n%s", rules)
	}
}
