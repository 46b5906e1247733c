package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/source"
)

type nested struct {
	A int32   `parquet:"a"`
	L []*leg  `parquet:"l,optional,list"`
	P *string `parquet:"p,optional"`
}

type leg struct {
	K string   `parquet:"k"`
	V *float64 `parquet:"v,optional"`
}

// wide has a column of every kind.
type wide struct {
	I8   int8              `parquet:"i8"`
	U64  uint64            `parquet:"u64"`
	F32  float32           `parquet:"f32"`
	F64  float64           `parquet:"f64"`
	B    bool              `parquet:"b"`
	S    string            `parquet:"s"`
	Bin  []byte            `parquet:"bin"`
	D9   int32             `parquet:"d9,decimal(2:9)"`
	D18  int64             `parquet:"d18,decimal(6:18)"`
	D38  [16]byte          `parquet:"d38,decimal(12:38)"`
	Date int32             `parquet:"date,date"`
	Ms   int64             `parquet:"ms,timestamp(millisecond)"`
	Us   int64             `parquet:"us,timestamp(microsecond)"`
	Ns   int64             `parquet:"ns,timestamp(nanosecond)"`
	Wall int64             `parquet:"wall,timestamp(microsecond:local)"`
	Time int64             `parquet:"time,time(microsecond)"`
	UUID [16]byte          `parquet:"uuid,uuid"`
	I96  deprecated.Int96  `parquet:"i96"`
	Opt  *int64            `parquet:"opt,optional"`
	List []string          `parquet:"list,list"`
	Rep  []int32           `parquet:"rep"`
	Map  map[string]*int64 `parquet:"map,optional" parquet-value:",optional"`
	Nums map[int32]string  `parquet:"nums"`
	N    *nested           `parquet:"n,optional"`
}

func ptr[T any](v T) *T { return &v }

func parquetFile[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wideRows() []wide {
	full := wide{
		I8: -8, U64: math.MaxUint64, F32: 0.1, F64: math.Inf(-1), B: true, S: "ü\"\n\x00", Bin: []byte{0, 255},
		D9: -5, D18: 1234567890123456, Date: -1, Ms: -1, Us: 1767322985123456, Ns: 1767322985123456789, Wall: 1767322985123456, Time: 86399999999,
		I96: deprecated.Int96{0, 0, 2440588}, Opt: ptr(int64(7)), List: []string{"a", ""}, Rep: []int32{1, 2, 3},
		Map: map[string]*int64{"k\"": ptr(int64(1))}, Nums: map[int32]string{5: "five"},
		N: &nested{A: 1, L: []*leg{{K: "x", V: ptr(1e300)}, {K: "y"}}, P: ptr("p")},
	}
	for i := range full.D38 {
		full.D38[i] = 0xff // -1
	}
	full.UUID = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	return []wide{full, {F64: math.NaN(), N: &nested{}}, full}
}

func TestParquetValues(t *testing.T) {
	r := newRig(t, Parquet)
	r.put("a.parquet", parquetFile(t, wideRows()...))
	end := r.latest(checkpoint.Position{}, 0)
	full := `{"i8":-8,"u64":18446744073709551615,"f32":0.1,"f64":"-Infinity","b":true,"s":"ü\"\n\u0000","bin":"AP8=",` +
		`"d9":-0.05,"d18":1234567890.123456,"d38":-0.000000000001,"date":"1969-12-31","ms":"1969-12-31T23:59:59.999000Z",` +
		`"us":"2026-01-02T03:03:05.123456Z","ns":"2026-01-02T03:03:05.123456Z","wall":"2026-01-02T03:03:05.123456Z","time":"23:59:59.999999",` +
		`"uuid":"00010203-0405-0607-0809-0a0b0c0d0e0f","i96":"1970-01-01T00:00:00.000000Z","opt":7,"list":["a",""],` +
		`"rep":[1,2,3],"map":{"k\"":1},"nums":[{"key":5,"value":"five"}],` +
		`"n":{"a":1,"l":[{"k":"x","v":1e+300},{"k":"y","v":null}],"p":"p"}}`
	bare := `{"i8":0,"u64":0,"f32":0,"f64":"NaN","b":false,"s":"","bin":"","d9":0.00,"d18":0.000000,"d38":0.000000000000,` +
		`"date":"1970-01-01","ms":"1970-01-01T00:00:00.000000Z","us":"1970-01-01T00:00:00.000000Z","ns":"1970-01-01T00:00:00.000000Z","wall":"1970-01-01T00:00:00.000000Z",` +
		`"time":"00:00:00.000000","uuid":"00000000-0000-0000-0000-000000000000","i96":null,"opt":null,"list":[],` +
		`"rep":[],"map":null,"nums":[],"n":{"a":0,"l":null,"p":null}}`
	got := r.read(checkpoint.Position{}, end)
	for i, want := range []string{full, bare, full} {
		if i == 1 {
			// Julian day 0 lies before the year 0 and has no RFC 3339 form.
			same(t, "row 1", got[1], "1!bad_value")
			continue
		}
		same(t, fmt.Sprint("row ", i), got[i], fmt.Sprint(i, ":", want))
	}
	rows := wideRows()
	rows[1].I96 = deprecated.Int96{1_000_001_999, 0, 2461043}
	r.put("b.parquet", parquetFile(t, rows[1]))
	next := r.latest(end, 0)
	same(t, "bare row", r.read(end, next), []string{"0:" + strings.Replace(bare, `"i96":null`, `"i96":"2026-01-02T00:00:01.000001Z"`, 1)})
}

func TestParquetBatches(t *testing.T) {
	r := newRig(t, Parquet)
	r.put("a.parquet", string(rows(Parquet, 0, 100)))
	r.put("b.parquet", parquetFile[nested](t))
	r.put("c.parquet", string(rows(Parquet, 100, 3)))
	var want []string
	for i := range 103 {
		text := fmt.Sprintf("%q", strings.Repeat("x", i%40))
		if i%5 == 0 {
			text = "null"
		}
		want = append(want, fmt.Sprintf(`%d:{"ID":%d,"Text":%s}`, i%100, i, text))
	}
	for _, records := range []int64{0, 1, 19, 20, 21, 64, 99, 100, 101} {
		r.cfg.ReadOnly = true
		r.open()
		batches, _ := r.drain(records)
		var got []string
		for _, b := range batches {
			got = append(got, b...)
		}
		same(t, fmt.Sprint("rows in batches of ", records), got, want)
	}
}

func TestParquetDamaged(t *testing.T) {
	whole := parquetFile(t, wideRows()...)
	huge := []byte(whole)
	binary.LittleEndian.PutUint32(huge[len(huge)-8:], math.MaxUint32)
	for name, content := range map[string]string{
		"text": "this is no parquet file", "short": "PAR1PAR1", "cut": whole[:len(whole)/2], "a huge footer": string(huge),
		"no footer": "PAR1" + strings.Repeat("\x00", 100) + "\x50\x00\x00\x00PAR1",
	} {
		r := newRig(t, Parquet)
		r.put("a.parquet", content)
		_, err := r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
		same(t, name, code(t, err), CodeCorrupt)
		if !strings.Contains(err.Error(), "a.parquet") {
			t.Errorf("the error does not name the file: %v", err)
		}
	}
}

// TestWrongFormat: what is wrong with a file of another format says that it may be the source's format.
func TestWrongFormat(t *testing.T) {
	whole := parquetFile(t, wideRows()...)
	for name, c := range map[string]struct {
		format              Format
		content, code, says string
	}{
		"lines":            {Parquet, "{\"id\":1}\n{\"id\":2}\n", CodeCorrupt, `does not begin as Parquet does, with PAR1, but with "{\"id"`},
		"packed lines":     {Parquet, string(packed([]byte("{\"id\":1}\n"))), CodeCorrupt, "does not begin as Parquet does"},
		"a byte":           {Parquet, "x", CodeCorrupt, `but with "x"`},
		"columns":          {Parquet, "a,b\n1,2\n", CodeCorrupt, "does not begin as Parquet does"},
		"Parquet as CSV":   {CSV, whole, CodeHeader, "begins as Parquet does"},
		"JSON text as CSV": {CSV, "\"a\": 1\n", CodeHeader, "text follows a closing quote"},
	} {
		r := newRig(t, c.format)
		r.put("a", c.content)
		_, err := r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
		same(t, name, code(t, err), c.code)
		if !strings.Contains(err.Error(), c.says) || !strings.Contains(hint(t, err), "correct the source's `format`") {
			t.Errorf("%s: %v: %s", name, err, hint(t, err))
		}
	}
	r := newRig(t, CSV)
	r.put("a.csv", "PAR1,b\n1,2\n")
	same(t, "a column of that name", r.read(checkpoint.Position{}, r.latest(checkpoint.Position{}, 0)), []string{`0:{"PAR1":"1","b":"2"}`})
}

func TestSchemaLimits(t *testing.T) {
	group := func(children int32) format.SchemaElement {
		e := format.SchemaElement{Name: "g"}
		e.NumChildren.V, e.NumChildren.Valid = children, true
		return e
	}
	leafElement := format.SchemaElement{Name: "l"}
	leafElement.Type.Valid = true
	var deep []format.SchemaElement
	for range maxSchemaDepth + 2 {
		deep = append(deep, group(1))
	}
	for name, schema := range map[string][]format.SchemaElement{
		"empty": nil, "only a leaf": {leafElement}, "cut short": {group(3), leafElement}, "too many": {group(1), leafElement, leafElement},
		"more children than there are": {group(math.MaxInt32), leafElement}, "too deep": append(deep, leafElement),
	} {
		if _, err := newRowTree(schema, parquetfile.Calendar{}); err == nil {
			t.Errorf("a schema is taken that is %s", name)
		}
	}
}

// FuzzParquet flips bytes of a file: rows or an error, never a panic, and what comes out is JSON.
func FuzzParquet(f *testing.F) {
	whole := []byte(parquetFile(f, wideRows()[0], wideRows()[2]))
	f.Add(uint32(0), byte(0))
	for i := range 64 {
		f.Add(uint32(len(whole)-i*37), byte(1<<(i%8)))
	}
	f.Fuzz(func(t *testing.T, at uint32, flip byte) { readFlipped(t, whole, at, flip) })
}

// readFlipped reads a file with flipped bits.
func readFlipped(t *testing.T, whole []byte, at uint32, flip byte) {
	content := bytes.Clone(whole)
	content[int(at)%len(content)] ^= flip
	e := &entry{Path: "/x", Size: int64(len(content))}
	got, err := planParquet(bytes.NewReader(content), e, place{}, newBudget(source.Limit{}))
	if err != nil || got.end.Line > 1000 {
		return
	}
	src := &Source{cfg: Config{MaxLine: 1 << 20}}
	check := jsonWriter{t}
	r := rowReader{ctx: context.Background(), src: src, part: &part{entry: *e, To: got.end}, rec: &abi.Record{}, to: check}
	_ = r.read(crowdFile{Reader: bytes.NewReader(content)}) // an error is as good
}

// jsonWriter checks that values are JSON, if they are text.
type jsonWriter struct{ t *testing.T }

func (w jsonWriter) Write(r *abi.Record) error {
	if !json.Valid([]byte(strings.ToValidUTF8(string(r.Value), "?"))) {
		w.t.Errorf("not JSON: %q", r.Value)
	}
	return nil
}

func (jsonWriter) Reject(*abi.Record, string, string) error { return nil }
