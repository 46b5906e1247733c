// Package rowstest makes schemas and values for property tests of rows: all types, nested ones included, with what lies at
// the edges of their ranges. It is for tests alone.
package rowstest

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
)

// SchemaOf makes a schema of names and types in turn, as a job file spells them.
func SchemaOf(tb testing.TB, columns ...string) *rows.Schema {
	tb.Helper()
	var list []rows.Column
	for i := 0; i < len(columns); i += 2 {
		typ, err := rows.ParseType(columns[i+1])
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, rows.Column{Name: columns[i], Type: typ})
	}
	s, err := rows.NewSchema(list)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Schema draws a schema of up to a few columns that nest up to depth levels.
func Schema(t *rapid.T, depth int) *rows.Schema {
	s, err := rows.NewSchema(columns(t, depth))
	if err != nil {
		t.Fatalf("a drawn schema is wrong: %v", err)
	}
	return s
}

func columns(t *rapid.T, depth int) []rows.Column {
	n := rapid.IntRange(1, 4).Draw(t, "columns")
	out := make([]rows.Column, n)
	for i := range out {
		name := rapid.SampledFrom([]string{"a", "key", "long_name_of_a_column", "élan", "two words", "x.y", "0", `q"\`}).Draw(t, "name")
		out[i] = rows.Column{Name: name + strconv.Itoa(i), Type: Type(t, depth)}
	}
	return out
}

var scalars = []rows.Kind{
	rows.String, rows.Boolean, rows.Int8, rows.Int16, rows.Int32, rows.Int64, rows.Float, rows.Double, rows.Decimal, rows.Timestamp, rows.TimestampNTZ,
	rows.Date, rows.Binary,
}

var keys = []rows.Kind{
	rows.String, rows.Boolean, rows.Int8, rows.Int16, rows.Int32, rows.Int64, rows.Decimal, rows.Timestamp, rows.TimestampNTZ, rows.Date, rows.Binary,
}

// Type draws a type that nests up to depth levels.
func Type(t *rapid.T, depth int) rows.Type {
	kinds := scalars
	if depth > 0 {
		kinds = append([]rows.Kind{rows.List, rows.Map, rows.Struct, rows.List, rows.Struct}, scalars...)
	}
	typ := typeOf(t, rapid.SampledFrom(kinds).Draw(t, "kind"), depth)
	typ.Required = rapid.IntRange(0, 3).Draw(t, "required") == 0
	return typ
}

func typeOf(t *rapid.T, kind rows.Kind, depth int) rows.Type {
	typ := rows.Type{Kind: kind}
	switch kind {
	case rows.Decimal:
		typ.Precision = rapid.OneOf(rapid.IntRange(1, 38), rapid.SampledFrom([]int{9, 10, 18, 19, 38})).Draw(t, "precision")
		typ.Scale = rapid.IntRange(0, typ.Precision).Draw(t, "scale")
	case rows.Timestamp:
		typ.Unit = rapid.SampledFrom([]rows.Unit{rows.NoUnit, rows.Seconds, rows.Millis, rows.Micros}).Draw(t, "unit")
	case rows.Struct:
		typ.Fields = columns(t, depth-1)
	case rows.List, rows.Map:
		inner := Type(t, depth-1)
		typ.Elem = &inner
		if kind == rows.Map {
			key := typeOf(t, rapid.SampledFrom(keys).Draw(t, "key kind"), 0)
			typ.Key = &key
		}
	}
	return typ
}

// Object draws a row as the JSON object that rows.Table writes again: canonical text, all columns, in order.
func Object(t *rapid.T, s *rows.Schema) []byte {
	return appendObject(t, nil, s.Columns())
}

func appendObject(t *rapid.T, dst []byte, columns []rows.Column) []byte {
	dst = append(dst, '{')
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rows.AppendQuoted(dst, []byte(c.Name)), ':')
		dst = appendValue(t, dst, c.Type)
	}
	return append(dst, '}')
}

func appendValue(t *rapid.T, dst []byte, typ rows.Type) []byte {
	if !typ.Required && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return append(dst, "null"...)
	}
	switch typ.Kind {
	case rows.Struct:
		return appendObject(t, dst, typ.Fields)
	case rows.List:
		dst = append(dst, '[')
		for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(t, dst, *typ.Elem)
		}
		return append(dst, ']')
	case rows.Map:
		return appendMap(t, dst, typ)
	}
	if quoted(typ.Kind) {
		return rows.AppendQuoted(dst, []byte(Text(t, typ)))
	}
	text := Text(t, typ)
	if text == "NaN" || strings.HasSuffix(text, "Infinity") {
		return append(append(append(dst, '"'), text...), '"')
	}
	return append(dst, text...)
}

func appendMap(t *rapid.T, dst []byte, typ rows.Type) []byte {
	dst = append(dst, '{')
	seen := map[string]bool{}
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		key := Text(t, *typ.Key)
		if seen[key] {
			continue
		}
		if len(seen) > 0 {
			dst = append(dst, ',')
		}
		seen[key] = true
		dst = append(rows.AppendQuoted(dst, []byte(key)), ':')
		dst = appendValue(t, dst, *typ.Elem)
	}
	return append(dst, '}')
}

func quoted(k rows.Kind) bool {
	return k == rows.String || k == rows.Binary || k == rows.Timestamp || k == rows.TimestampNTZ || k == rows.Date
}

// Text draws a value of a type that is not nested, as rows.Vector.AppendText writes it.
func Text(t *rapid.T, typ rows.Type) string {
	switch typ.Kind {
	case rows.String:
		return rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{"", "\x00", "\u2028\U0010ffff", strings.Repeat("long ", 40), `"\/`})).Draw(t, "string")
	case rows.Binary:
		return base64.StdEncoding.EncodeToString(rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "bytes"))
	case rows.Boolean:
		return strconv.FormatBool(rapid.Bool().Draw(t, "bool"))
	case rows.Int8:
		return strconv.Itoa(int(rapid.Int8().Draw(t, "int8")))
	case rows.Int16:
		return strconv.Itoa(int(rapid.Int16().Draw(t, "int16")))
	case rows.Int32:
		return strconv.Itoa(int(rapid.OneOf(rapid.Int32(), rapid.SampledFrom([]int32{math.MinInt32, math.MaxInt32, 0})).Draw(t, "int32")))
	case rows.Int64:
		return strconv.FormatInt(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0})).Draw(t, "int64"), 10)
	case rows.Float:
		return float(float64(rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1e-45})).Draw(t, "float")), 32)
	case rows.Double:
		return float(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 5e-324})).Draw(t, "double"), 64)
	case rows.Decimal:
		return decimal(t, typ)
	case rows.Date:
		days := rapid.OneOf(rapid.Int64Range(-719162, 2932896), rapid.SampledFrom([]int64{-719162, 2932896, -1, 0})).Draw(t, "days")
		return time.Unix(days*86400, 0).UTC().Format(time.DateOnly)
	}
	const first, last = -62135596800000000, 253402300799999999
	micros := rapid.OneOf(rapid.Int64Range(first, last), rapid.SampledFrom([]int64{first, last, -1, 0, 1})).Draw(t, "micros")
	text := time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000Z")
	if typ.Kind == rows.TimestampNTZ {
		return strings.TrimSuffix(text, "Z")
	}
	return text
}

func float(f float64, size int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, size)
}

func decimal(t *rapid.T, typ rows.Type) string {
	digits := rapid.OneOf(rapid.StringMatching(fmt.Sprintf("[0-9]{1,%d}", typ.Precision)), rapid.Just(strings.Repeat("9", typ.Precision)), rapid.Just("0")).Draw(t, "digits")
	x, _ := new(big.Int).SetString(digits, 10)
	text := x.String()
	if len(text) <= typ.Scale {
		text = strings.Repeat("0", typ.Scale-len(text)+1) + text
	}
	if typ.Scale > 0 {
		text = text[:len(text)-typ.Scale] + "." + text[len(text)-typ.Scale:]
	}
	if x.Sign() != 0 && rapid.Bool().Draw(t, "negative") {
		return "-" + text
	}
	return text
}

// JSON returns a row as a JSON object.
func JSON(t *rows.Table, row int) []byte {
	out := []byte("{")
	for i := range t.Schema().Len() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rows.AppendQuoted(out, []byte(t.Schema().Column(i).Name)), ':')
		out = t.Column(i).AppendJSON(out, row)
	}
	return append(out, '}')
}

// Describe returns a schema's columns and their types.
func Describe(s *rows.Schema) string {
	return rows.Type{Kind: rows.Struct, Fields: s.Columns()}.String()
}

// Table draws a table of n rows, and returns the objects that it was made of.
func Table(t *rapid.T, s *rows.Schema, n int) (*rows.Table, [][]byte) {
	tab := rows.NewTable(s)
	objects := make([][]byte, n)
	for i := range objects {
		objects[i] = Object(t, s)
		if err := tab.Append(objects[i]); err != nil {
			t.Fatalf("%s does not take %s: %v", Describe(s), objects[i], err)
		}
	}
	return tab, objects
}
