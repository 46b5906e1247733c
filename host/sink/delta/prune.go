package delta

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
)

// finder tells which files may hold a row of some keys: by the values of their partition and by the bounds in their
// statistics. What it is not sure of may hold one.
type finder struct {
	types     []rows.Type
	names     []string
	partition []int // of the key's columns, those that are partition columns
	others    []int
	groups    map[string]*bounds // by the values of the partition's columns, as bytes
	known     spans
}

// bounds are the keys of one partition.
type bounds struct {
	low, high []rows.Value // by key column
	sorted    []rows.Value // of the first column that is not of the partition
}

func newFinder(c *changes, schema *rows.Schema, partition []string, known spans) *finder {
	f := &finder{groups: map[string]*bounds{}, known: known}
	for i, col := range c.columns {
		column := schema.Column(col)
		f.types, f.names = append(f.types, column.Type), append(f.names, column.Name)
		if slices.Contains(partition, column.Name) {
			f.partition = append(f.partition, i)
		} else {
			f.others = append(f.others, i)
		}
	}
	values := make([]rows.Value, len(c.columns))
	var key []byte
	for _, ch := range c.order {
		key = key[:0]
		for i := range values {
			values[i] = c.value(ch, i)
		}
		for _, i := range f.partition {
			key = appendValue(key, f.types[i], values[i])
		}
		g := f.groups[string(key)]
		if g == nil {
			g = &bounds{low: slices.Clone(values), high: slices.Clone(values)}
			f.groups[string(key)] = g
		}
		for _, i := range f.others {
			if compare(f.types[i], values[i], g.low[i]) < 0 {
				g.low[i] = values[i]
			}
			if compare(f.types[i], values[i], g.high[i]) > 0 {
				g.high[i] = values[i]
			}
		}
		if len(f.others) > 0 {
			g.sorted = append(g.sorted, values[f.others[0]])
		}
	}
	for _, g := range f.groups {
		if len(f.others) > 0 {
			typ := f.types[f.others[0]]
			slices.SortFunc(g.sorted, func(a, b rows.Value) int { return compare(typ, a, b) })
		}
	}
	return f
}

func appendValue(dst []byte, t rows.Type, v rows.Value) []byte {
	return append(v.AppendText(dst, t), 0)
}

func compare(t rows.Type, a, b rows.Value) int {
	switch t.Kind {
	case rows.String:
		return bytes.Compare(a.Bytes, b.Bytes)
	case rows.Decimal:
		return cmp.Or(cmp.Compare(a.Wide.Hi, b.Wide.Hi), cmp.Compare(a.Wide.Lo, b.Wide.Lo))
	}
	return cmp.Compare(a.Int, b.Int)
}

// span is what a file says of its rows' keys. It is kept from batch to batch, as reading it is most of the work.
type span struct {
	partition string // the values of the partition, as bytes
	none      bool   // the partition has a null, which no key has
	unsure    bool   // nothing is known
	low, high []spanEnd
}

// spanEnd is the least or greatest value of a key's column.
type spanEnd struct {
	value rows.Value
	known bool
}

// spans are those of a table's files.
type spans map[*delta.Add]*span

// keepSpans is how many files beyond twice the table's spans are kept of.
const keepSpans = 1000

// trim forgets all when most are of files that are gone.
func (s spans) trim(files int) {
	if len(s) > 2*files+keepSpans {
		clear(s)
	}
}

func (f *finder) spanOf(a *delta.Add) *span {
	if s := f.known[a]; s != nil {
		return s
	}
	s := f.readSpan(a)
	if f.known != nil {
		f.known[a] = s
	}
	return s
}

// fileStats is what the statistics of a file say. Numbers stay as they are written.
type fileStats struct {
	Min map[string]json.RawMessage `json:"minValues"`
	Max map[string]json.RawMessage `json:"maxValues"`
}

func (f *finder) readSpan(a *delta.Add) *span {
	s := &span{low: make([]spanEnd, len(f.types)), high: make([]spanEnd, len(f.types))}
	var key []byte
	for _, i := range f.partition {
		v, err := delta.PartitionValue(f.types[i], a.PartitionValues[f.names[i]])
		if err != nil {
			s.unsure = true
			return s
		}
		if v.Null {
			s.none = true
			return s
		}
		key = appendValue(key, f.types[i], v)
	}
	s.partition = string(key)
	var stats fileStats
	if a.Stats == "" || json.Unmarshal([]byte(a.Stats), &stats) != nil {
		return s
	}
	for _, i := range f.others {
		s.low[i].value, s.low[i].known = bound(f.types[i], stats.Min[f.names[i]])
		s.high[i].value, s.high[i].known = bound(f.types[i], stats.Max[f.names[i]])
		if k := f.types[i].Kind; k == rows.Timestamp || k == rows.TimestampNTZ {
			s.high[i].value.Int += 999 // bounds are cut to milliseconds
		}
	}
	return s
}

// may reports whether a file may hold a row of one of the keys.
func (f *finder) may(a *delta.Add) bool {
	s := f.spanOf(a)
	if s.unsure || s.none {
		return s.unsure
	}
	g := f.groups[s.partition]
	return g != nil && g.overlap(f, s)
}

func (g *bounds) overlap(f *finder, s *span) bool {
	for n, i := range f.others {
		typ, low, high := f.types[i], s.low[i], s.high[i]
		if high.known && compare(typ, g.low[i], high.value) > 0 || low.known && compare(typ, g.high[i], low.value) < 0 {
			return false
		}
		if n > 0 || !low.known || !high.known {
			continue
		}
		at, _ := slices.BinarySearchFunc(g.sorted, low.value, func(a, b rows.Value) int { return compare(typ, a, b) })
		if at == len(g.sorted) || compare(typ, g.sorted[at], high.value) > 0 {
			return false
		}
	}
	return true
}

// exactDigits is how many digits a decimal keeps in the floating-point numbers that some engines write.
const exactDigits = 15

// bound reads a minimum or maximum. ok is false for what is absent or not to be trusted.
func bound(t rows.Type, raw json.RawMessage) (v rows.Value, ok bool) {
	text := string(raw)
	switch {
	case text == "" || text == "null":
		return v, false
	case t.Kind == rows.Boolean, t.Kind == rows.Decimal && (t.Precision > exactDigits || strings.ContainsAny(text, "eE")):
		return v, false
	case text[0] == '"':
		if json.Unmarshal(raw, &text) != nil {
			return v, false
		}
	}
	if t.Kind == rows.Decimal {
		text = plainDecimal(text, t.Scale)
	}
	v, err := rows.ParseValue(t, []byte(text))
	return v, err == nil && !v.Null
}

// plainDecimal takes trailing zeros off that go beyond the scale: engines write 1 as 1.0.
func plainDecimal(text string, scale int) string {
	point := strings.IndexByte(text, '.')
	if point < 0 {
		return text
	}
	for len(text) > point+1+scale && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return strings.TrimSuffix(text, ".")
}
