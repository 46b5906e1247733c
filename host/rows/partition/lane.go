package partition

import (
	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
)

// Lane takes JSON objects as typed rows whose partition values make folders: the sink.Lane of a table that is added to.
type Lane struct {
	Table *rows.Table
	Check Checker
}

// Append takes a record. A *sink.Misfit leaves the lane as it was.
func (l *Lane) Append(r *abi.Record) error {
	if err := l.Table.Append(r.Value); err != nil {
		return err
	}
	if len(l.Check.Columns) == 0 {
		return nil
	}
	if m := l.Check.Check(l.Table, l.Table.Len()-1); m != nil {
		l.Table.Truncate(l.Table.Len() - 1)
		return m
	}
	return nil
}

// Binary reports whether the path leads to a column of bytes.
func (l *Lane) Binary(path ...string) bool { return l.Table.Schema().Binary(path...) }

// Reset forgets all rows.
func (l *Lane) Reset() { l.Table.Reset() }

// Rows is the number of rows.
func (l *Lane) Rows() int64 { return int64(l.Table.Len()) }

// Bytes is the memory that the rows take.
func (l *Lane) Bytes() int64 { return l.Table.Bytes() }
