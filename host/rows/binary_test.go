package rows_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

func TestBinaryRowVectors(t *testing.T) {
	text, err := os.ReadFile("../../abi/vectors/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Doc, Columns, Hex, Row string
		Hash                   uint32
		Misfit                 *struct{ Code, Column string }
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 10 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for _, c := range vectors {
		columns, err := rows.ParseColumns(c.Columns)
		if err != nil {
			t.Fatal(err)
		}
		s, err := rows.NewSchema(columns)
		if err != nil {
			t.Fatal(err)
		}
		if abi.RowHash(s.ColumnsText()) != c.Hash {
			t.Errorf("%s: the hash of %q is not %d", c.Doc, s.ColumnsText(), c.Hash)
		}
		b, err := hex.DecodeString(c.Hex)
		if err != nil {
			t.Fatal(err)
		}
		tab := rows.NewTable(s)
		err = tab.Append(b)
		if c.Misfit == nil {
			if err != nil || string(rowText(tab, 0)) != c.Row {
				t.Errorf("%s: %v, want %s", c.Doc, err, c.Row)
			}
			continue
		}
		var m *sink.Misfit
		if !errors.As(err, &m) || m.Code != c.Misfit.Code || m.Column != c.Misfit.Column || tab.Len() != 0 || !strings.Contains(m.Reason, "at byte") {
			t.Errorf("%s: %+v, want %+v", c.Doc, m, c.Misfit)
		}
	}
}

// TestBinaryRowsAreTheSameRows as their JSON, whatever the schema and the values; a row cut short or of other columns is a
// misfit that leaves the table as it was.
func TestBinaryRowsAreTheSameRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rowstest.Schema(t, 3)
		from, objects := rowstest.Table(t, s, rapid.IntRange(1, 6).Draw(t, "rows"))
		columns, err := rows.ParseColumns(s.ColumnsText())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := rows.NewSchema(columns); err != nil || again.ColumnsText() != s.ColumnsText() {
			t.Fatalf("%s became %v, %v", s.ColumnsText(), again, err)
		}
		w := abi.NewRowWriter(s.ColumnsText())
		to := rows.NewTable(s)
		for i, o := range objects {
			b := rowstest.Binary(w, from, i)
			before := to.Bytes()
			cut := rapid.IntRange(1, len(b)-1).Draw(t, "cut")
			other := bytes.Clone(b)
			other[1+i%4]++
			for _, bad := range [][]byte{b[:cut], append(bytes.Clone(b), 0), other} {
				var m *sink.Misfit
				if err := to.Append(bad); !errors.As(err, &m) || m.Code == "" || to.Bytes() != before || to.Len() != i {
					t.Fatalf("%x: %v", bad, err)
				}
			}
			if err := to.Append(b); err != nil {
				t.Fatalf("%s: %v", o, err)
			}
			if got := rowstest.JSON(to, i); !bytes.Equal(got, o) {
				t.Fatalf("%s became %s", o, got)
			}
		}
	})
}

func TestRowSchema(t *testing.T) {
	for text, want := range map[string]string{
		"a: int64 not null, t: timestamp(ms), l: list<string not null>, m: map<string, decimal(9,2)>": "",
		"a:int64":                 "shortest form, as a: int64",
		"a: int64 ":               "shortest form",
		"a: int64, A: int8":       "differ at most in case",
		"a: uuid":                 "unknown type",
		"a: int64>, b: list<int8": "not expected",
		"":                        "name of a field is missing",
	} {
		s, err := rows.RowSchema(text)
		if want == "" {
			if err != nil || s.Len() != 4 || !s.Column(0).Type.Required {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestBinaryRowsOfOtherColumns(t *testing.T) {
	w := abi.NewRowWriter("a: int32")
	w.Begin()
	w.Bits32(1)
	err := rows.NewTable(rowstest.SchemaOf(t, "a", "int64 not null", "b", "timestamp(ms)")).Append(w.Row())
	var m *sink.Misfit
	if !errors.As(err, &m) || m.Code != "columns" || !strings.Contains(m.Reason, "a: int64, b: timestamp") {
		t.Errorf("%+v", m)
	}
}

func FuzzBinaryRow(f *testing.F) {
	schema := rowstest.SchemaOf(f, "a", "int8", "s", "string", "l", "list<struct<a: list<date>, m: map<string, decimal(9,2)>>>", "w", "decimal(38,0)", "b", "map<boolean, binary>")
	w := abi.NewRowWriter(schema.ColumnsText())
	tab := rows.NewTable(schema)
	for _, o := range []string{`{}`, `{"a":1,"s":"x","l":[{"a":["2024-01-01",null],"m":{"k":1.5,"":null}},null],"w":-99999999999999999999,"b":{"true":"AA=="}}`} {
		if err := tab.Append([]byte(o)); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(rowstest.Binary(w, tab, tab.Len()-1)[abi.RowHeader:]))
	}
	f.Fuzz(func(t *testing.T, values []byte) {
		w.Begin()
		row := append(bytes.Clone(w.Row()), values...)
		tab := rows.NewTable(schema)
		if err := tab.Append(row); err != nil {
			var m *sink.Misfit
			if !errors.As(err, &m) || tab.Len() != 0 {
				t.Fatalf("%x: %#v", row, err)
			}
			return
		}
		if again := rowstest.Binary(w, tab, 0); !bytes.Equal(again, row) {
			t.Fatalf("%x became %x", row, again)
		}
	})
}
