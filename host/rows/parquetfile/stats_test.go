package parquetfile_test

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// TestStatsTellTheTruth compares the statistics of files of any schema with the values, over several row groups.
func TestStatsTellTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rowstest.Schema(t, 2)
		w, err := parquetfile.New(s, parquetfile.Options{Codec: parquetfile.None, CreatedBy: "wasmill version test"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Reset(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		var tables []*rows.Table
		total := 0
		for range rapid.IntRange(0, 3).Draw(t, "row groups") {
			tab, _ := rowstest.Table(t, s, rapid.IntRange(1, 20).Draw(t, "rows"))
			if err := w.WriteRowGroup([]parquetfile.Rows{{Table: tab}}); err != nil {
				t.Fatal(err)
			}
			tables = append(tables, tab)
			total += tab.Len()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		st := w.Stats()
		if st.Rows != int64(total) {
			t.Fatalf("%d rows, want %d", st.Rows, total)
		}
		for i := range st.Columns {
			checkStats(t, s, tables, &st.Columns[i])
		}
		if n := columnsOf(s.Columns()); len(st.Columns) != n {
			t.Fatalf("%d columns with statistics, want %d", len(st.Columns), n)
		}
	})
}

func columnsOf(columns []rows.Column) int {
	n := 0
	for _, c := range columns {
		if c.Type.Kind == rows.Struct {
			n += columnsOf(c.Type.Fields)
		} else {
			n++
		}
	}
	return n
}

func checkStats(t *rapid.T, s *rows.Schema, tables []*rows.Table, c *parquetfile.ColumnStats) {
	var nulls int64
	var values []rows.Value
	for _, tab := range tables {
		for row := range tab.Len() {
			v, ok := at(tab, s, c.Path, row)
			switch {
			case !ok:
				nulls++
			case !v.Type.Kind.Nested():
				values = append(values, v.Value(row))
			}
		}
	}
	if c.Nulls != nulls {
		t.Fatalf("%v has %d nulls, want %d", c.Path, c.Nulls, nulls)
	}
	bounded := len(values) > 0 && !slices.ContainsFunc(values, func(v rows.Value) bool { return math.IsNaN(v.Float) })
	if c.Bounded != bounded {
		t.Fatalf("%v %s: bounds %v, want %v for %d values", c.Path, c.Type, c.Bounded, bounded, len(values))
	}
	if !bounded {
		return
	}
	least, most := slices.MinFunc(values, compareValues), slices.MaxFunc(values, compareValues)
	if a := compareValues(c.Min, least); a > 0 || a < 0 && !c.MinCut {
		t.Fatalf("%v %s: the least is %v, want %v", c.Path, c.Type, c.Min, least)
	}
	if a := compareValues(c.Max, most); a < 0 || a > 0 && !c.MaxCut {
		t.Fatalf("%v %s: the greatest is %v, want %v", c.Path, c.Type, c.Max, most)
	}
}

// at returns the vector of a column or field, and whether it has a value in a row.
func at(tab *rows.Table, s *rows.Schema, path []string, row int) (*rows.Vector, bool) {
	v := tab.Column(s.Index(path[0]))
	for _, name := range path[1:] {
		if v.Valid[row] == 0 {
			return v, false
		}
		v = v.Children[slices.IndexFunc(v.Type.Fields, func(c rows.Column) bool { return c.Name == name })]
	}
	return v, v.Valid[row] != 0
}

// compareValues orders two values of one type: only one member differs.
func compareValues(a, b rows.Value) int {
	return cmp.Or(cmp.Compare(a.Int, b.Int), cmp.Compare(a.Float, b.Float), cmp.Compare(a.Wide.Hi, b.Wide.Hi), cmp.Compare(a.Wide.Lo, b.Wide.Lo), bytes.Compare(a.Bytes, b.Bytes))
}

func TestStatsOfLongTexts(t *testing.T) {
	s := rowstest.SchemaOf(t, "s", "string", "b", "binary", "n", "struct<t: string>")
	long := strings.Repeat("é", 100)
	tab := fill(t, s, `{"s":"`+long+`","b":"////","n":{"t":""}}`, `{"s":"z`+long+`","n":{}}`)
	w := newWriter(t, s, parquetfile.None)
	encode(t, w, &bytes.Buffer{}, []parquetfile.Rows{{Table: tab}})
	c := w.Stats().Columns
	if !c[0].MinCut || !c[0].MaxCut || len(c[0].Min.Bytes) > 64 || len(c[0].Max.Bytes) > 64 ||
		string(c[0].Min.Bytes) > "z"+long || string(c[0].Max.Bytes) <= long {
		t.Errorf("%+v", c[0])
	}
	if c[1].MinCut || c[1].MaxCut || string(c[1].Max.Bytes) != "\xff\xff\xff" {
		t.Errorf("%+v", c[1])
	}
	if !c[2].Bounded || len(c[2].Min.Bytes) != 0 || c[2].Nulls != 1 || strings.Join(c[2].Path, "/") != "n/t" {
		t.Errorf("%+v", c[2])
	}
	if err := errors.Join(w.Reset(&bytes.Buffer{}), w.Close()); err != nil {
		t.Fatal(err)
	}
	if st := w.Stats(); st.Rows != 0 || st.Columns[0].Bounded || st.Columns[0].Nulls != 0 {
		t.Errorf("of an empty file: %+v", st)
	}
}
