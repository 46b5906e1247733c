package parquetfile_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// allTypes is a schema with a column of each type and physical form.
func allTypes(tb testing.TB) *rows.Schema {
	return rowstest.SchemaOf(tb, "s", "string", "low", "string", "b", "boolean", "i", "int32", "l", "int64", "f", "float", "d", "double",
		"d5", "decimal(5,2)", "d15", "decimal(15,3)", "d38", "decimal(38,10)", "t", "timestamp", "day", "date", "x", "binary")
}

func randomObject(r *rand.Rand, nulls float64) []byte {
	var b bytes.Buffer
	field := func(name, format string, args ...any) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		if r.Float64() < nulls {
			fmt.Fprintf(&b, "%q:null", name)
			return
		}
		fmt.Fprintf(&b, "%q:"+format, append([]any{name}, args...)...)
	}
	b.WriteByte('{')
	field("s", `"row-%d"`, r.Uint64())
	field("low", `"v%d"`, r.IntN(5))
	field("b", "%v", r.IntN(2) == 0)
	field("i", "%d", int32(r.Uint32()))
	field("l", "%d", int64(r.Uint64()))
	field("f", "%v", r.Float32())
	field("d", "%v", r.NormFloat64())
	field("d5", "%d.%02d", r.IntN(1999)-999, r.IntN(100))
	field("d15", "%d.%03d", r.Int64N(1e12), r.IntN(1000))
	field("d38", "-%d%09d.5", r.Uint64N(1e18), r.Int64N(1e9))
	field("t", `"2%03d-0%d-1%dT0%d:59:01.%06dZ"`, r.IntN(1000), 1+r.IntN(9), r.IntN(10), r.IntN(10), r.IntN(1e6))
	field("day", `"19%02d-02-2%d"`, r.IntN(100), r.IntN(9))
	field("x", `"AAE%c"`, 'A'+rune(r.IntN(4))*4)
	b.WriteByte('}')
	return b.Bytes()
}

func randomTable(tb testing.TB, s *rows.Schema, r *rand.Rand, n int, nulls float64) *rows.Table {
	tb.Helper()
	t := rows.NewTable(s)
	for range n {
		o := randomObject(r, nulls)
		if err := t.Append(o); err != nil {
			tb.Fatalf("%s: %v", o, err)
		}
	}
	return t
}

func TestParquetGoReadsEveryType(t *testing.T) {
	schema := allTypes(t)
	for _, codec := range []parquetfile.Codec{parquetfile.None, parquetfile.Snappy, parquetfile.Gzip, parquetfile.Zstd} {
		w, err := parquetfile.New(schema, parquetfile.Options{Codec: codec, CreatedBy: "wasmill version test"})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 7, 8, 9, 1000, 3000, 70_000} {
			for _, nulls := range []float64{0, 0.3, 1} {
				if n == 70_000 && (codec != parquetfile.Zstd || nulls == 1) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%v", codec, n, nulls), func(t *testing.T) {
					tab := randomTable(t, schema, rand.New(rand.NewPCG(1, uint64(n))), n, nulls)
					var out bytes.Buffer
					encode(t, w, &out, []parquetfile.Rows{{Table: tab}})
					compareFile(t, out.Bytes(), []parquetfile.Rows{{Table: tab}}, nil)
				})
			}
		}
	}
}

// compareFile reads a file with parquet-go and compares all values with the tables'.
func compareFile(t *testing.T, file []byte, from []parquetfile.Rows, skip map[string]bool) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	schema := from[0].Table.Schema()
	leaf := 0
	for c := range schema.Len() {
		name := schema.Column(c).Name
		if skip[name] {
			continue
		}
		if got := f.Schema().Columns()[leaf][0]; got != name {
			t.Fatalf("column %d is %s, want %s", leaf, got, name)
		}
		got := readColumn(t, f, leaf)
		var want []string
		for _, r := range from {
			v := r.Table.Column(c)
			for k := range r.Len() {
				i := k
				if r.Index != nil {
					i = int(r.Index[k])
				}
				want = append(want, text(v, i))
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
		}
		for i := range got {
			if g := valueText(got[i], schema.Column(c).Type); g != want[i] {
				t.Fatalf("%s, row %d: %q, want %q", name, i, g, want[i])
			}
		}
		leaf++
	}
}

func text(v *rows.Vector, i int) string {
	if v.Valid[i] == 0 {
		return "null"
	}
	return string(v.AppendText(nil, i))
}

func valueText(v parquet.Value, t rows.Type) string {
	if v.IsNull() {
		return "null"
	}
	return reText(v, t)
}

func readColumn(t *testing.T, f *parquet.File, leaf int) []parquet.Value {
	t.Helper()
	var all []parquet.Value
	for _, g := range f.RowGroups() {
		for _, p := range readPages(t, g.ColumnChunks()[leaf]) {
			all = append(all, p...)
		}
	}
	return all
}

// readPages returns the values of a chunk by page.
func readPages(t *testing.T, chunk parquet.ColumnChunk) [][]parquet.Value {
	t.Helper()
	var all [][]parquet.Value
	pages := chunk.Pages()
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		values := make([]parquet.Value, p.NumValues())
		if n, err := p.Values().ReadValues(values); err != nil && err != io.EOF || n != len(values) {
			t.Fatalf("read %d of %d values: %v", n, len(values), err)
		}
		for i := range values {
			values[i] = values[i].Clone()
		}
		all = append(all, values)
	}
	if err := pages.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}
