package delta

import (
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

// maxSaid bounds what a source remembers of what it has reported.
const maxSaid = 1000

// lostFile reports the rest of a file that cannot be read. read is how many of its rows were planned before.
func (s *Source) lostFile(a *delta.Add, read int64, why error) error {
	name, err := s.history.place(a)
	if err != nil {
		return err
	}
	s.leftOut(name, detail(why), restOf(read, a))
	return nil
}

// passed reports the rows that a version adds which is passed over, where it adds any.
func (s *Source) passed(v *version) {
	if len(v.adds) == 0 {
		return
	}
	s.leftOut(fmt.Sprintf("%s version %d", s.cfg.Dir, v.number),
		fmt.Sprintf("it removes rows (those of %s) and is passed over with what it adds", v.removes), restOf(0, v.adds...))
}

// leftOut reports what the source goes on without, once: a batch may be planned more than once.
func (s *Source) leftOut(what, why string, rows int64) {
	key := what + "\x00" + why
	if s.said[key] {
		return
	}
	if s.said == nil || len(s.said) >= maxSaid {
		s.said = map[string]bool{}
	}
	s.said[key] = true
	s.cfg.Warn(&source.LeftOutError{Split: what, Detail: why, Records: rows, Bytes: -1, Unit: "row"})
}

// restOf counts the rows of files by what the log says of them, but for those that were read; -1 where it does not say.
func restOf(read int64, adds ...*delta.Add) int64 {
	rows := -read
	for _, a := range adds {
		n, known, err := rowsOf(a)
		if err != nil || !known {
			return -1
		}
		rows += n
	}
	return max(0, rows)
}

// detail is what an error says, without the place, which is told beside it.
func detail(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Err.Error()
	}
	return err.Error()
}
