package delta

import (
	"encoding/binary"
	"fmt"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/sink"
)

// isKey reports whether values of a kind can be told apart for certain.
func isKey(k rows.Kind) bool {
	switch k {
	case rows.String, rows.Boolean, rows.Int8, rows.Int16, rows.Int32, rows.Int64, rows.Decimal, rows.Timestamp, rows.TimestampNTZ,
		rows.Date:
		return true
	}
	return false
}

// keySchema is the key alone, in which nothing may be null.
func (t *Target) keySchema() (*rows.Schema, error) {
	columns := make([]rows.Column, 0, len(t.key))
	for _, c := range t.key {
		column := t.cfg.Schema.Column(c)
		column.Type.Required = true
		columns = append(columns, column)
	}
	return rows.NewSchema(columns)
}

// appendKey appends a row's key: equal bytes for equal keys of columns of the same types. ok is false when a value is null.
func appendKey(dst []byte, t *rows.Table, columns []int, row int) (key []byte, ok bool) {
	for _, c := range columns {
		v := t.Column(c)
		if v.Valid[row] == 0 {
			return dst, false
		}
		x := v.Value(row)
		switch v.Type.Kind {
		case rows.String:
			dst = binary.AppendUvarint(dst, uint64(len(x.Bytes)))
			dst = append(dst, x.Bytes...)
		case rows.Decimal:
			dst = binary.BigEndian.AppendUint64(dst, uint64(x.Wide.Hi))
			dst = binary.BigEndian.AppendUint64(dst, x.Wide.Lo)
		default:
			dst = binary.BigEndian.AppendUint64(dst, uint64(x.Int))
		}
	}
	return dst, true
}

// change is the last change of a key: a row of a table of rows, or of one of keys, then it is a deletion.
type change struct {
	table   *rows.Table
	row     int
	deleted bool
}

// changes are a batch's, one for each key.
type changes struct {
	last    map[string]int // place in order
	order   []change       // by the first appearance of the key
	columns []int          // the key's, in tables of rows
	keyOnly []int          // and in tables of keys
}

func (t *Target) gather(lanes []sink.Lane) (*changes, error) {
	c := &changes{last: map[string]int{}, columns: t.key}
	for i := range t.key {
		c.keyOnly = append(c.keyOnly, i)
	}
	var key []byte
	for _, lane := range lanes {
		l, ok := lane.(*upsertLane)
		if !ok {
			return nil, fmt.Errorf("a lane of another target: %T", lane)
		}
		next := [2]int{} // rows taken of each table
		for _, o := range l.ops {
			ch := change{table: l.Table, row: next[o], deleted: o == remove}
			if ch.deleted {
				ch.table = l.deleted
			}
			next[o]++
			if key, ok = appendKey(key[:0], ch.table, c.keyColumns(ch), ch.row); !ok {
				return nil, fmt.Errorf("a row without a key")
			}
			at, seen := c.last[string(key)]
			if !seen {
				c.last[string(key)] = len(c.order)
				c.order = append(c.order, ch)
				continue
			}
			c.order[at] = ch
		}
	}
	return c, nil
}

func (c *changes) keyColumns(ch change) []int {
	if ch.deleted {
		return c.keyOnly
	}
	return c.columns
}

// value is a column of a change's key.
func (c *changes) value(ch change, i int) rows.Value {
	return ch.table.Column(c.keyColumns(ch)[i]).Value(ch.row)
}

// rows are the changes that are no deletions, in order.
func (c *changes) rows() []parquetfile.Rows {
	var out []parquetfile.Rows
	for _, ch := range c.order {
		if ch.deleted {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Table != ch.table {
			out = append(out, parquetfile.Rows{Table: ch.table, Index: []uint32{}})
		}
		last := &out[len(out)-1]
		last.Index = append(last.Index, uint32(ch.row))
	}
	return out
}
