package attach

import (
	"errors"
	"fmt"
)

// journal remembers how to take back each step that was done.
type journal struct {
	steps []undo
}

type undo struct {
	what string
	back func() error
}

// did notes a step that was carried out.
func (j *journal) did(what string, back func() error) {
	j.steps = append(j.steps, undo{what, back})
}

// undo takes back all steps, the last one first. A step that cannot be taken back
// does not stop the others; all such errors are returned.
func (j *journal) undo() error {
	var errs []error
	for i := len(j.steps) - 1; i >= 0; i-- {
		if err := j.steps[i].back(); err != nil {
			errs = append(errs, fmt.Errorf("take back %s: %w", j.steps[i].what, err))
		}
	}
	j.steps = nil
	return errors.Join(errs...)
}
