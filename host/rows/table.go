package rows

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
)

// Table holds rows of one schema by column. It is not safe for concurrent use.
type Table struct {
	schema  *Schema
	root    *record
	n, cap  int
	fixed   int64     // bytes of one row's slots
	varying []*Vector // the columns whose rows take more
	gen     uint64
	text    []byte // an unescaped key
	careful bool   // an object is read once more, as a value in it does not fit
	path    []step // from the value that does not fit outwards
	failed  *Vector
}

// NewTable returns an empty table.
func NewTable(s *Schema) *Table {
	t := &Table{schema: s, root: newRecord(s.columns, s.index)}
	for _, c := range t.root.cols {
		t.fixed += c.fixed()
		if c.varies() {
			t.varying = append(t.varying, c)
		}
	}
	return t
}

// Schema returns the table's schema.
func (t *Table) Schema() *Schema { return t.schema }

// Len returns the number of rows.
func (t *Table) Len() int { return t.n }

// Bytes returns the size of the rows in memory.
func (t *Table) Bytes() int64 {
	size := int64(t.n) * t.fixed
	for _, c := range t.varying {
		size += c.extra(0, t.n)
	}
	return size
}

// RowBytes returns the size of row i in memory.
func (t *Table) RowBytes(i int) int64 {
	size := t.fixed
	for _, c := range t.varying {
		if c.store == inData {
			size += int64(c.Ends[i+1] - c.Ends[i])
			continue
		}
		size += c.extra(i, i+1)
	}
	return size
}

// Column returns column i.
func (t *Table) Column(i int) *Vector { return t.root.cols[i] }

// Reset forgets all rows and keeps the memory.
func (t *Table) Reset() { t.Truncate(0) }

// Truncate forgets all rows from the n-th on.
func (t *Table) Truncate(n int) {
	if n >= t.n {
		return
	}
	t.n = n
	for _, c := range t.varying {
		c.truncate(n)
	}
}

func (t *Table) grow(least int) {
	t.cap = max(64, t.cap*2, least)
	for _, c := range t.root.cols {
		c.grow(t.cap)
	}
}

// Append adds the row that a JSON object or, by its first byte, a binary row stands for. An error is a *sink.Misfit, and the
// table is as before.
func (t *Table) Append(row []byte) error {
	if t.n == t.cap {
		t.grow(0)
	}
	if len(row) > 0 && row[0] == abi.RowsVersion {
		if fail := t.binaryRow(row); fail.code != fits {
			return t.binaryMisfit(fail)
		}
	} else if fail := t.parse(row); fail.code != fits {
		return t.misfit(row, fail)
	}
	t.n++
	return nil
}

// Extend adds n rows, column by column: fill sets slots from..from+n of each column, in order, and those of its children.
// After an error of fill the table is as before.
func (t *Table) Extend(n int, fill func(column int, v *Vector, from int) error) error {
	if t.n+n > t.cap {
		t.grow(t.n + n)
	}
	for i, c := range t.root.cols {
		if err := fill(i, c, t.n); err != nil {
			return fmt.Errorf("column %s: %w", t.schema.columns[i].Name, err)
		}
	}
	t.n += n
	return nil
}
