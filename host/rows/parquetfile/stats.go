package parquetfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
)

// Stats tells what a file holds.
type Stats struct {
	Rows int64
	// Columns are the file's columns in order, with structs opened: values, lists and maps.
	Columns []ColumnStats
}

// ColumnStats tells what a column holds.
type ColumnStats struct {
	Path  []string // the column, then the fields of structs
	Type  rows.Type
	Nulls int64 // the rows in which it is null, itself or by a struct around it
	// Bounded says that Min and Max hold the least and the greatest value. There are none of lists and maps, of nothing but
	// nulls, and where there is a NaN.
	Bounded  bool
	Min, Max rows.Value
	// MinCut and MaxCut say of a string or binary that the bound need not be a value: it is at most 64 bytes long, or longer
	// where nothing shorter is above all values, and below or above them.
	MinCut, MaxCut bool
}

// Stats returns the statistics of the file that was closed last.
func (w *Writer) Stats() *Stats { return w.stats }

// counts holds what the file's own statistics do not tell.
type counts struct {
	rows  int64
	nulls []int64 // of the lists and maps among the columns with statistics
	nan   []bool  // which leaves have seen one
}

func (c *counts) reset(p *plan) {
	c.rows = 0
	c.nulls = append(c.nulls[:0], make([]int64, len(p.stats))...)
	c.nan = append(c.nan[:0], make([]bool, len(p.leaves))...)
}

// add counts rows that were written.
func (c *counts) add(p *plan, from []Rows, total int) {
	c.rows += int64(total)
	for i := range p.stats {
		if p.stats[i].leaf >= 0 {
			continue
		}
		for _, r := range from {
			for k := range r.Len() {
				if isNull(r.Table, p.stats[i].path, r.row(k)) {
					c.nulls[i]++
				}
			}
		}
	}
}

// isNull reports whether a column or field is null, itself or by a struct around it.
func isNull(t *rows.Table, path []int, row int) bool {
	v := t.Column(path[0])
	for _, i := range path[1:] {
		if v.Valid[row] == 0 {
			return true
		}
		v = v.Children[i]
	}
	return v.Valid[row] == 0
}

// collect makes the statistics of a file from its footer.
func (c *counts) collect(p *plan, groups []format.RowGroup) *Stats {
	s := &Stats{Rows: c.rows, Columns: make([]ColumnStats, len(p.stats))}
	for i := range p.stats {
		from := &p.stats[i]
		out := &s.Columns[i]
		out.Path, out.Type, out.Nulls = from.names, from.typ, c.nulls[i]
		if from.leaf < 0 {
			continue
		}
		for g := range groups {
			out.merge(&groups[g].Columns[from.leaf].MetaData)
		}
		out.Bounded = out.Bounded && !c.nan[from.leaf]
		if !out.Bounded {
			out.Min, out.Max = rows.Value{}, rows.Value{}
			continue
		}
		if k := from.typ.Kind; k == rows.String || k == rows.Binary {
			out.MinCut, out.MaxCut = maybeCut(out.Min), maybeCut(out.Max)
		}
	}
	return s
}

// maybeCut tells from its length that a bound may have been cut.
func maybeCut(v rows.Value) bool { return len(v.Bytes) >= maxBound-utf8.UTFMax }

func (s *ColumnStats) merge(m *format.ColumnMetaData) {
	st := &m.Statistics
	s.Nulls += st.NullCount
	if st.NullCount == m.NumValues {
		return
	}
	lo, ok1 := boundOf(s.Type, st.MinValue)
	hi, ok2 := boundOf(s.Type, st.MaxValue)
	if !ok1 || !ok2 {
		return
	}
	if !s.Bounded || compareBounds(s.Type, lo, s.Min) < 0 {
		s.Min = lo
	}
	if !s.Bounded || compareBounds(s.Type, hi, s.Max) > 0 {
		s.Max = hi
	}
	s.Bounded = true
}

// boundOf reads a bound of the footer, in PLAIN encoding.
func boundOf(t rows.Type, b []byte) (v rows.Value, ok bool) {
	switch t.Kind {
	case rows.String, rows.Binary:
		return rows.Value{Bytes: slices.Clone(b)}, true
	case rows.Decimal:
		if t.Precision > 18 {
			return rows.Value{Wide: bigEndian(b)}, len(b) > 0
		}
	}
	switch len(b) {
	case 1:
		return rows.Value{Int: int64(b[0])}, true
	case 4:
		x := binary.LittleEndian.Uint32(b)
		if t.Kind == rows.Float {
			return rows.Value{Float: float64(math.Float32frombits(x))}, true
		}
		return intValue(t, int64(int32(x))), true
	case 8:
		x := binary.LittleEndian.Uint64(b)
		if t.Kind == rows.Double {
			return rows.Value{Float: math.Float64frombits(x)}, true
		}
		return intValue(t, int64(x)), true
	}
	return v, false
}

func intValue(t rows.Type, x int64) rows.Value {
	if t.Kind == rows.Decimal {
		return rows.Value{Wide: rows.Int128{Hi: x >> 63, Lo: uint64(x)}}
	}
	return rows.Value{Int: x}
}

// bigEndian reads a number of at most 16 bytes in two's complement.
func bigEndian(b []byte) (x rows.Int128) {
	if len(b) > 0 && b[0] >= 0x80 {
		x = rows.Int128{Hi: -1, Lo: math.MaxUint64}
	}
	for _, c := range b {
		x.Hi = x.Hi<<8 | int64(x.Lo>>56)
		x.Lo = x.Lo<<8 | uint64(c)
	}
	return x
}

func compareBounds(t rows.Type, a, b rows.Value) int {
	switch t.Kind {
	case rows.String, rows.Binary:
		return bytes.Compare(a.Bytes, b.Bytes)
	case rows.Float, rows.Double:
		return cmp.Compare(a.Float, b.Float)
	case rows.Decimal:
		return cmp.Or(cmp.Compare(a.Wide.Hi, b.Wide.Hi), cmp.Compare(a.Wide.Lo, b.Wide.Lo))
	}
	return cmp.Compare(a.Int, b.Int)
}
