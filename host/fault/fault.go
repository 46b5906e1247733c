// Package fault is the form of an error that a user sees: a stable code, the place, what is wrong and the way out.
//
// Every package of the host returns faults for what a user can cause or mend; checkpoint has its own type with the same
// methods. The command line prints any error that has Code and Hint. The package holds no list of codes: each code
// belongs to the package that returns it and is a constant there.
package fault

import "errors"

// Error is an error for a user. Wrap it freely: errors.As finds it.
type Error struct {
	// ErrCode is stable, lower case and dotted: "source.changed".
	ErrCode string
	// Place is the file, and where it is known the line and column, or the component that the error is about.
	Place string
	// WayOut says in one sentence what the user can do.
	WayOut string
	// Err is what is wrong.
	Err error
	// Passes says that it may pass by itself: a service that is away, and not something that somebody must mend.
	Passes bool
}

// New returns a fault about place.
func New(code, place string, err error, wayOut string) *Error {
	return &Error{ErrCode: code, Place: place, WayOut: wayOut, Err: err}
}

// Passing returns a fault about place that may pass by itself.
func Passing(code, place string, err error, wayOut string) *Error {
	f := New(code, place, err, wayOut)
	f.Passes = true
	return f
}

// IsPassing reports whether there is a fault in err that may pass by itself.
func IsPassing(err error) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && f.Passes
}

func (e *Error) Error() string {
	if e.Place == "" {
		return e.Err.Error()
	}
	return e.Place + ": " + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the stable code.
func (e *Error) Code() string { return e.ErrCode }

// Hint returns the way out.
func (e *Error) Hint() string { return e.WayOut }
