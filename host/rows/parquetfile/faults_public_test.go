package parquetfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// The tests of this file are of faults that the library and programs that use it were reported for: see FAULTS.md of host/delta.

// TestPagesAreCounted: each row group of a file tells of its own pages, all of them of version 1.
func TestPagesAreCounted(t *testing.T) {
	s := allTypes(t)
	r := rand.New(rand.NewPCG(31, 32))
	w := newWriter(t, s, parquetfile.Zstd)
	var out bytes.Buffer
	if err := w.Reset(&out); err != nil {
		t.Fatal(err)
	}
	sizes := []int{40_000, 100, 20_000}
	for _, n := range sizes {
		if err := w.WriteRowGroup([]parquetfile.Rows{{Table: randomTable(t, s, r, n, 0.1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for g, group := range f.RowGroups() {
		if n := f.Metadata().RowGroups[g].NumRows; n != int64(sizes[g]) {
			t.Errorf("row group %d says it has %d rows of %d", g, n, sizes[g])
		}
		for c, chunk := range group.ColumnChunks() {
			m := f.Metadata().RowGroups[g].Columns[c].MetaData
			pages, values, said := readPages(t, chunk), 0, 0
			for _, p := range pages {
				values += len(p)
			}
			for _, e := range m.EncodingStats {
				switch e.PageType {
				case format.DataPage:
					said += int(e.Count)
				case format.DictionaryPage:
				default:
					t.Errorf("%v has a page of the kind %s", m.PathInSchema, e.PageType)
				}
			}
			if values != sizes[g] || m.NumValues != int64(values) || said != len(pages) {
				t.Errorf("%v of row group %d: %d values of %d, said to be %d; %d pages, said to be %d", m.PathInSchema, g, values, sizes[g], m.NumValues, len(pages), said)
			}
			most = max(most, len(pages))
		}
	}
	if most < 2 {
		t.Error("no column has many pages")
	}
}

// TestZeroIsNotNull: zero, false, the empty text and the empty list are values.
func TestZeroIsNotNull(t *testing.T) {
	s := rowstest.SchemaOf(t, "s", "string", "x", "binary", "b", "boolean", "y", "int8", "i", "int32", "l", "int64", "f", "float", "d", "double",
		"d5", "decimal(5,2)", "d15", "decimal(15,3)", "d38", "decimal(38,10)", "t", "timestamp", "day", "date",
		"list", "list<int32>", "in", "struct<a: int64, b: string>", "m", "map<string, double>")
	const zeros = `{"s":"","x":"","b":false,"y":0,"i":0,"l":0,"f":0.0,"d":0.0,"d5":0.00,"d15":0.000,"d38":0.0000000000,"t":"1970-01-01T00:00:00Z","day":"1970-01-01",` +
		`"list":[0,null],"in":{"a":0,"b":""},"m":{"":0}}`
	tab := fill(t, s, zeros, `{}`, zeros)
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.None), &out, []parquetfile.Rows{{Table: tab}})
	compareTables(t, readAll(t, out.Bytes(), s, parquetfile.ReadOptions{}, 2), tab)
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for c, m := range f.Metadata().RowGroups[0].Columns {
		want, name := int64(1), strings.Join(m.MetaData.PathInSchema, "/")
		if strings.HasPrefix(name, "list/") {
			want = 3 // the list that is null, and in the others one element each
		}
		nulls := int64(0)
		for _, v := range readColumn(t, f, c) {
			if v.IsNull() {
				nulls++
			}
		}
		if nulls != want || m.MetaData.Statistics.NullCount != want {
			t.Errorf("%s has %d nulls, and says %d; want %d", name, nulls, m.MetaData.Statistics.NullCount, want)
		}
	}
}

// TestLargestValues: values as long as a record may be are read back as they were, each in a page of its own size, and the
// footer does not grow with them.
func TestLargestValues(t *testing.T) {
	const size = 16 << 20
	s := rowstest.SchemaOf(t, "s", "string", "l", "list<string>")
	tab := rows.NewTable(s)
	for i := range 2 {
		long := strings.Repeat(string(rune('a'+i)), size)
		if err := tab.Append(fmt.Appendf(nil, `{"s":"%s","l":["%s"]}`, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.Snappy), &out, []parquetfile.Rows{{Table: tab}})
	got := readAll(t, out.Bytes(), s, parquetfile.ReadOptions{}, 1)
	for i := range tab.Len() {
		if !bytes.Equal(got.Column(0).Bytes(i), tab.Column(0).Bytes(i)) || !bytes.Equal(got.Column(1).Children[0].Bytes(i), tab.Column(1).Children[0].Bytes(i)) {
			t.Errorf("row %d is another one", i)
		}
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for c, chunk := range f.RowGroups()[0].ColumnChunks() {
		if pages := readPages(t, chunk); len(pages) != 2 {
			t.Errorf("column %d has %d pages", c, len(pages))
		}
	}
	tail := out.Bytes()[out.Len()-8:]
	if n := int(tail[0]) | int(tail[1])<<8 | int(tail[2])<<16 | int(tail[3])<<24; n > 4096 {
		t.Errorf("a footer of %d bytes", n)
	}
}

// TestARunOfTrue reads pages of version 2 in which true is a run. Its byte is 1 where pyarrow writes it, of which the library
// makes one true and seven false, and 255 where the library does. A byte that the page's checksum does not know is an error.
func TestARunOfTrue(t *testing.T) {
	node := parquet.Encoded(parquet.Leaf(parquet.BooleanType), &parquet.RLE)
	s := rowstest.SchemaOf(t, "b", "boolean")
	for name, c := range map[string]struct {
		node parquet.Node
		def  int
	}{"required": {node, 0}, "optional": {parquet.Optional(node), 1}} {
		var values []parquet.Row
		for range 8 {
			values = append(values, parquet.Row{parquet.BooleanValue(true).Level(0, c.def, 0)})
		}
		file := foreign(t, parquet.Group{"b": c.node}, values...)
		broken := bytes.Replace(file, []byte{2, 0, 0, 0, 16, 0xff}, []byte{2, 0, 0, 0, 16, 1}, 1)
		for kind, file := range map[string][]byte{"255": file, "1": withChecksum(t, file, broken)} {
			got, err := tryRead(file, s)
			if err != nil || got.Len() != 8 {
				t.Fatalf("%s, a byte of %s: %d rows, %v", name, kind, got.Len(), err)
			}
			for i := range 8 {
				if v := string(got.Column(0).AppendJSON(nil, i)); v != "true" {
					t.Errorf("%s, a byte of %s: row %d is %s", name, kind, i, v)
				}
			}
		}
		if got, err := tryRead(broken, s); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: %d rows of a page with another checksum, %v", name, got.Len(), err)
		}
	}
}

// withChecksum puts the checksum of the page right that differs between two files, and begins up to a few bytes before.
func withChecksum(t *testing.T, old, changed []byte) []byte {
	t.Helper()
	at := 0
	for at < len(old) && old[at] == changed[at] {
		at++
	}
	varint := func(page []byte) []byte { return binary.AppendVarint(nil, int64(int32(crc32.ChecksumIEEE(page)))) }
	for from := at - 5; from >= at-12; from-- {
		was, is := varint(old[from:at+1]), varint(changed[from:at+1])
		if bytes.Count(old, was) == 1 && len(was) == len(is) {
			return bytes.Replace(changed, was, is, 1)
		}
	}
	t.Fatal("the page's checksum is not found")
	return nil
}

// TestWideDecimalsOfBothSigns: the least of a column is the most negative one, in the footer and in what the log is told.
func TestWideDecimalsOfBothSigns(t *testing.T) {
	for _, typ := range []string{"decimal(9,2)", "decimal(18,2)", "decimal(19,2)", "decimal(38,2)"} {
		s := rowstest.SchemaOf(t, "d", typ)
		var out bytes.Buffer
		w := newWriter(t, s, parquetfile.None)
		encode(t, w, &out, []parquetfile.Rows{{Table: fill(t, s, `{"d":-1}`, `{"d":5}`, `{"d":0}`, `{"d":-3.25}`)}})
		m := metadata(t, out.Bytes()).RowGroups[0].Columns[0].MetaData
		kind := parquet.Int32
		switch m.Type {
		case format.Int64:
			kind = parquet.Int64
		case format.FixedLenByteArray:
			kind = parquet.FixedLenByteArray
		}
		lo, hi := kind.Value(m.Statistics.MinValue), kind.Value(m.Statistics.MaxValue)
		if a, b := decimalText(unscaled(lo), 2), decimalText(unscaled(hi), 2); a != "-3.25" || b != "5.00" {
			t.Errorf("%s: from %s to %s", typ, a, b)
		}
		c := w.Stats().Columns[0]
		column := s.Column(0).Type
		if a, b := string(c.Min.AppendText(nil, column)), string(c.Max.AppendText(nil, column)); a != "-3.25" || b != "5.00" {
			t.Errorf("%s: the log is told %s to %s", typ, a, b)
		}
	}
}
