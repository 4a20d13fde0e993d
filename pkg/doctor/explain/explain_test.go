package explain_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/doctor/check"
	"github.com/railtune/railtune/pkg/doctor/explain"
	"github.com/railtune/railtune/pkg/doctor/render"
)

// TestFind: texts as people paste them, from logs and from memory, and what they lead to.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		text string
		want check.Code // a code of the first symptom; "" for nothing known
	}{
		{"ibv_modify_qp failed with 61", check.RAIgnored},
		{"NCCL WARN Call to ibv_modify_qp failed with 61 No data available, on dev mlx5_3:1, curr state INIT, next state RTR", check.GIDMissing},
		{"misc/ibvwrap.cc: IBV_MODIFY_QP failed with error No data available", check.AddressMissing},
		{"Got completion with error 12, opcode 0, vendor err 129: IBV_WC_RETRY_EXC_ERR", check.SettingsReset},
		{"ibv_wc_rem_inv_req_err", check.NeighbourStale},
		{"Completion with status 9", check.AllOverrides},
		{"ib_write_bw hangs on some rails", check.SettingMissing},
		{"ib_write_bw", check.NoCarrier},
		{"connect: No route to host", check.SupernetMissing},
		{"neighbour: arp_cache: neighbor table overflow!", check.NeighbourFull},
		{"rtnetlink answers: file exists", check.Orphan},
		{"orphan", check.Orphan},
		{"default-competes", check.DefaultCompetes},
		{"", ""},
		{"the coffee machine is empty", ""},
	} {
		found := explain.Find(c.text)
		if c.want == "" {
			if len(found) > 0 {
				t.Errorf("%q: found %s", c.text, found[0].Name)
			}
			continue
		}
		if len(found) == 0 || !leadsTo(found[0], c.want) {
			t.Errorf("%q does not lead to %s first: %v", c.text, c.want, found)
		}
	}
}

func leadsTo(s explain.Symptom, code check.Code) bool {
	for _, c := range s.Causes {
		for _, have := range c.Codes {
			if have == code {
				return true
			}
		}
	}
	return false
}

// TestEveryCodeIsExplained: whatever doctor finds, some symptom or the list of codes says
// what it means; and symptoms name codes that exist.
func TestEveryCodeIsExplained(t *testing.T) {
	for _, i := range check.Codes() {
		var out bytes.Buffer
		if !explain.Write(&out, string(i.Code), render.Wrap) || !strings.Contains(out.String(), string(i.Code)) {
			t.Errorf("%s is not explained: %s", i.Code, out.String())
		}
	}
	for _, s := range explain.Symptoms() {
		for _, c := range s.Causes {
			for _, code := range c.Codes {
				if !check.Known(string(code)) {
					t.Errorf("%s names %s, which does not exist", s.Name, code)
				}
			}
		}
	}
}

// TestWidth: what is printed fits a hundred columns.
func TestWidth(t *testing.T) {
	var out bytes.Buffer
	for _, s := range explain.Symptoms() {
		explain.Write(&out, s.Name, render.Wrap)
	}
	explain.Write(&out, "nothing of the kind", render.Wrap)
	for line := range strings.Lines(out.String()) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > render.Width {
			t.Errorf("too wide: %s", line)
		}
	}
}
