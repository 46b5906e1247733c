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
}

// bounds are the keys of one partition.
type bounds struct {
	low, high []rows.Value // by key column
	sorted    []rows.Value // of the first column that is not of the partition
}

func newFinder(c *changes, schema *rows.Schema, partition []string) *finder {
	f := &finder{groups: map[string]*bounds{}}
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

// may reports whether a file may hold a row of one of the keys.
func (f *finder) may(a *delta.Add) bool {
	var key []byte
	for _, i := range f.partition {
		v, err := delta.PartitionValue(f.types[i], a.PartitionValues[f.names[i]])
		if err != nil {
			return true
		}
		if v.Null {
			return false // no key has a null
		}
		key = appendValue(key, f.types[i], v)
	}
	g := f.groups[string(key)]
	if g == nil {
		return false
	}
	return g.overlap(f, a.Stats)
}

// fileStats is what the statistics of a file say. Numbers stay as they are written.
type fileStats struct {
	Min map[string]json.RawMessage `json:"minValues"`
	Max map[string]json.RawMessage `json:"maxValues"`
}

func (g *bounds) overlap(f *finder, stats string) bool {
	var s fileStats
	if stats == "" || json.Unmarshal([]byte(stats), &s) != nil {
		return true
	}
	for n, i := range f.others {
		low, haveLow := bound(f.types[i], s.Min[f.names[i]])
		high, haveHigh := bound(f.types[i], s.Max[f.names[i]])
		if haveHigh && f.types[i].Kind == rows.Timestamp {
			high.Int += 999 // bounds are cut to milliseconds
		}
		typ := f.types[i]
		if haveHigh && compare(typ, g.low[i], high) > 0 || haveLow && compare(typ, g.high[i], low) < 0 {
			return false
		}
		if n > 0 || !haveLow || !haveHigh {
			continue
		}
		at, _ := slices.BinarySearchFunc(g.sorted, low, func(a, b rows.Value) int { return compare(typ, a, b) })
		if at == len(g.sorted) || compare(typ, g.sorted[at], high) > 0 {
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
