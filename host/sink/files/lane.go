package files

import (
	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
)

// rawLane takes values as lines.
type rawLane struct {
	lines   rows.Lines
	updates bool // a record without a value is a deletion, not a misfit
	scratch []byte
}

func (l *rawLane) Append(r *abi.Record) (err error) {
	if r.Value != nil || !l.updates {
		return l.lines.Append(r.Value)
	}
	if l.scratch, err = rows.AppendDeletion(l.scratch[:0], r.Key); err != nil {
		return err
	}
	return l.lines.Append(l.scratch)
}

func (l *rawLane) Reset()       { l.lines.Reset() }
func (l *rawLane) Rows() int64  { return int64(l.lines.Len()) }
func (l *rawLane) Bytes() int64 { return l.lines.Bytes() }
