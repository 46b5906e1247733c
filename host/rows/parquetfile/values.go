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
}

// write hands a column's rows over and returns how many the library took. Its last page ends with them.
func (b *values) write(to *parquet.ColumnWriter, from []Rows, col int) (int, error) {
	defer func() { clear(b.out) }() // they point into the tables
	written := 0
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
	return written, to.Flush() // a column that waits for the others would keep its buffers
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
			out[k] = parquet.DoubleValue(v.F64[i])
		}
	case v.F32 != nil:
		for k, i := range b.index {
			out[k] = parquet.FloatValue(v.F32[i])
		}
	case v.Wide != nil:
		b.fillWide(v)
	default:
		for k, i := range b.index {
			out[k] = parquet.BooleanValue(v.Bools[i] != 0)
		}
	}
	for k, i := range b.index {
		if v.Valid[i] == 0 {
			out[k] = parquet.Value{}
		} else {
			out[k].SetDefinitionLevel(1)
		}
	}
}

// fillWide writes decimals as big-endian two's complement of the fewest bytes that hold the precision.
func (b *values) fillWide(v *rows.Vector) {
	b.wide = slices.Grow(b.wide[:0], 16*len(b.index))
	size := wideSize(v.Type.Precision)
	for k, i := range b.index {
		b.wide = binary.BigEndian.AppendUint64(b.wide, uint64(v.Wide[i].Hi))
		b.wide = binary.BigEndian.AppendUint64(b.wide, v.Wide[i].Lo)
		b.out[k] = parquet.FixedLenByteArrayValue(b.wide[len(b.wide)-size:])
	}
}
