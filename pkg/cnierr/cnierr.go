// Package cnierr names the ways railtune can fail and carries each failure's
// CNI error code from where it was found to where it is printed.
//
// Codes below 100 are the CNI specification's (SPEC.md, "Error"); those from
// 100 on are railtune's own and documented in docs/errors.md.
package cnierr

import (
	"errors"
	"fmt"
)

// Code is the "code" field of a CNI error object.
type Code uint

// The codes railtune prints. A caller can rely on them; the message is for people.
const (
	// Incompatible: the configuration is of a version of the specification that railtune
	// does not speak, or that has no such verb.
	Incompatible Code = 1
	// Environment: a CNI_* variable is missing or unusable.
	Environment Code = 4
	// IO: stdin cannot be read.
	IO Code = 5
	// Decode: the configuration on stdin is not JSON of the right shape.
	Decode Code = 6
	// Config: the configuration, or what prevResult says, cannot be carried out.
	Config Code = 7
	// TryAgain: the kernel was busy in a way that passes; calling again can help.
	TryAgain Code = 11
	// Unavailable: STATUS found that this node lacks what ADD needs.
	Unavailable Code = 50
	// Sysctl: an interface setting could not be read, written or kept.
	Sysctl Code = 100
	// Link: the interface, its state, or an address on it is not as it must be.
	Link Code = 101
	// Routing: a rule, route or table conflicts with someone else's.
	Routing Code = 102
	// Neighbour: another station claims an address, or one address has several MACs.
	Neighbour Code = 103
	// Internal: whatever has no code of its own.
	Internal Code = 999
	// Kernel: the kernel was built without something railtune needs.
	Kernel Code = 104
)

// Error is a failure with its CNI code and the evidence for it.
type Error struct {
	Code Code
	// Details holds the evidence (addresses, MACs, owners), one fact a line.
	Details string
	err     error
}

// Error returns what was found, where, and what to do.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns what was given to New, so that errors.Is reaches every %w in it.
func (e *Error) Unwrap() error { return e.err }

// New returns an error with a code; format and args are as for fmt.Errorf, %w included.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, err: fmt.Errorf(format, args...)}
}

// With returns e with evidence added.
func (e *Error) With(details string) *Error {
	c := *e
	c.Details = details
	return &c
}

// CodeOf returns the code err carries anywhere in its chain, or fallback.
func CodeOf(err error, fallback Code) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fallback
}
