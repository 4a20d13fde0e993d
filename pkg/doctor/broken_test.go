package doctor_test

import (
	"strings"
	"testing"

	"github.com/railtune/railtune/pkg/doctor/check"
)

// breakage is one way in which setups break, and what doctor has to say of it.
type breakage struct {
	name   string
	code   check.Code
	setups string // names, separated by blanks
	do     func(b *bed)
	// still, where no command can mend it: the cable is out, the address is taken.
	still bool
	// heal is what has to happen besides the remedy.
	heal func(b *bed)
}

func (x breakage) run(t *testing.T) {
	for name := range strings.FieldsSeq(x.setups) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupNamed(t, name)
			x.do(b)
			report := b.mustFind(x.code)
			if x.still {
				return
			}
			b.mend(report)
			if x.heal != nil {
				x.heal(b)
			}
			b.mustBeClean()
		})
	}
}

// script is a breakage that a shell script makes.
func script(text string) func(*bed) { return func(b *bed) { b.sh(text) } }

// TestBroken breaks every setup in each way it can break: doctor finds the one code and no
// other, and nothing after the remedy was pasted.
func TestBroken(t *testing.T) {
	for _, x := range breakages {
		t.Run(x.name, func(t *testing.T) { t.Parallel(); x.run(t) })
	}
}
