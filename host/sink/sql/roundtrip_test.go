package sql_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestRoundTrip: any schema and any values go through JSON, a row and a database and come back equal, by every way of writing.
func TestRoundTrip(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			newWorld(t, kind)
			n := 0
			rapid.Check(t, func(r *rapid.T) {
				w := newWorld(t, kind)
				types := rapid.SliceOfN(typeGen(3), 1, 6).Draw(r, "types")
				columns := []rows.Column{{Name: "id", Type: rows.Type{Kind: rows.Int32, Required: true}}}
				for i, typ := range types {
					columns = append(columns, rows.Column{Name: fmt.Sprintf("c %d\"é", i), Type: typ})
				}
				s, err := rows.NewSchema(columns)
				must(t, err)
				count := rapid.IntRange(1, 12).Draw(r, "rows")
				var objects []kv
				for i := range count {
					b := fmt.Appendf(nil, `{"id":%d`, i)
					for _, c := range columns[1:] {
						b = append(rows.AppendQuoted(append(b, ','), []byte(c.Name)), ':')
						b = append(b, valueGen(c.Type, kind).Draw(r, c.Name)...)
					}
					objects = append(objects, kv{value: string(append(b, '}'))})
				}
				sink := sql.Sink{Table: "x", Schema: s, Create: true}
				switch rapid.SampledFrom([]string{"append", "upsert", "statement"}).Draw(r, "way") {
				case "upsert":
					sink.Key = []string{"id"}
				case "statement":
					sink.Statement = statementFor(s)
				}
				target := w.open(t, sink)
				publish(t, target, 0, objects)
				comeBack(r, w, s, objects)
				must(t, target.Close())
				n += count * len(types)
			})
			t.Logf("%d values came back equal", n)
		})
	}
}

func statementFor(s *rows.Schema) string {
	var names, params []string
	for _, c := range s.Columns() {
		names = append(names, sql.Quote(c.Name))
		params = append(params, ":"+sql.Quote(c.Name))
	}
	return "insert into x (" + strings.Join(names, ", ") + ") values (" + strings.Join(params, ", ") + ")"
}

// comeBack compares what the database has with the rows that the objects stand for.
func comeBack(r *rapid.T, w *world, s *rows.Schema, objects []kv) {
	table := rows.NewTable(s)
	for _, o := range objects {
		if err := table.Append(o.record().Value); err != nil {
			r.Fatalf("%v: %v", o, err)
		}
	}
	for at, c := range s.Columns() {
		got := w.run(r, fmt.Sprintf("SELECT CASE WHEN c IS NULL THEN 'null' ELSE 'is' END, %s FROM (SELECT %s AS c, id FROM x) AS x ORDER BY id", shown(w.kind, c.Type), sql.Quote(c.Name)))
		if len(got) != table.Len() {
			r.Fatalf("%d rows, want %d", len(got), table.Len())
		}
		v := table.Column(at)
		for row := range table.Len() {
			if null := v.Valid[row] == 0; null != (got[row][0] == "null") {
				r.Fatalf("%s %s row %d: null is %t, in the database %s", c.Name, c.Type, row, null, got[row][0])
			} else if !null && !same(r, w, v, row, got[row][1]) {
				r.Fatalf("%s %s row %d: %s, in the database %q", c.Name, c.Type, row, v.AppendText(nil, row), got[row][1])
			}
		}
	}
}

// shown is an expression that shows a column c in a form that depends on no setting.
func shown(kind string, t rows.Type) string {
	if kind == "sqlite" {
		if t.Kind == rows.Binary {
			return "hex(c)"
		}
		return "c"
	}
	switch t.Kind {
	case rows.Binary:
		return "encode(c, 'hex')"
	case rows.Timestamp, rows.TimestampNTZ:
		return "(extract(epoch FROM c) * 1000000)::bigint::text"
	case rows.Date:
		return "(c - date '1970-01-01')::text"
	}
	return "c::text"
}

func same(r *rapid.T, w *world, v *rows.Vector, row int, got string) bool {
	value := v.Value
	switch v.Type.Kind {
	case rows.Boolean:
		return (got == "true" || got == "1") == (v.Bools[row] == 1)
	case rows.Float, rows.Double:
		want := value(row).Float
		f, err := strconv.ParseFloat(strings.Replace(got, "Infinity", "Inf", 1), 64)
		if v.Type.Kind == rows.Float && w.kind == "postgres" {
			f = float64(float32(f))
		}
		if err != nil || math.IsNaN(want) {
			return err == nil && math.IsNaN(f)
		}
		return f == want && (w.kind == "sqlite" || math.Signbit(f) == math.Signbit(want))
	case rows.Binary:
		return strings.ToLower(got) == hex.EncodeToString(v.Bytes(row))
	case rows.Timestamp, rows.TimestampNTZ, rows.Date:
		if w.kind == "postgres" {
			return got == strconv.FormatInt(value(row).Int, 10)
		}
	case rows.List, rows.Map, rows.Struct:
		want := string(v.AppendJSON(nil, row))
		if w.kind == "postgres" {
			return w.sameJSON(r, want, got)
		}
		return got == want
	}
	return got == string(v.AppendText(nil, row))
}

// sameJSON lets the server compare: it writes numbers in another form.
func (w *world) sameJSON(r *rapid.T, a, b string) bool {
	got := w.run(r, "SELECT ('"+strings.ReplaceAll(a, "'", "''")+"'::jsonb = '"+strings.ReplaceAll(b, "'", "''")+"'::jsonb)::text")
	return len(got) == 1 && got[0][0] == "true"
}

// typeGen draws a type; nested ones up to a depth.
func typeGen(depth int) *rapid.Generator[rows.Type] {
	scalars := []rows.Kind{
		rows.String, rows.Boolean, rows.Int8, rows.Int16, rows.Int32, rows.Int64, rows.Float, rows.Double, rows.Decimal, rows.Decimal,
		rows.Timestamp, rows.TimestampNTZ, rows.Date, rows.Binary,
	}
	if depth > 0 {
		scalars = append(scalars, rows.List, rows.Map, rows.Struct)
	}
	return rapid.Custom(func(r *rapid.T) rows.Type {
		typ := rows.Type{Kind: rapid.SampledFrom(scalars).Draw(r, "kind")}
		switch typ.Kind {
		case rows.Decimal:
			typ.Precision = rapid.IntRange(1, 38).Draw(r, "precision")
			typ.Scale = rapid.IntRange(0, typ.Precision).Draw(r, "scale")
		case rows.List:
			elem := typeGen(depth-1).Draw(r, "element")
			typ.Elem = &elem
		case rows.Map:
			elem := typeGen(depth-1).Draw(r, "value")
			typ.Key, typ.Elem = &rows.Type{Kind: rapid.SampledFrom([]rows.Kind{rows.String, rows.Int64}).Draw(r, "key")}, &elem
		case rows.Struct:
			for i, f := range rapid.SliceOfN(typeGen(depth-1), 1, 3).Draw(r, "fields") {
				typ.Fields = append(typ.Fields, rows.Column{Name: fmt.Sprintf("f%d", i), Type: f})
			}
		}
		return typ
	})
}

// valueGen draws a JSON value of a type, sometimes null.
func valueGen(t rows.Type, kind string) *rapid.Generator[string] {
	return rapid.Custom(func(r *rapid.T) string {
		if rapid.IntRange(0, 9).Draw(r, "null") == 0 {
			return "null"
		}
		return drawValue(r, t, kind)
	})
}

func drawValue(r *rapid.T, t rows.Type, kind string) string {
	whole := func(bits int) string {
		edge := int64(1)<<(bits-1) - 1
		return strconv.FormatInt(rapid.OneOf(rapid.Int64Range(-edge-1, edge), rapid.SampledFrom([]int64{0, 1, -1, edge, -edge - 1})).Draw(r, "n"), 10)
	}
	switch t.Kind {
	case rows.Boolean:
		return strconv.FormatBool(rapid.Bool().Draw(r, "b"))
	case rows.Int8:
		return whole(8)
	case rows.Int16:
		return whole(16)
	case rows.Int32:
		return whole(32)
	case rows.Int64:
		return whole(64)
	case rows.Float, rows.Double:
		return drawFloat(r, t, kind)
	case rows.Decimal:
		return drawDecimal(r, t)
	case rows.Timestamp, rows.TimestampNTZ:
		us := rapid.OneOf(rapid.Int64Range(-62_135_596_800_000_000, 253_402_300_799_999_999), rapid.SampledFrom([]int64{0, -1, -62_135_596_800_000_000, 253_402_300_799_999_999, 946_684_800_000_000})).Draw(r, "us")
		if t.Kind == rows.TimestampNTZ {
			return `"` + string(rows.AppendLocal(nil, us)) + `"`
		}
		return `"` + string(rows.AppendTimestamp(nil, us, 'T', true)) + `"`
	case rows.Date:
		days := rapid.OneOf(rapid.Int64Range(-719_162, 2_932_896), rapid.SampledFrom([]int64{0, -719_162, 2_932_896, 10_957})).Draw(r, "days")
		return `"` + string(rows.AppendTimestamp(nil, days*86_400_000_000, 'T', false)[:10]) + `"`
	case rows.Binary:
		return `"` + base64.StdEncoding.EncodeToString(rapid.SliceOf(rapid.Byte()).Draw(r, "bytes")) + `"`
	case rows.String:
		text := strings.ReplaceAll(strings.ToValidUTF8(rapid.String().Draw(r, "text"), "?"), "\x00", "0")
		return string(rows.AppendQuoted(nil, []byte(text)))
	case rows.List:
		return "[" + strings.Join(rapid.SliceOfN(valueGen(*t.Elem, kind), 0, 4).Draw(r, "list"), ",") + "]"
	case rows.Map:
		var parts []string
		for i := range rapid.IntRange(0, 3).Draw(r, "entries") {
			parts = append(parts, fmt.Sprintf(`"%d":%s`, i, valueGen(*t.Elem, kind).Draw(r, "entry")))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	var parts []string
	for _, f := range t.Fields {
		parts = append(parts, fmt.Sprintf("%q:%s", f.Name, valueGen(f.Type, kind).Draw(r, f.Name)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func drawFloat(r *rapid.T, t rows.Type, kind string) string {
	words := []string{`"Infinity"`, `"-Infinity"`, "0", "-0.0", "1e-40"}
	if kind == "postgres" {
		words = append(words, `"NaN"`)
	}
	size := 64
	var f float64
	if t.Kind == rows.Float {
		size, f = 32, float64(rapid.Float32().Draw(r, "f"))
	} else {
		f = rapid.Float64().Draw(r, "f")
	}
	if math.IsInf(f, 0) || math.IsNaN(f) || rapid.IntRange(0, 4).Draw(r, "word") == 0 {
		return rapid.SampledFrom(words).Draw(r, "special")
	}
	return strconv.FormatFloat(f, 'g', -1, size)
}

func drawDecimal(r *rapid.T, t rows.Type) string {
	n := rapid.IntRange(1, t.Precision).Draw(r, "digits")
	var digits []byte
	for range n {
		digits = append(digits, byte('0'+rapid.IntRange(0, 9).Draw(r, "digit")))
	}
	for len(digits) <= t.Scale {
		digits = append([]byte{'0'}, digits...)
	}
	text := strings.TrimLeft(string(digits[:len(digits)-t.Scale]), "0")
	if text == "" {
		text = "0"
	}
	if t.Scale > 0 {
		text += "." + string(digits[len(digits)-t.Scale:])
	}
	if rapid.Bool().Draw(r, "negative") {
		text = "-" + text
	}
	return text
}
