// Package convert makes a result of one version of the CNI specification one of another.
// It is a package of its own because the library's registers every version's types before
// main, for a case that does not occur: a plugin answers in the version it is called with
// (CNI SPEC.md, "Success").
package convert

import (
	"encoding/json"

	"github.com/containernetworking/cni/pkg/version"
)

// Result is a prevresult.Converter.
func Result(raw json.RawMessage, from, to string) (json.RawMessage, error) {
	res, err := version.NewResult(from, raw)
	if err != nil {
		return nil, err
	}
	if res, err = res.GetAsVersion(to); err != nil {
		return nil, err
	}
	return json.Marshal(res)
}
