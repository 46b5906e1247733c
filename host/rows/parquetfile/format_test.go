package parquetfile_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

func newWriter(tb testing.TB, s *rows.Schema, codec parquetfile.Codec, skip ...int) *parquetfile.Writer {
	tb.Helper()
	w, err := parquetfile.New(s, parquetfile.Options{Codec: codec, CreatedBy: "wasmill version test", Skip: skip})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func fill(tb testing.TB, s *rows.Schema, objects ...string) *rows.Table {
	tb.Helper()
	t := rows.NewTable(s)
	for _, o := range objects {
		if err := t.Append([]byte(o)); err != nil {
			tb.Fatalf("%s: %v", o, err)
		}
	}
	return t
}

func metadata(tb testing.TB, file []byte) *format.FileMetaData {
	tb.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		tb.Fatal(err)
	}
	return f.Metadata()
}

// TestGuards pins what readers are known to trip over: encodings, physical types, annotations.
func TestGuards(t *testing.T) {
	s := allTypes(t)
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.Zstd), &out, []parquetfile.Rows{{Table: randomTable(t, s, rand.New(rand.NewPCG(1, 1)), 5000, 0.1)}})
	m := metadata(t, out.Bytes())
	if m.CreatedBy != "wasmill version test" || m.Version != 2 || len(m.ColumnOrders) != s.Len() {
		t.Errorf("created by %q, version %d, %d column orders", m.CreatedBy, m.Version, len(m.ColumnOrders))
	}
	want := map[string]string{
		"s": "BYTE_ARRAY STRING", "low": "BYTE_ARRAY STRING", "b": "BOOLEAN ", "i": "INT32 INT(32,true)", "l": "INT64 INT(64,true)", "f": "FLOAT ", "d": "DOUBLE ",
		"d5": "INT32 DECIMAL(5,2)", "d15": "INT64 DECIMAL(15,3)", "d38": "FIXED_LEN_BYTE_ARRAY DECIMAL(38,10)",
		"t": "INT64 TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "day": "INT32 DATE", "x": "BYTE_ARRAY ",
	}
	for _, e := range m.Schema[1:] {
		if got := e.Type.V.String() + " " + e.LogicalType.String(); got != want[e.Name] || e.RepetitionType.V != format.Optional {
			t.Errorf("%s is %s, want %s", e.Name, got, want[e.Name])
		}
	}
	for _, c := range m.RowGroups[0].Columns {
		for _, e := range c.MetaData.Encoding {
			if e != format.Plain && e != format.RLE && e != format.RLEDictionary {
				t.Errorf("%s has encoding %s", c.MetaData.PathInSchema[0], e)
			}
		}
		if c.MetaData.Codec != format.Zstd {
			t.Errorf("%s has codec %s", c.MetaData.PathInSchema[0], c.MetaData.Codec)
		}
	}
}

func TestStatistics(t *testing.T) {
	s := rowstest.SchemaOf(t, "i", "int32", "l", "int64", "d", "double", "f", "float", "s", "string", "c", "decimal(5,2)", "b", "boolean", "t", "timestamp", "n", "string")
	tab := fill(t, s,
		`{"i":-5,"l":-9000000000,"d":"NaN","f":1.5,"s":"bb","c":-1.5,"b":false,"t":"1969-12-31T23:59:59Z"}`,
		`{"i":7,"l":3,"d":0,"f":-2.5,"s":"abc","c":2.25,"b":true,"t":"1970-01-01T00:00:01Z"}`,
		`{}`,
		`{"i":0,"l":0,"d":-0.0,"f":0,"s":"bé","c":0,"b":true,"t":"1970-01-01T00:00:00Z"}`)
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.None), &out, []parquetfile.Rows{{Table: tab}})
	want := []string{
		"1 fbffffff 07000000", "1 00e68ee7fdffffff 0300000000000000", "1 0000000000000080 0000000000000000", "1 000020c0 0000c03f",
		"1 616263 62c3a9", "1 6affffff e1000000", "1 00 01", "1 c0bdf0ffffffffff 40420f0000000000", "4  ",
	}
	for i, c := range metadata(t, out.Bytes()).RowGroups[0].Columns {
		st := c.MetaData.Statistics
		if got := fmt.Sprintf("%d %s %s", st.NullCount, hex.EncodeToString(st.MinValue), hex.EncodeToString(st.MaxValue)); got != want[i] {
			t.Errorf("%s: %s, want %s", s.Column(i).Name, got, want[i])
		}
	}
}

// TestRowsByIndex writes chosen rows of several tables into several row groups, without some of the columns.
func TestRowsByIndex(t *testing.T) {
	s := allTypes(t)
	r := rand.New(rand.NewPCG(3, 4))
	a, b := randomTable(t, s, r, 4000, 0.2), randomTable(t, s, r, 100, 0.2)
	var index []uint32
	for i := range uint32(4000) {
		if i%3 != 0 {
			index = append(index, i)
		}
	}
	groups := [][]parquetfile.Rows{{{Table: a, Index: index}, {Table: b}}, {{Table: b, Index: []uint32{99, 0, 0}}}, {}, {{Table: a, Index: []uint32{}}}}
	w := newWriter(t, s, parquetfile.Zstd, s.Index("b"), s.Index("low"))
	var out bytes.Buffer
	if err := w.Reset(&out); err != nil {
		t.Fatal(err)
	}
	var all []parquetfile.Rows
	for _, g := range groups {
		if err := w.WriteRowGroup(g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g...)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(metadata(t, out.Bytes()).RowGroups); n != 2 {
		t.Errorf("%d row groups, want 2: empty ones are left out", n)
	}
	compareFile(t, out.Bytes(), all, map[string]bool{"b": true, "low": true})
}

// TestSameBytes: a writer that was used before writes the same as a fresh one.
func TestSameBytes(t *testing.T) {
	s := allTypes(t)
	tab := randomTable(t, s, rand.New(rand.NewPCG(5, 6)), 20_000, 0.1)
	other := randomTable(t, s, rand.New(rand.NewPCG(7, 8)), 30_000, 0.5)
	for _, codec := range []parquetfile.Codec{parquetfile.Zstd, parquetfile.Gzip, parquetfile.Snappy} {
		w := newWriter(t, s, codec)
		var one, two bytes.Buffer
		encode(t, newWriter(t, s, codec), &one, []parquetfile.Rows{{Table: tab}})
		encode(t, w, &bytes.Buffer{}, []parquetfile.Rows{{Table: other}})
		encode(t, w, &two, []parquetfile.Rows{{Table: tab}})
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: a used writer writes other bytes", codec)
		}
		if err := w.Reset(&failing{1000}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.WriteRowGroup([]parquetfile.Rows{{Table: tab}}), w.Close()); err == nil {
			t.Error("a full disk was not noticed")
		}
		if err := w.Reset(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.WriteRowGroup([]parquetfile.Rows{{Table: other}}); err != nil {
				t.Fatal(err)
			}
		}
		two.Reset()
		encode(t, w, &two, []parquetfile.Rows{{Table: tab}})
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: a writer that left files unfinished writes other bytes", codec)
		}
	}
}

func TestAFileWithoutRows(t *testing.T) {
	s := allTypes(t)
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.Zstd), &out, nil)
	if m := metadata(t, out.Bytes()); m.NumRows != 0 || len(m.RowGroups) != 0 || len(m.Schema) != s.Len()+1 {
		t.Errorf("%d rows, %d row groups", m.NumRows, len(m.RowGroups))
	}
}

type failing struct{ after int }

func (f *failing) Write(b []byte) (int, error) {
	if f.after -= len(b); f.after < 0 {
		return 0, fmt.Errorf("the disk is full")
	}
	return len(b), nil
}

type broken struct{}

func (broken) Write([]byte) (int, error) { panic("a defect below") }

func TestPanicsBecomeErrors(t *testing.T) {
	s := allTypes(t)
	tab := randomTable(t, s, rand.New(rand.NewPCG(1, 9)), 5000, 0.1)
	w := newWriter(t, s, parquetfile.None)
	if err := w.Reset(broken{}); err != nil {
		t.Fatal(err)
	}
	err := w.WriteRowGroup([]parquetfile.Rows{{Table: tab}})
	if want := "write a row group: the parquet library failed: a defect below"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := w.Close(); err == nil {
		t.Error("a broken file was closed")
	}
	var out bytes.Buffer
	encode(t, w, &out, []parquetfile.Rows{{Table: tab}})
	compareFile(t, out.Bytes(), []parquetfile.Rows{{Table: tab}}, nil)
}

func TestWriteErrorsAreReported(t *testing.T) {
	s := allTypes(t)
	tab := randomTable(t, s, rand.New(rand.NewPCG(1, 9)), 500, 0.1)
	w := newWriter(t, s, parquetfile.Zstd)
	var whole bytes.Buffer
	encode(t, w, &whole, []parquetfile.Rows{{Table: tab}})
	for after := 0; after < whole.Len(); after += 97 {
		err := w.Reset(&failing{after})
		if err == nil {
			err = w.WriteRowGroup([]parquetfile.Rows{{Table: tab}})
		}
		if closeErr := w.Close(); err == nil && closeErr == nil {
			t.Fatalf("a writer that takes %d of %d bytes: no error", after, whole.Len())
		}
	}
	if err := w.WriteRowGroup(nil); err == nil {
		t.Error("a row group without a file")
	}
	if err := w.Close(); err == nil {
		t.Error("closed twice")
	}
}

// TestCompressionOfAllKindsOfPages covers both ways of compressing and their edges: equal bytes, random ones, many blocks.
func TestCompressionOfAllKindsOfPages(t *testing.T) {
	s := rowstest.SchemaOf(t, "v", "int64", "d", "double", "s", "string")
	r := rand.New(rand.NewPCG(11, 12))
	for name, value := range map[string]func(i int) (int64, float64, string){
		"equal":    func(int) (int64, float64, string) { return 7, 0.5, "same" },
		"counting": func(i int) (int64, float64, string) { return int64(i), float64(i), fmt.Sprintf("%09d", i) },
		"random": func(int) (int64, float64, string) {
			return int64(r.Uint64()), r.NormFloat64(), fmt.Sprintf("%x", r.Uint64())
		},
		"digits": func(int) (int64, float64, string) {
			return r.Int64N(1e6), float64(r.IntN(1e6)) / 100, fmt.Sprint(r.IntN(1e6))
		},
		"wide": func(int) (int64, float64, string) { return math.MinInt64, 1, fmt.Sprintf("%0500d", r.Uint64()) },
	} {
		tab := rows.NewTable(s)
		for i := range 40_000 {
			v, d, text := value(i)
			if err := tab.Append(fmt.Appendf(nil, `{"v":%d,"d":%v,"s":%q}`, v, d, text)); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			encode(t, newWriter(t, s, parquetfile.Zstd), &out, []parquetfile.Rows{{Table: tab}})
			compareFile(t, out.Bytes(), []parquetfile.Rows{{Table: tab}}, nil)
		})
	}
}
