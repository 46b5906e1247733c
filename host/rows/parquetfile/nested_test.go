package parquetfile_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// readAll reads a file with this package, in pieces of so many rows.
func readAll(tb fataler, file []byte, s *rows.Schema, opts parquetfile.ReadOptions, most int) *rows.Table {
	tb.Helper()
	r, err := parquetfile.OpenReader(bytes.NewReader(file), int64(len(file)), s, opts)
	if err != nil {
		tb.Fatal(err)
	}
	out := rows.NewTable(s)
	for {
		n, err := r.Read(out, most)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		if n == 0 || n > most {
			tb.Fatalf("read %d of at most %d rows", n, most)
		}
	}
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	return out
}

func compareTables(tb fataler, got, want *rows.Table) {
	tb.Helper()
	if got.Len() != want.Len() {
		tb.Fatalf("%d rows, want %d", got.Len(), want.Len())
	}
	for i := range want.Len() {
		if g, w := rowstest.JSON(got, i), rowstest.JSON(want, i); !bytes.Equal(g, w) {
			tb.Fatalf("row %d of %s:\n%s, want\n%s", i, rowstest.Describe(want.Schema()), g, w)
		}
	}
}

// TestRoundTripOfAnything: JSON, row, parquet, row, JSON gives the same, whatever the schema and the values.
func TestRoundTripOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rowstest.Schema(t, 3)
		tab, objects := rowstest.Table(t, s, rapid.IntRange(0, 30).Draw(t, "rows"))
		for i, o := range objects {
			if got := rowstest.JSON(tab, i); !bytes.Equal(got, o) {
				t.Fatalf("%s became %s", o, got)
			}
		}
		w, err := parquetfile.New(s, parquetfile.Options{Codec: parquetfile.Snappy, CreatedBy: "wasmill version test"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		from := []parquetfile.Rows{{Table: tab}}
		if err := errors.Join(w.Reset(&out), w.WriteRowGroup(from), w.WriteRowGroup(from), w.Close()); err != nil {
			t.Fatal(err)
		}
		got := readAll(t, out.Bytes(), s, parquetfile.ReadOptions{}, rapid.IntRange(1, 40).Draw(t, "most"))
		if got.Len() != 2*len(objects) {
			t.Fatalf("%d rows, want %d twice", got.Len(), len(objects))
		}
		for i := range got.Len() {
			if g, w := rowstest.JSON(got, i), objects[i%len(objects)]; !bytes.Equal(g, w) {
				t.Fatalf("%s: %s became %s", rowstest.Describe(s), w, g)
			}
		}
		if st := w.Stats(); st.Rows != int64(got.Len()) {
			t.Fatalf("the statistics count %d rows of %d", st.Rows, got.Len())
		}
	})
}

// fataler is a test, or a case of a property test.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
