package parquetfile_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// TestBoundsHold reads the statistics and the page index of files with many pages, some of nulls only, and compares them
// with the values: a reader that skips what lies outside of them must find every row.
func TestBoundsHold(t *testing.T) {
	s := rowstest.SchemaOf(t, "top", "string", "topRaw", "binary", "long", "string", "few", "string", "wide", "decimal(38,2)", "narrow", "decimal(19,0)",
		"l", "int64", "d", "double", "f", "float", "t", "timestamp", "day", "date", "c", "decimal(9,2)", "b", "boolean")
	tab := boundsTable(t, s)
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.Zstd), &out, []parquetfile.Rows{{Table: tab}})
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for c, chunk := range f.RowGroups()[0].ColumnChunks() {
		name := s.Column(c).Name
		index, err := chunk.ColumnIndex()
		if err != nil {
			t.Fatal(err)
		}
		st := f.Metadata().RowGroups[0].Columns[c].MetaData.Statistics
		most := 64
		if strings.HasPrefix(name, "top") {
			most = 80 // nothing shorter is above these values
		}
		if len(st.MinValue) == 0 || len(st.MinValue) > most || len(st.MaxValue) == 0 || len(st.MaxValue) > most {
			t.Errorf("%s has bounds of %d and %d bytes", name, len(st.MinValue), len(st.MaxValue))
		}
		kind := chunk.Type().Kind()
		all := span{kind.Value(st.MinValue), kind.Value(st.MaxValue)}
		at := 0
		pages := readPages(t, chunk)
		if len(pages) != index.NumPages() || len(pages) < 2 && kind != parquet.Boolean {
			t.Errorf("%s has %d pages, the index %d", name, len(pages), index.NumPages())
		}
		for p, values := range pages {
			one := span{index.MinValue(p), index.MaxValue(p)}
			present := 0
			for _, v := range values {
				at++
				if v.IsNull() {
					continue
				}
				present++
				if !isNaN(v) && (!all.holds(v) || !isNaN(one.lo) && !one.holds(v)) {
					t.Fatalf("%s, row %d: %v is outside of page %v or chunk %v", name, at-1, v, one, all)
				}
			}
			if index.NullPage(p) != (present == 0) {
				t.Errorf("%s, page %d: %d values, taken for nulls only: %v", name, p, present, index.NullPage(p))
			}
		}
		if at != tab.Len() {
			t.Errorf("%s: %d of %d rows", name, at, tab.Len())
		}
		if (s.Column(c).Type.Precision > 18) && (index.IsAscending() || index.IsDescending()) {
			t.Errorf("the pages of %s are said to be in order", name)
		}
	}
}

// boundsTable has three parts: values, nulls only, other values.
func boundsTable(t *testing.T, s *rows.Schema) *rows.Table {
	r := rand.New(rand.NewPCG(21, 22))
	tab := rows.NewTable(s)
	for i := range 180_000 {
		row := "{}"
		if i < 60_000 || i >= 120_000 {
			sign := []string{"", "-"}[r.IntN(2)]
			d := fmt.Sprint(r.NormFloat64())
			if i < 60_000 {
				d = `"NaN"`
			}
			text := fmt.Sprintf("%s%d", strings.Repeat("\U0010ffff", r.IntN(3)*9), r.IntN(1000))
			row = fmt.Sprintf(`{"top":"%s","topRaw":"%s%c%cA=","long":"%030d%090d","few":"v%d","wide":%s%d%018d.5,"narrow":%s%d,"l":%d,"d":%s,"f":%s,`+
				`"t":"19%02d-01-01T00:00:00Z","day":"20%02d-01-01","c":%s%d.25,"b":%v}`,
				text, strings.Repeat("////", r.IntN(2)*25), 'A'+rune(r.IntN(26)), "AQgw"[r.IntN(4)], r.IntN(1000), r.Uint64(), r.IntN(50), sign, 1+r.Uint64N(1e17), r.Uint64N(1e18), sign, r.Uint64N(1e18),
				int64(r.Uint64()), d, d, r.IntN(100), r.IntN(100), sign, r.IntN(1e6), r.IntN(2) == 0)
		}
		if err := tab.Append([]byte(row)); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	return tab
}

type span struct{ lo, hi parquet.Value }

func (s span) holds(v parquet.Value) bool { return compare(s.lo, v) <= 0 && compare(v, s.hi) <= 0 }

// compare orders values as the format demands, by other means than the library.
func compare(a, b parquet.Value) int {
	switch a.Kind() {
	case parquet.ByteArray:
		return bytes.Compare(a.ByteArray(), b.ByteArray())
	case parquet.Boolean:
		return compareFloats(map[bool]float64{true: 1}[a.Boolean()], map[bool]float64{true: 1}[b.Boolean()])
	case parquet.Float:
		return compareFloats(float64(a.Float()), float64(b.Float()))
	case parquet.Double:
		return compareFloats(a.Double(), b.Double())
	}
	return unscaled(a).Cmp(unscaled(b))
}

func compareFloats(a, b float64) int { return big.NewFloat(a).Cmp(big.NewFloat(b)) }

func isNaN(v parquet.Value) bool {
	return v.Kind() == parquet.Double && math.IsNaN(v.Double()) || v.Kind() == parquet.Float && math.IsNaN(float64(v.Float()))
}

// TestNoBoundsOfNaN: a column of nothing but NaN has no statistics but the nulls.
func TestNoBoundsOfNaN(t *testing.T) {
	s := rowstest.SchemaOf(t, "d", "double", "f", "float")
	tab := fill(t, s, `{"d":"NaN","f":"NaN"}`, `{}`, `{"d":"NaN","f":"NaN"}`)
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.Zstd), &out, []parquetfile.Rows{{Table: tab}})
	for i, c := range metadata(t, out.Bytes()).RowGroups[0].Columns {
		if st := c.MetaData.Statistics; st.MinValue != nil || st.MaxValue != nil || st.NullCount != 1 {
			t.Errorf("%s: %d nulls, %x to %x", s.Column(i).Name, st.NullCount, st.MinValue, st.MaxValue)
		}
	}
}

// TestADictionaryThatGrowsIsGivenUp has few words first and many later.
func TestADictionaryThatGrowsIsGivenUp(t *testing.T) {
	s := rowstest.SchemaOf(t, "s", "string")
	tab := rows.NewTable(s)
	for i := range 120_000 {
		if err := tab.Append(fmt.Appendf(nil, `{"s":"%040d"}`, max(0, i-5000))); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w := newWriter(t, s, parquetfile.Zstd)
	for range 2 {
		out.Reset()
		encode(t, w, &out, []parquetfile.Rows{{Table: tab}})
	}
	compareFile(t, out.Bytes(), []parquetfile.Rows{{Table: tab}}, nil)
	pages := map[string]int32{}
	for _, e := range metadata(t, out.Bytes()).RowGroups[0].Columns[0].MetaData.EncodingStats {
		pages[fmt.Sprint(e.PageType, " ", e.Encoding)] += e.Count
	}
	if pages["DATA_PAGE RLE_DICTIONARY"] == 0 || pages["DATA_PAGE PLAIN"] == 0 {
		t.Errorf("pages: %v", pages)
	}
}

// TestNamesOfColumns: any name a schema takes is written as it is, and in its place.
func TestNamesOfColumns(t *testing.T) {
	s := rowstest.SchemaOf(t, "z", "int32", "a,b", "string", "a.b", "int32", "ü 🚂", "string", `"`, "int32", "-", "int32", "A", "int32")
	tab := fill(t, s, `{"z":1,"a,b":"x","a.b":2,"ü 🚂":"y","\"":3,"-":4,"A":5}`, `{}`)
	var out bytes.Buffer
	w := newWriter(t, s, parquetfile.Snappy)
	for range 2 {
		out.Reset()
		encode(t, w, &out, []parquetfile.Rows{{Table: tab}})
		compareFile(t, out.Bytes(), []parquetfile.Rows{{Table: tab}}, nil)
	}
	for i, c := range metadata(t, out.Bytes()).RowGroups[0].Columns {
		if got := c.MetaData.PathInSchema; len(got) != 1 || got[0] != s.Column(i).Name {
			t.Errorf("the chunk of %q is named %q", s.Column(i).Name, got)
		}
	}
}

// TestPagesOfLongValues: pages stay near their bound where few values fill them.
func TestPagesOfLongValues(t *testing.T) {
	s := rowstest.SchemaOf(t, "s", "string")
	tab := rows.NewTable(s)
	for i := range 200 {
		if err := tab.Append(fmt.Appendf(nil, `{"s":"%0*d"}`, 100_000, i)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.Snappy), &out, []parquetfile.Rows{{Table: tab}})
	compareFile(t, out.Bytes(), []parquetfile.Rows{{Table: tab}}, nil)
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range readPages(t, f.RowGroups()[0].ColumnChunks()[0]) {
		if len(p) > 6 {
			t.Errorf("a page of %d values", len(p))
		}
	}
}
