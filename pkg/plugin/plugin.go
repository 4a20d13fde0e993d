// Package plugin is railtune as a CNI runtime calls it: one call read, carried out,
// and answered on stdout.
package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/railtune/railtune/pkg/attach"
	"github.com/railtune/railtune/pkg/cnicall"
	"github.com/railtune/railtune/pkg/cnierr"
	"github.com/railtune/railtune/pkg/prevresult"
)

// Parts are what few calls need, and what costs every start where it is linked in:
// package main has them, the package that runs before it does not (see package ahead).
// One that is nil is missing.
type Parts struct {
	// Firewall is for firewall.acceptRails.
	Firewall attach.Firewall
	// Convert is for a prevResult of another version than the configuration's.
	Convert prevresult.Converter
}

// ErrLater says that a call needs one of the Parts that is missing. Nothing was changed.
var ErrLater = errors.New("this call needs a part that is not there yet")

// Call is a call of the plugin.
type Call struct {
	*cnicall.Call
	// invalid is why it cannot be carried out.
	invalid error
}

// Read reads the call that the environment and stdin make.
func Read() *Call {
	c, err := cnicall.Read(os.Getenv, os.Stdin)
	return &Call{c, err}
}

// Run carries the call out and returns the exit status. The error is ErrLater or nil:
// any other is printed on stdout, as the specification asks for.
func (c *Call) Run(parts Parts) (status int, err error) {
	err = c.invalid
	if err == nil {
		err = c.verb(parts)
	}
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(err, ErrLater):
		return 0, ErrLater
	}
	if printErr := printError(os.Stdout, err); printErr != nil {
		fmt.Fprintln(os.Stderr, "railtune:", err, "(and stdout cannot be written:", printErr, ")")
	}
	return 1, nil
}

func (c *Call) verb(parts Parts) error {
	switch c.Verb {
	case cnicall.Add:
		return c.add(parts)
	case cnicall.Check:
		return c.check(parts)
	case cnicall.Del:
		return c.del(parts)
	case cnicall.Status:
		return c.status(parts)
	}
	return nil // GC: railtune keeps nothing that could outlive its namespace; VERSION was answered in ahead/first
}

// printError writes an error in the form the specification asks for (CNI SPEC.md,
// "Error"), as the library's types.Error prints itself.
func printError(w io.Writer, err error) error {
	object := struct {
		Code    cnierr.Code `json:"code"`
		Msg     string      `json:"msg"`
		Details string      `json:"details,omitempty"`
	}{Code: cnierr.CodeOf(err, cnierr.Internal), Msg: err.Error()}
	var e *cnierr.Error
	if errors.As(err, &e) {
		object.Details = e.Details
	}
	out, err := json.MarshalIndent(object, "", "    ")
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}
