package doctor_test

import (
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// TestApplyBringsTheRouteBack: rails whose default routes a late switch of forwarding has
// purged are right after the command that the report ends with, and what that solicits.
func TestApplyBringsTheRouteBack(t *testing.T) {
	t.Parallel()
	binary := testbed.MustRailtune(t)
	b := setupNamed(t, "dranet-ra")
	b.options.Target = "--netns " + b.pod.Path()
	b.sh("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
	command, ok := strings.CutPrefix(b.mustFind("ra-ignored").Apply, "railtune ")
	if !ok {
		t.Fatal("the report does not say how to apply")
	}
	if out, err := b.pod.Node.Run(t.Context(), binary, strings.Fields(command)...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range b.pod.Rails {
		b.awaitRA(r.Name, func() error { return nil })
	}
	b.mustBeClean()
}
