package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/railtune/railtune/pkg/cnierr"
)

// TestPrintError: an error is printed as the CNI library's is.
func TestPrintError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want types.Error
	}{
		{errors.New(`a "word" <b>`), types.Error{Code: 999, Msg: `a "word" <b>`}},
		{fmt.Errorf("around: %w", cnierr.New(cnierr.Link, "no %s", "net1").With("one\ntwo")), types.Error{Code: 101, Msg: "around: no net1", Details: "one\ntwo"}},
	} {
		var got bytes.Buffer
		if err := printError(&got, c.err); err != nil {
			t.Fatal(err)
		}
		want, err := json.MarshalIndent(c.want, "", "    ") // what its Print writes
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s, the library prints %s", got.String(), want)
		}
	}
}
