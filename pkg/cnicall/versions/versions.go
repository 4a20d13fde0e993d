// Package versions has what railtune answers to VERSION. It imports nothing, so that it
// can be asked for before anything else of the program is initialised.
package versions

// Spoken are the versions of the CNI specification that railtune speaks, oldest first.
var Spoken = []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// Result is what VERSION prints (CNI SPEC.md, "VERSION: probe plugin version support").
func Result() string {
	var list string
	for i, v := range Spoken {
		if i > 0 {
			list += ","
		}
		list += `"` + v + `"`
	}
	return `{"cniVersion":"` + Spoken[len(Spoken)-1] + `","supportedVersions":[` + list + "]}\n"
}
