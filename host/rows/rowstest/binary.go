package rowstest

import (
	"math"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
)

// Binary returns a row of a table as a binary row. The writer is one of the table's columns.
func Binary(w *abi.RowWriter, t *rows.Table, row int) []byte {
	w.Begin()
	for i := range t.Schema().Len() {
		write(w, t.Column(i), row)
	}
	return w.Row()
}

func write(w *abi.RowWriter, v *rows.Vector, i int) {
	if v.Valid[i] == 0 {
		w.Null()
		return
	}
	switch v.Type.Kind {
	case rows.String, rows.Binary:
		w.Bytes(v.Bytes(i))
	case rows.Boolean:
		w.Bool(v.Bools[i] != 0)
	case rows.Int8:
		w.Int8(int8(v.I32[i]))
	case rows.Int16:
		w.Int16(int16(v.I32[i]))
	case rows.Int32, rows.Date:
		w.Bits32(uint32(v.I32[i]))
	case rows.Int64, rows.Timestamp, rows.TimestampNTZ:
		w.Bits64(uint64(v.I64[i]))
	case rows.Float:
		w.Bits32(math.Float32bits(v.F32[i]))
	case rows.Double:
		w.Bits64(math.Float64bits(v.F64[i]))
	case rows.Decimal:
		x := v.Unscaled(i)
		switch {
		case v.Type.Precision <= 9:
			w.Bits32(uint32(x.Lo))
		case v.Type.Precision <= 18:
			w.Bits64(x.Lo)
		default:
			w.Bits128(x.Lo, uint64(x.Hi))
		}
	case rows.Struct:
		w.Present()
		for _, c := range v.Children {
			write(w, c, i)
		}
	case rows.List, rows.Map:
		from, to := v.Span(i)
		w.Length(to - from)
		for k := from; k < to; k++ {
			if v.Type.Kind == rows.Map {
				w.Key(func(w *abi.RowWriter) { write(w, v.Children[0], k) })
			}
			write(w, v.Children[len(v.Children)-1], k)
		}
	}
}
