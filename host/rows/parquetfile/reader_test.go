package parquetfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// TestNestedShape pins what nested columns look like in a file: lists of three levels, maps, what may be null.
func TestNestedShape(t *testing.T) {
	s := rowstest.SchemaOf(t, "tags", "list<string not null>", "by", "map<string, list<int8>> not null", "at", "struct<z: int16 not null, a: decimal(20,1)> not null")
	var out bytes.Buffer
	encode(t, newWriter(t, s, parquetfile.None), &out, []parquetfile.Rows{{Table: fill(t, s, `{"by":{},"at":{"z":1}}`)}})
	var got []string
	for _, e := range metadata(t, out.Bytes()).Schema[1:] {
		line := e.RepetitionType.V.String() + " " + e.Name
		if e.Type.Valid {
			line += " " + e.Type.V.String()
		}
		if e.LogicalType.Value != nil {
			line += " " + e.LogicalType.String()
		}
		if e.ConvertedType.Valid && (e.ConvertedType.V == deprecated.List || e.ConvertedType.V == deprecated.Map) {
			line += " converted"
		}
		got = append(got, line)
	}
	want := `OPTIONAL tags LIST converted
REPEATED list
REQUIRED element BYTE_ARRAY STRING
REQUIRED by MAP converted
REPEATED key_value
REQUIRED key BYTE_ARRAY STRING
OPTIONAL value LIST converted
REPEATED list
OPTIONAL element INT32 INT(8,true)
REQUIRED at
REQUIRED z INT32 INT(16,true)
OPTIONAL a FIXED_LEN_BYTE_ARRAY DECIMAL(20,1)`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// foreign writes a file with the library's own means.
func foreign(tb testing.TB, root parquet.Group, values ...parquet.Row) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](&out, parquet.NewSchema("other", root))
	if _, err := w.WriteRows(values); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestForeignForms(t *testing.T) {
	leaf := parquet.Leaf
	day := deprecated.Int96{0, 0, 2440589}
	for name, c := range map[string]struct {
		node  parquet.Node
		value parquet.Value
		typ   string
		want  string // a value, or "!" and an error
	}{
		"int96":             {leaf(parquet.Int96Type), parquet.Int96Value(day), "timestamp", `"1970-01-02T00:00:00.000000Z"`},
		"int96 nanos":       {leaf(parquet.Int96Type), parquet.Int96Value(deprecated.Int96{1, 0, 2440589}), "timestamp", "!below microseconds"},
		"int96 far":         {leaf(parquet.Int96Type), parquet.Int96Value(deprecated.Int96{0, 0, 1 << 31}), "timestamp", "!out of range"},
		"millis":            {parquet.Timestamp(parquet.Millisecond), parquet.Int64Value(-1), "timestamp", `"1969-12-31T23:59:59.999000Z"`},
		"millis far":        {parquet.Timestamp(parquet.Millisecond), parquet.Int64Value(1 << 62), "timestamp", "!out of range"},
		"nanos":             {parquet.Timestamp(parquet.Nanosecond), parquet.Int64Value(-1000), "timestamp(ms)", `"1969-12-31T23:59:59.999999Z"`},
		"fine nanos":        {parquet.Timestamp(parquet.Nanosecond), parquet.Int64Value(1), "timestamp", "!below microseconds"},
		"clock millis":      {parquet.TimestampAdjusted(parquet.Millisecond, false), parquet.Int64Value(-1), "timestamp_ntz", `"1969-12-31T23:59:59.999000"`},
		"clock nanos":       {parquet.TimestampAdjusted(parquet.Nanosecond, false), parquet.Int64Value(-1000), "timestamp_ntz", `"1969-12-31T23:59:59.999999"`},
		"clock int96":       {leaf(parquet.Int96Type), parquet.Int96Value(day), "timestamp_ntz", `"1970-01-02T00:00:00.000000"`},
		"clock as instant":  {parquet.TimestampAdjusted(parquet.Microsecond, false), parquet.Int64Value(1), "timestamp", `"1970-01-01T00:00:00.000001Z"`},
		"instant as clock":  {parquet.Timestamp(parquet.Microsecond), parquet.Int64Value(1), "timestamp_ntz", "!where timestamp_ntz"},
		"bare as clock":     {leaf(parquet.Int64Type), parquet.Int64Value(1), "timestamp_ntz", "!where timestamp_ntz"},
		"bare int64":        {leaf(parquet.Int64Type), parquet.Int64Value(1), "timestamp", "!INT(64,true) where timestamp"},
		"int32 wider":       {leaf(parquet.Int32Type), parquet.Int32Value(-5), "int64", `-5`},
		"int8 wider":        {parquet.Int(8), parquet.Int32Value(-5), "int32", `-5`},
		"int16 same":        {parquet.Int(16), parquet.Int32Value(-5), "int16", `-5`},
		"int16 narrower":    {parquet.Int(16), parquet.Int32Value(-5), "int8", "!INT(16,true) where int8"},
		"int64 narrower":    {leaf(parquet.Int64Type), parquet.Int64Value(1), "int32", "!INT(64,true) where int32"},
		"int32 for small":   {leaf(parquet.Int32Type), parquet.Int32Value(7), "int8", "!INT(32,true) where int8"},
		"int8 too large":    {parquet.Int(8), parquet.Int32Value(128), "int8", "!range"},
		"unsigned":          {parquet.Uint(32), parquet.Int32Value(7), "int64", "!INT(32,false) where int64"},
		"date as int":       {parquet.Date(), parquet.Int32Value(7), "int32", "!DATE where int32"},
		"float wider":       {leaf(parquet.FloatType), parquet.FloatValue(0.5), "double", `0.5`},
		"double narrower":   {leaf(parquet.DoubleType), parquet.DoubleValue(0.5), "float", "!DOUBLE where float"},
		"decimal bytes":     {parquet.Decimal(2, 9, parquet.ByteArrayType), parquet.ByteArrayValue([]byte{0xff, 0x85}), "decimal(9,2)", `-1.23`},
		"decimal long":      {parquet.Decimal(2, 9, parquet.FixedLenByteArrayType(20)), parquet.FixedLenByteArrayValue(append(bytes.Repeat([]byte{0xff}, 19), 0x85)), "decimal(12,2)", `-1.23`},
		"decimal too long":  {parquet.Decimal(2, 9, parquet.FixedLenByteArrayType(20)), parquet.FixedLenByteArrayValue(bytes.Repeat([]byte{0x7f}, 20)), "decimal(12,2)", "!out of range"},
		"decimal int64":     {parquet.Decimal(2, 9, parquet.Int64Type), parquet.Int64Value(-123), "decimal(20,2)", `-1.23`},
		"decimal too many":  {parquet.Decimal(2, 9, parquet.Int64Type), parquet.Int64Value(1e12), "decimal(9,2)", "!range"},
		"decimal scale":     {parquet.Decimal(3, 9, parquet.Int64Type), parquet.Int64Value(1), "decimal(9,2)", "!where decimal(9,2)"},
		"decimal precision": {parquet.Decimal(2, 10, parquet.Int64Type), parquet.Int64Value(1), "decimal(9,2)", "!where decimal(9,2)"},
		"bare text":         {leaf(parquet.ByteArrayType), parquet.ByteArrayValue([]byte("é")), "string", `"é"`},
		"broken text":       {leaf(parquet.ByteArrayType), parquet.ByteArrayValue([]byte("\xff")), "string", "!UTF-8"},
		"enum":              {parquet.Enum(), parquet.ByteArrayValue([]byte("A")), "string", `"A"`},
		"fixed bytes":       {leaf(parquet.FixedLenByteArrayType(3)), parquet.FixedLenByteArrayValue([]byte{1, 2, 3}), "binary", `"AQID"`},
		"uuid":              {parquet.UUID(), parquet.FixedLenByteArrayValue(make([]byte, 16)), "binary", "!UUID where binary"},
		"bool as int":       {leaf(parquet.BooleanType), parquet.BooleanValue(true), "int32", "!BOOLEAN where int32"},
		"leaf for list":     {leaf(parquet.Int32Type), parquet.Int32Value(1), "list<int32>", "!INT(32,true) where list<int32>"},
		"leaf for struct":   {leaf(parquet.Int32Type), parquet.Int32Value(1), "struct<a: int32>", "!INT(32,true) where struct"},
		"no column":         {leaf(parquet.Int32Type), parquet.Int32Value(1), "int32 not null", "!no column w"},
	} {
		file := foreign(t, parquet.Group{"v": parquet.Optional(c.node)}, parquet.Row{c.value.Level(0, 1, 0)}, parquet.Row{parquet.Value{}.Level(0, 0, 0)})
		column := "v"
		if name == "no column" {
			column = "w"
		}
		s := rowstest.SchemaOf(t, column, c.typ)
		got, err := tryRead(file, s)
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) || got.Len() != 0 {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
			continue
		}
		if err != nil || got.Len() != 2 || string(got.Column(0).AppendJSON(nil, 0)) != c.want || got.Column(0).Valid[1] != 0 {
			t.Errorf("%s: %v, %d rows, want %s", name, err, got.Len(), c.want)
		}
	}
}

// tryRead reads a file as far as it goes.
func tryRead(file []byte, s *rows.Schema) (*rows.Table, error) {
	out := rows.NewTable(s)
	r, err := parquetfile.OpenReader(bytes.NewReader(file), int64(len(file)), s, parquetfile.ReadOptions{})
	if err != nil {
		return out, err
	}
	for {
		if _, err = r.Read(out, 1000); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return out, errors.Join(err, r.Close())
}

// TestOldLists: lists of two levels and with other names, known by their shape alone.
func TestOldLists(t *testing.T) {
	i32 := parquet.Leaf(parquet.Int32Type)
	list := func(entries parquet.Node) parquet.Node { return parquet.Group{"x": parquet.Repeated(entries)} }
	named := func(name string, entries parquet.Node) parquet.Node {
		return parquet.Group{name: parquet.Repeated(entries)}
	}
	row := func(values ...parquet.Value) parquet.Row { return values }
	v := func(x int32, rep, def int) parquet.Value { return parquet.Int32Value(x).Level(rep, def, 0) }
	null := func(rep, def int) parquet.Value { return parquet.Value{}.Level(rep, def, 0) }
	for name, c := range map[string]struct {
		node parquet.Node
		row  parquet.Row
		typ  string
		want string
	}{
		"two levels":            {list(i32), row(v(1, 0, 1), v(2, 1, 1)), "list<int32>", `[1,2]`},
		"two levels, empty":     {list(i32), row(null(0, 0)), "list<int32>", `[]`},
		"two levels, null":      {parquet.Optional(list(i32)), row(null(0, 0)), "list<int32>", `null`},
		"two levels of groups":  {named("array", parquet.Group{"a": i32}), row(v(1, 0, 1), v(2, 1, 1)), "list<struct<a: int32>>", `[{"a":1},{"a":2}]`},
		"tuple":                 {named("v_tuple", parquet.Group{"a": i32}), row(v(1, 0, 1)), "list<struct<a: int32>>", `[{"a":1}]`},
		"bag":                   {named("bag", parquet.Group{"array_element": parquet.Optional(i32)}), row(v(1, 0, 2), null(1, 1)), "list<int32>", `[1,null]`},
		"null for not null":     {named("bag", parquet.Group{"array_element": parquet.Optional(i32)}), row(v(1, 0, 2), null(1, 1)), "list<int32 not null>", ``},
		"two levels within two": {list(list(i32)), row(v(1, 0, 2), v(2, 2, 2), null(1, 1)), "list<list<int32>>", `[[1,2],[]]`},
	} {
		s := rowstest.SchemaOf(t, "v", c.typ)
		got, err := tryRead(foreign(t, parquet.Group{"v": c.node}, c.row), s)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "null where none is taken") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Len() != 1 || string(got.Column(0).AppendJSON(nil, 0)) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestColumnsOfAFile: those that it lacks are null or fixed, those that nobody asked for stay out, at all levels.
func TestColumnsOfAFile(t *testing.T) {
	in := rowstest.SchemaOf(t, "a", "int32", "gone", "string", "s", "struct<x: int32, l: list<struct<y: int32>>>", "t", "struct<l: list<int32>, k: int8>")
	tab := fill(t, in, `{"a":1,"gone":"x","s":{"x":2,"l":[{"y":3},null,{}]},"t":{"l":[1,2,3]}}`, `{"s":{"l":[]},"t":{}}`, `{}`, `{"a":4,"t":{"l":[5]}}`)
	var out bytes.Buffer
	encode(t, newWriter(t, in, parquetfile.None), &out, []parquetfile.Rows{{Table: tab}})
	s := rowstest.SchemaOf(t, "day", "date", "new", "list<string>", "s", "struct<l: list<struct<z: date, y: int64>>, w: binary>", "a", "int64 not null", "t", "struct<other: int8>")
	opts := parquetfile.ReadOptions{Fixed: map[int]rows.Value{0: {Int: 1}}, Only: []int{0, 1, 2, 4}}
	got := readAll(t, out.Bytes(), s, opts, 3)
	for i, want := range []string{
		`{"day":"1970-01-02","new":null,"s":{"l":[{"z":null,"y":3},null,{"z":null,"y":null}],"w":null},"a":null,"t":{"other":null}}`,
		`{"day":"1970-01-02","new":null,"s":{"l":[],"w":null},"a":null,"t":{"other":null}}`,
		`{"day":"1970-01-02","new":null,"s":null,"a":null,"t":null}`,
		`{"day":"1970-01-02","new":null,"s":null,"a":null,"t":{"other":null}}`,
	} {
		if g := string(rowstest.JSON(got, i)); g != want {
			t.Errorf("row %d: %s, want %s", i, g, want)
		}
	}
	none := rowstest.SchemaOf(t, "day", "date")
	if got := readAll(t, out.Bytes(), none, parquetfile.ReadOptions{Fixed: map[int]rows.Value{0: {Null: true}}}, 3); got.Len() != 4 || got.Column(0).Valid[3] != 0 {
		t.Errorf("%d rows without a column of the file", got.Len())
	}
}

// TestBrokenFilesAreErrors changes bytes of a file, and cuts it: what comes out is an error or rows, never a panic.
func TestBrokenFilesAreErrors(t *testing.T) {
	s := rowstest.SchemaOf(t, "a", "int32", "s", "string", "l", "list<struct<b: boolean, d: decimal(30,2)>>", "m", "map<string, timestamp>")
	r := rand.New(rand.NewPCG(1, 2))
	tab := rows.NewTable(s)
	for i := range 300 {
		if err := tab.Append(fmt.Appendf(nil, `{"a":%d,"s":"v%d","l":[{"b":true,"d":%d.5},null],"m":{"k%d":"2024-01-01T00:00:00Z"}}`, i, i%7, i, i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, codec := range []parquetfile.Codec{parquetfile.None, parquetfile.Snappy} {
		var out bytes.Buffer
		encode(t, newWriter(t, s, codec), &out, []parquetfile.Rows{{Table: tab}})
		whole := out.Bytes()
		failed := 0
		for range 1500 {
			b := bytes.Clone(whole)
			for range 1 + r.IntN(3) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			if _, err := tryRead(b, s); err != nil {
				failed++
			}
		}
		if failed < 500 {
			t.Errorf("%s: only %d of 1500 broken files were noticed", codec, failed)
		}
		for n := 0; n < len(whole); n += 41 {
			if _, err := tryRead(whole[:n], s); err == nil {
				t.Errorf("%s: a file cut to %d of %d bytes was read", codec, n, len(whole))
			}
		}
	}
}

// TestErrorsEndAReader: it does not go on after what it could not read, nor after its end.
func TestErrorsEndAReader(t *testing.T) {
	file := foreign(t, parquet.Group{"v": parquet.Optional(parquet.Int(8))}, parquet.Row{parquet.Int32Value(1).Level(0, 1, 0)}, parquet.Row{parquet.Int32Value(1000).Level(0, 1, 0)})
	s := rowstest.SchemaOf(t, "v", "int8")
	r, err := parquetfile.OpenReader(bytes.NewReader(file), int64(len(file)), s, parquetfile.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tab := rows.NewTable(s)
	if n, err := r.Read(tab, 1); n != 1 || err != nil || r.NumRows() != 2 {
		t.Fatal(n, err)
	}
	for range 2 {
		if n, err := r.Read(tab, 5); n != 0 || err == nil || !strings.Contains(err.Error(), "column v") || tab.Len() != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(tab, 1); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a closed reader: %v", err)
	}
}

// TestRunsOfBooleans: a run of true is true for all its values, in flat columns and lists, whatever the library makes of it.
func TestRunsOfBooleans(t *testing.T) {
	s := rowstest.SchemaOf(t, "b", "boolean", "l", "list<boolean>")
	bools := func() parquet.Node { return parquet.Encoded(parquet.Leaf(parquet.BooleanType), &parquet.RLE) }
	// The library's own encoder packs all values; a file of pyarrow has the runs.
	file := foreign(t, parquet.Group{"b": parquet.Optional(bools()), "l": parquet.Group{"x": parquet.Repeated(bools())}},
		parquet.Row{parquet.BooleanValue(true).Level(0, 1, 0), parquet.BooleanValue(false).Level(0, 1, 1), parquet.BooleanValue(true).Level(1, 1, 1)},
		parquet.Row{parquet.Value{}.Level(0, 0, 0), parquet.Value{}.Level(0, 0, 1)},
		parquet.Row{parquet.BooleanValue(true).Level(0, 1, 0), parquet.BooleanValue(true).Level(0, 1, 1)})
	if e := metadata(t, file).RowGroups[0].Columns[0].MetaData.Encoding; len(e) == 0 || e[len(e)-1] != format.RLE {
		t.Errorf("the file has encodings %v", e)
	}
	got, err := tryRead(file, s)
	if err != nil || got.Len() != 3 {
		t.Fatal(got.Len(), err)
	}
	for i, want := range []string{`{"b":true,"l":[false,true]}`, `{"b":null,"l":[]}`, `{"b":true,"l":[true]}`} {
		if g := string(rowstest.JSON(got, i)); g != want {
			t.Errorf("row %d: %s, want %s", i, g, want)
		}
	}
}
