package files

import (
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

var _ source.Placed = (*Source)(nil)

// Moved holds the configured path against the one that a position was planned with. It is a fault with code source.moved
// around a *source.MovedError when they differ, also with AllowMoved.
func (s *Source) Moved(at checkpoint.Position) error {
	pos, err := parsePosition(at)
	if err != nil {
		return err
	}
	return s.movedFrom(pos)
}

// movedFrom compares the fixed parts: another glob below the same directory finds the same files under the same names.
func (s *Source) movedFrom(pos *position) error {
	if pos.Base == "" || pos.Base == toURI(s.lister.root) {
		return nil
	}
	was, err := fromURI(pos.Base)
	if err != nil {
		return badPosition(pos.Base, err)
	}
	return fault.New(CodeMoved, "", &source.MovedError{Was: was, Is: s.lister.root},
		"put the path back, in the job file and on disk (a link to the new place will do); or take all that lies there now as new input with `wasmill run --allow-changes`")
}
