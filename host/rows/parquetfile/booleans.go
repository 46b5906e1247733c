package parquetfile

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Booleans puts right the booleans of a column that the library reads wrongly, for those who read rows with the library
// itself, in whatever schema a file has.
type Booleans struct {
	column int
	in     *boolReader
	buf    [128]parquet.Value
	at, n  int // what is left in buf
}

// OpenBooleans reads a leaf column of a row group from its first row on. It is nil for a column that the library reads
// right. rep and def are the greatest levels of the column.
func OpenBooleans(in io.ReaderAt, size int64, group *format.RowGroup, column, rep, def int) (*Booleans, error) {
	if column >= len(group.Columns) {
		return nil, errors.New("a row group has fewer columns than the schema")
	}
	m := &group.Columns[column].MetaData
	if m.Type != format.Boolean || !inRuns(m) {
		return nil, nil
	}
	r, err := newBoolReader(in, size, m, &element{rep: rep, def: def})
	if err != nil {
		return nil, err
	}
	return &Booleans{column: column, in: r}, nil
}

// Skip passes over rows.
func (b *Booleans) Skip(rows int64) error {
	for rows >= 0 {
		v, err := b.peek()
		if err != nil {
			return err
		}
		if v.RepetitionLevel() == 0 {
			if rows == 0 {
				return nil
			}
			rows--
		}
		b.at++
	}
	return nil
}

// Amend puts the column's values of the next row in the place of those that the library has read.
func (b *Booleans) Amend(row parquet.Row) error {
	for i := range row {
		if row[i].Column() != b.column {
			continue
		}
		v, err := b.peek()
		if err != nil {
			return err
		}
		if v.RepetitionLevel() != row[i].RepetitionLevel() || v.DefinitionLevel() != row[i].DefinitionLevel() {
			return errors.New("the levels of a page of booleans do not fit its values")
		}
		row[i] = v.Level(v.RepetitionLevel(), v.DefinitionLevel(), b.column)
		b.at++
	}
	return nil
}

// peek returns the next value.
func (b *Booleans) peek() (parquet.Value, error) {
	if b.at == b.n {
		n, err := b.in.read(b.buf[:])
		if err != nil {
			return parquet.Value{}, err
		}
		b.at, b.n = 0, n
		if b.n == 0 {
			return parquet.Value{}, errors.New("a column of booleans has fewer values than the file has rows")
		}
	}
	return b.buf[b.at], nil
}
