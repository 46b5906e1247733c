package parquetfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// grouped writes a table into a file whose row groups have so many rows.
func grouped(tb fataler, tab *rows.Table, each int) []byte {
	tb.Helper()
	var file bytes.Buffer
	w, err := parquetfile.New(tab.Schema(), parquetfile.Options{Codec: parquetfile.Snappy})
	if err == nil {
		err = w.Reset(&file)
	}
	for from := 0; from < tab.Len() && err == nil; from += each {
		index := make([]uint32, 0, each)
		for i := from; i < min(from+each, tab.Len()); i++ {
			index = append(index, uint32(i))
		}
		err = w.WriteRowGroup([]parquetfile.Rows{{Table: tab, Index: index}})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// TestSkip: what is read after rows that are passed over is what is read there anyhow.
func TestSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, objects := rowstest.Table(t, rowstest.Schema(t, 3), rapid.IntRange(1, 40).Draw(t, "rows"))
		file := grouped(t, tab, rapid.IntRange(1, 40).Draw(t, "rows of a group"))
		if f, err := parquetfile.ReadFooter(bytes.NewReader(file), int64(len(file))); err != nil || f.Rows != int64(tab.Len()) || f.Bytes <= 0 {
			t.Fatalf("footer %+v, %v", f, err)
		}
		r, err := parquetfile.OpenReader(bytes.NewReader(file), int64(len(file)), tab.Schema(), parquetfile.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		for at := 0; at < tab.Len(); {
			n := rapid.IntRange(0, tab.Len()-at).Draw(t, "pass over")
			if err := r.Skip(int64(n)); err != nil {
				t.Fatal(err)
			}
			at += n
			got := rows.NewTable(tab.Schema())
			n, err := r.Read(got, rapid.IntRange(1, 10).Draw(t, "read"))
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			for i := range n {
				if o := rowstest.JSON(got, i); !bytes.Equal(o, objects[at+i]) {
					t.Fatalf("row %d of %s:\n%s, want\n%s", at+i, rowstest.Describe(tab.Schema()), o, objects[at+i])
				}
			}
			at += n
		}
		if err := r.Skip(1); err == nil {
			t.Fatal("a row after the end is passed over")
		}
		if _, err := r.Read(rows.NewTable(tab.Schema()), 1); err == nil || errors.Is(err, io.EOF) {
			t.Fatalf("reads on after an error: %v", err)
		}
	})
}

// TestFooterOfNoParquet: what is no parquet file has no footer.
func TestFooterOfNoParquet(t *testing.T) {
	for _, file := range []string{"", "PAR1", "PAR1PAR1PAR1", "PAR1\xff\xff\xff\x7fPAR1", "no parquet at all"} {
		if f, err := parquetfile.ReadFooter(bytes.NewReader([]byte(file)), int64(len(file))); err == nil {
			t.Errorf("%q has %+v", file, f)
		}
	}
}

// TestSkipForeign passes over rows of a file with booleans in runs and with lists, from its beginning and from the middle.
func TestSkipForeign(t *testing.T) {
	s := rowstest.SchemaOf(t, "b", "boolean", "l", "list<boolean>", "n", "int64")
	bools := func() parquet.Node { return parquet.Encoded(parquet.Leaf(parquet.BooleanType), &parquet.RLE) }
	var in []parquet.Row
	var want []string
	for i := range 50 {
		row := parquet.Row{parquet.BooleanValue(i%3 == 0).Level(0, 1, 0)}
		list := make([]string, 0, 3)
		for k := range i % 4 {
			row = append(row, parquet.BooleanValue(k == i%3).Level(min(k, 1), 1, 1))
			list = append(list, strconv.FormatBool(k == i%3))
		}
		if i%4 == 0 {
			row = append(row, parquet.Value{}.Level(0, 0, 1))
		}
		in = append(in, append(row, parquet.Int64Value(int64(i)).Level(0, 0, 2)))
		want = append(want, fmt.Sprintf(`{"b":%v,"l":[%s],"n":%d}`, i%3 == 0, strings.Join(list, ","), i))
	}
	file := foreign(t, parquet.Group{"b": parquet.Optional(bools()), "l": parquet.Group{"x": parquet.Repeated(bools())}, "n": parquet.Leaf(parquet.Int64Type)}, in...)
	for skip := range 50 {
		r, err := parquetfile.OpenReader(bytes.NewReader(file), int64(len(file)), s, parquetfile.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tab := rows.NewTable(s)
		if _, err := r.Read(tab, skip/2); skip > 1 && err != nil {
			t.Fatal(err)
		}
		tab.Reset()
		if err := r.Skip(int64(skip - skip/2)); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(tab, 50); err != nil || n != 50-skip {
			t.Fatal(n, err)
		}
		for i := range tab.Len() {
			if g := string(rowstest.JSON(tab, i)); g != want[skip+i] {
				t.Fatalf("row %d after %d: %s, want %s", skip+i, skip, g, want[skip+i])
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
