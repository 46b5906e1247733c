package files

import (
	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/partition"
)

// tableLane takes JSON objects as typed rows.
type tableLane struct {
	table *rows.Table
	check partition.Checker
}

func (l *tableLane) Append(r *abi.Record) error {
	if err := l.table.Append(r.Value); err != nil {
		return err
	}
	if len(l.check.Columns) == 0 {
		return nil
	}
	if m := l.check.Check(l.table, l.table.Len()-1); m != nil {
		l.table.Truncate(l.table.Len() - 1)
		return m
	}
	return nil
}

func (l *tableLane) Reset()       { l.table.Reset() }
func (l *tableLane) Rows() int64  { return int64(l.table.Len()) }
func (l *tableLane) Bytes() int64 { return l.table.Bytes() }

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
