package source

import "github.com/wasmill/wasmill/checkpoint"

// Placed is a Source that knows its input by where it lies, so that a moved one would be read again.
type Placed interface {
	// Moved compares where the source looks with where the position was planned. It wraps a *MovedError when they differ,
	// and looks at nothing on disk.
	Moved(at checkpoint.Position) error
}

// MovedError says that an input does not lie where it was planned.
type MovedError struct {
	Was, Is string
}

func (e *MovedError) Error() string {
	return "the input was " + e.Was + " and is now " + e.Is + ": what was read from there would be read again, and stand in the sinks twice"
}
