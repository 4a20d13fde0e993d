package doctor_test

import (
	"testing"

	"github.com/railtune/railtune/pkg/testbed"
)

// BenchmarkLook is doctor's time on a healthy pod of sixteen rails, without the start of
// a process (docs/doctor.md).
func BenchmarkLook(b *testing.B) {
	for name, layout := range map[string]testbed.Layout{"one subnet": testbed.OneSubnet, "a subnet each": testbed.PerRail} {
		b.Run(name, func(b *testing.B) {
			bed := sixteen(b, layout)
			for b.Loop() {
				bed.mustBeClean()
			}
		})
	}
}
