package render

import (
	"encoding/json"
	"io"

	"github.com/railtune/railtune/pkg/doctor"
)

// JSON writes the report as one indented object.
func JSON(w io.Writer, r *doctor.Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
