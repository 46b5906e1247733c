package rows_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

// TestCopiedRowsAreEqual: rows of any schema go into another table, in any order, with columns left out and moved.
func TestCopiedRowsAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rowstest.Schema(t, 3)
		from, objects := rowstest.Table(t, s, rapid.IntRange(1, 10).Draw(t, "rows"))
		to := rows.NewTable(s)
		var want [][]byte
		for range 2 * len(objects) {
			i := rapid.IntRange(0, len(objects)-1).Draw(t, "row")
			if err := to.AppendRow(from, i, nil); err != nil {
				t.Fatal(err)
			}
			want = append(want, objects[i])
		}
		for i := range want {
			if got := rowstest.JSON(to, i); !bytes.Equal(got, want[i]) {
				t.Fatalf("%s became %s", want[i], got)
			}
		}
	})
}

func TestCopyIntoOtherColumns(t *testing.T) {
	from := rows.NewTable(rowstest.SchemaOf(t, "a", "int8", "b", "float", "c", "decimal(5,2)", "d", "list<int16>", "e", "string", "f", "int32"))
	for _, o := range []string{
		`{"a":-7,"b":0.5,"c":1.25,"d":[1,null],"e":"x","f":9}`, `{}`, `{"d":null}`,
	} {
		if err := from.Append([]byte(o)); err != nil {
			t.Fatal(err)
		}
	}
	to := rows.NewTable(rowstest.SchemaOf(t, "new", "date", "d", "list<int64>", "c", "decimal(30,2)", "b", "double", "a", "int64", "f", "int64"))
	columns := []int{-1, 3, 2, 1, 0, 5}
	for i, want := range []string{
		`{"new":null,"d":[1,null],"c":1.25,"b":0.5,"a":-7,"f":9}`, `{"new":null,"d":null,"c":null,"b":null,"a":null,"f":null}`,
	} {
		if err := to.AppendRow(from, i, columns); err != nil {
			t.Fatal(err)
		}
		if got := string(rowText(to, i)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for name, c := range map[string]struct {
		columns []string
		from    []int
		misfit  string
	}{
		"narrower":      {[]string{"a", "int32"}, []int{-1}, ""},
		"wrong type":    {[]string{"a", "string"}, []int{0}, "cannot"},
		"wrong element": {[]string{"a", "list<int8>"}, []int{3}, "cannot"},
		"wrong scale":   {[]string{"a", "decimal(6,3)"}, []int{2}, "cannot"},
		"wrong count":   {[]string{"a", "int8", "b", "int8"}, nil, "cannot"},
		"null":          {[]string{"a", "int8 not null"}, []int{0}, "a"},
		"no column":     {[]string{"a", "int8 not null"}, []int{-1}, "a"},
		"null element":  {[]string{"a", "list<int16 not null>"}, []int{3}, "a[1]"},
	} {
		to := rows.NewTable(rowstest.SchemaOf(t, c.columns...))
		row := 1
		if name == "null element" {
			row = 0
		}
		err := to.AppendRow(from, row, c.from)
		var m *sink.Misfit
		switch {
		case c.misfit == "" && err != nil, c.misfit == "cannot" && (err == nil || errors.As(err, &m)):
			t.Errorf("%s: %v", name, err)
		case c.misfit != "" && c.misfit != "cannot" && (!errors.As(err, &m) || m.Code != "missing" || m.Column != c.misfit || to.Len() != 0):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestValuesTakeTheirOwnText: what a vector shows is what ParseValue reads, and AppendValues stores it again.
func TestValuesTakeTheirOwnText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rowstest.Schema(t, 0)
		from, objects := rowstest.Table(t, s, 1)
		to := rows.NewTable(s)
		values := make([]rows.Value, s.Len())
		for i := range values {
			v := from.Column(i)
			values[i] = v.Value(0)
			if values[i].Null {
				continue
			}
			text := v.AppendText(nil, 0)
			parsed, err := rows.ParseValue(v.Type, text)
			if err != nil || !bytes.Equal(parsed.AppendText(nil, v.Type), text) {
				t.Fatalf("%q as %s: %v", text, v.Type, err)
			}
		}
		if err := to.AppendValues(values); err != nil {
			t.Fatal(err)
		}
		if got := rowstest.JSON(to, 0); !bytes.Equal(got, objects[0]) {
			t.Fatalf("%s became %s", objects[0], got)
		}
	})
}

func TestValuesOutOfRangeAreRefused(t *testing.T) {
	for typ, x := range map[string]rows.Value{
		"int8":           {Int: 128},
		"int16":          {Int: -32769},
		"int32":          {Int: math.MaxInt32 + 1},
		"boolean":        {Int: 2},
		"date":           {Int: 2932897},
		"timestamp":      {Int: 253402300800000000},
		"float":          {Float: 1e300},
		"decimal(2,0)":   {Wide: rows.Int128{Lo: 100}},
		"decimal(38,0)":  {Wide: rows.Int128{Hi: math.MinInt64}},
		"string":         {Bytes: []byte{0xff}},
		"int64 not null": {Null: true},
	} {
		tab := rows.NewTable(rowstest.SchemaOf(t, "v", typ))
		err := tab.AppendValues([]rows.Value{x})
		var m *sink.Misfit
		if !errors.As(err, &m) || m.Column != "v" || tab.Len() != 0 {
			t.Errorf("%s: %v", typ, err)
		}
	}
	tab := rows.NewTable(rowstest.SchemaOf(t, "v", "list<int8>"))
	if err := tab.AppendValues([]rows.Value{{Int: 1}}); err == nil || !strings.Contains(err.Error(), "list<int8>") {
		t.Errorf("a single value for a list: %v", err)
	}
	if err := tab.AppendValues(nil); err == nil {
		t.Error("no value for a column")
	}
	if _, err := rows.ParseValue(rows.Type{Kind: rows.Int8}, []byte("300")); err == nil {
		t.Error("300 as int8")
	}
}
