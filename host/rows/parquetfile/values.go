package parquetfile

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
)

// Values are handed over in pieces of so many rows; a piece of strings also ends at so many bytes, as the library ends pages
// between pieces only.
const (
	pieceRows  = 1024
	pieceBytes = 256 << 10
)

// values are the buffers between tables and the library.
type values struct {
	index []uint32
	out   []parquet.Value
	wide  []byte
	bytes int  // of the strings in out, where a leaf is nested
	nan   bool // one was seen
	def   int  // the definition level of a value that is there
}

// write hands a leaf's values over and returns how many rows the library took. Its last page ends with them.
func (b *values) write(to *parquet.ColumnWriter, from []Rows, leaf *leafColumn) (int, error) {
	defer func() { clear(b.out) }() // they point into the tables
	b.nan, b.def = false, leaf.deepest
	var written int
	var err error
	if leaf.flat {
		written, err = b.writeFlat(to, from, leaf.path[0])
	} else {
		written, err = b.writeNested(to, from, leaf)
	}
	if err != nil {
		return written, err
	}
	return written, to.Flush() // a column that waits for the others would keep its buffers
}

func (b *values) writeFlat(to *parquet.ColumnWriter, from []Rows, col int) (written int, err error) {
	for _, r := range from {
		v := r.Table.Column(col)
		for at := 0; at < r.Len(); at += len(b.index) {
			b.next(v, r, at)
			b.fill(v)
			n, err := to.WriteRowValues(b.out)
			written += n
			if err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// writeNested ends pieces between rows, as pages end there.
func (b *values) writeNested(to *parquet.ColumnWriter, from []Rows, leaf *leafColumn) (written int, err error) {
	flush := func() error {
		n, err := to.WriteRowValues(b.out)
		written += n
		clear(b.out)
		b.out, b.wide, b.bytes = b.out[:0], b.wide[:0], 0
		return err
	}
	b.out, b.wide, b.bytes = b.out[:0], b.wide[:0], 0
	w := walker{path: leaf.path, visit: b.visit}
	for _, r := range from {
		for k := range r.Len() {
			w.row(r.Table, r.row(k))
			if len(b.out) < pieceRows && b.bytes < pieceBytes {
				continue
			}
			if err := flush(); err != nil {
				return written, err
			}
		}
	}
	if len(b.out) == 0 {
		return written, nil
	}
	return written, flush()
}

func (b *values) visit(v *rows.Vector, slot, rep, def int) {
	var x parquet.Value
	if slot >= 0 {
		x = b.value(v, slot)
	}
	b.out = append(b.out, x.Level(rep, def, 0))
}

// value is one value of a leaf.
func (b *values) value(v *rows.Vector, i int) parquet.Value {
	switch {
	case v.Ends != nil:
		text := v.Bytes(i)
		b.bytes += len(text)
		return parquet.ByteArrayValue(text)
	case v.I64 != nil:
		return parquet.Int64Value(v.I64[i])
	case v.I32 != nil:
		return parquet.Int32Value(v.I32[i])
	case v.F64 != nil:
		b.nan = b.nan || v.F64[i] != v.F64[i]
		return parquet.DoubleValue(v.F64[i])
	case v.F32 != nil:
		b.nan = b.nan || v.F32[i] != v.F32[i]
		return parquet.FloatValue(v.F32[i])
	case v.Wide != nil:
		return b.wideValue(v, i)
	}
	return parquet.BooleanValue(v.Bools[i] != 0)
}

// next takes the rows of the next piece.
func (b *values) next(v *rows.Vector, r Rows, at int) {
	n := min(pieceRows, r.Len()-at)
	if r.Index != nil {
		b.index = append(b.index[:0], r.Index[at:at+n]...)
	} else {
		b.index = b.index[:0]
		for i := at; i < at+n; i++ {
			b.index = append(b.index, uint32(i))
		}
	}
	if v.Ends == nil {
		return
	}
	size := 0
	for k, i := range b.index {
		if size += int(v.Ends[i+1] - v.Ends[i]); size > pieceBytes && k > 0 {
			b.index = b.index[:k]
			return
		}
	}
}

// fill makes the piece's values. Each loop stands for itself, as the library's constructors are cheap only where they are
// inlined.
func (b *values) fill(v *rows.Vector) {
	b.out = slices.Grow(b.out[:0], len(b.index))[:len(b.index)]
	out := b.out
	switch {
	case v.Ends != nil:
		for k, i := range b.index {
			out[k] = parquet.ByteArrayValue(v.Data[v.Ends[i]:v.Ends[i+1]])
		}
	case v.I64 != nil:
		for k, i := range b.index {
			out[k] = parquet.Int64Value(v.I64[i])
		}
	case v.I32 != nil:
		for k, i := range b.index {
			out[k] = parquet.Int32Value(v.I32[i])
		}
	case v.F64 != nil:
		for k, i := range b.index {
			f := v.F64[i]
			if f != f && v.Valid[i] != 0 {
				b.nan = true
			}
			out[k] = parquet.DoubleValue(f)
		}
	case v.F32 != nil:
		for k, i := range b.index {
			f := v.F32[i]
			if f != f && v.Valid[i] != 0 {
				b.nan = true
			}
			out[k] = parquet.FloatValue(f)
		}
	case v.Wide != nil:
		b.fillWide(v)
	default:
		for k, i := range b.index {
			out[k] = parquet.BooleanValue(v.Bools[i] != 0)
		}
	}
	if b.def == 0 {
		return
	}
	for k, i := range b.index {
		if v.Valid[i] == 0 {
			out[k] = parquet.Value{}
		} else {
			out[k].SetDefinitionLevel(1)
		}
	}
}

// fillWide writes decimals as wideValue does.
func (b *values) fillWide(v *rows.Vector) {
	b.wide = slices.Grow(b.wide[:0], 16*len(b.index))
	for k, i := range b.index {
		b.out[k] = b.wideValue(v, int(i))
	}
}

// wideValue writes a decimal as big-endian two's complement of the fewest bytes that hold the precision.
func (b *values) wideValue(v *rows.Vector, i int) parquet.Value {
	b.wide = binary.BigEndian.AppendUint64(b.wide, uint64(v.Wide[i].Hi))
	b.wide = binary.BigEndian.AppendUint64(b.wide, v.Wide[i].Lo)
	return parquet.FixedLenByteArrayValue(b.wide[len(b.wide)-wideSize(v.Type.Precision):])
}
