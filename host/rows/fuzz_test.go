package rows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

// FuzzAppend: no input makes the table panic, what the standard library calls invalid JSON is refused, and a row that was
// taken reads back the same from its own text.
func FuzzAppend(f *testing.F) {
	for _, s := range []string{
		`{"s":"a\u00e9\n","b":true,"i":-7,"l":12e3,"d":1.5,"c":"1.25","w":-3.5,"t":"2020-02-29T01:02:03.4+05:06","y":"2020-02-29","x":"AA==","n":"2020-02-29 01:02:03.4"}`,
		`{"s":null,"z":[{},[],"\"",-0.1E+2]}`, `{"s":"12345678","s":"x"}`, `{"s":-1.50,"b":"true","i":"-7","l":"12e3","d":"1.5","c":""}`, "{\"s\":\"\xf0\x9f\x98\x80\"}", `{`,
	} {
		f.Add([]byte(s))
	}
	schema := rowstest.SchemaOf(f, "s", "string", "b", "boolean", "i", "int32", "l", "int64", "d", "double", "c", "decimal(9,2)",
		"w", "decimal(30,5)", "t", "timestamp", "y", "date", "x", "binary", "n", "timestamp_ntz")
	f.Fuzz(func(t *testing.T, object []byte) {
		tab := rows.NewTable(schema)
		if err := tab.Append([]byte(`{"s":"before"}`)); err != nil {
			t.Fatal(err)
		}
		_, wellFormed := rows.CheckJSON(object)
		if wellFormed && !json.Valid(object) {
			t.Fatalf("%q is taken for JSON", object)
		}
		err := tab.Append(object)
		var m *sink.Misfit
		if err != nil && (!errors.As(err, &m) || m.Code == "" || tab.Len() != 1 || string(tab.Column(0).Bytes(0)) != "before") {
			t.Fatalf("%q: %#v, %d rows", object, err, tab.Len())
		}
		if err != nil {
			return
		}
		if !wellFormed {
			t.Fatalf("%q is a row, but no JSON", object)
		}
		again := rows.NewTable(schema)
		first := rowText(tab, 1)
		if err := again.Append(first); err != nil {
			t.Fatalf("%q became %q: %v", object, first, err)
		}
		if second := rowText(again, 0); !bytes.Equal(first, second) {
			t.Fatalf("%q became %q, then %q", object, first, second)
		}
	})
}

func rowText(t *rows.Table, row int) []byte {
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

// TestCheckJSONAgreesWithTheStandardLibrary but for UTF-8 and depth, in which it is stricter.
func TestCheckJSONAgreesWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"{", "}", "[", "]", ",", ":", `"a"`, `"\u0041\n"`, `"é"`, "0", "-1", "1.5e-3", "01", "true", "false", "null", " ", "\n", `"`, "\\", "1e",
		}), 0, 12).Draw(t, "parts")
		text := []byte{}
		for _, p := range parts {
			text = append(text, p...)
		}
		if _, ok := rows.CheckJSON(text); ok != json.Valid(text) {
			t.Fatalf("%q: %v, the standard library says %v", text, ok, json.Valid(text))
		}
	})
}

// TestDecimalsAreExact compares with big.Rat.
func TestDecimalsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		scale := rapid.IntRange(0, precision).Draw(t, "scale")
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		s, err := rows.NewSchema([]rows.Column{{Name: "v", Type: rows.Type{Kind: rows.Decimal, Precision: precision, Scale: scale}}})
		if err != nil {
			t.Fatal(err)
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		scaled := new(big.Rat).Mul(exact, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		limit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil))
		want := scaled.IsInt() && new(big.Rat).Abs(scaled).Cmp(limit) < 0
		tab := rows.NewTable(s)
		err = tab.Append([]byte(`{"v":` + text + `}`))
		if (err == nil) != want {
			t.Fatalf("%s as decimal(%d,%d): %v", text, precision, scale, err)
		}
		if err != nil {
			return
		}
		got, _ := new(big.Rat).SetString(string(tab.Column(0).AppendText(nil, 0)))
		if got.Cmp(exact) != 0 {
			t.Fatalf("%s became %s", text, got)
		}
	})
}

// TestTimestampsAgreeWithTheStandardLibrary over all years that a column holds.
func TestTimestampsAgreeWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := rapid.SampledFrom([]string{"2006-01-02T15:04:05.999999", "2006-01-02 15:04:05.000000"}).Draw(t, "form")
		sec := rapid.Int64Range(-62135510400, 253402214400).Draw(t, "seconds")
		micro := rapid.Int64Range(0, 999999).Draw(t, "micros")
		zone := time.FixedZone("", rapid.IntRange(-23*60, 23*60).Draw(t, "zone")*60)
		at := time.Unix(sec, micro*1000).In(zone)
		s, err := rows.NewSchema([]rows.Column{{Name: "t", Type: rows.Type{Kind: rows.Timestamp}}, {Name: "d", Type: rows.Type{Kind: rows.Date}}, {Name: "n", Type: rows.Type{Kind: rows.TimestampNTZ}}})
		if err != nil {
			t.Fatal(err)
		}
		tab := rows.NewTable(s)
		object := `{"t":"` + at.Format(time.RFC3339Nano) + `","d":"` + at.Format(time.DateOnly) + `","n":"` + at.Format(clock) + `"}`
		if err := tab.Append([]byte(object)); err != nil {
			t.Fatal(object, err)
		}
		if got := tab.Column(0).I64[0]; got != at.UnixMicro() {
			t.Fatalf("%s: %d, want %d", object, got, at.UnixMicro())
		}
		if got, want := string(tab.Column(0).AppendText(nil, 0)), at.UTC().Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Fatalf("%s: %s, want %s", object, got, want)
		}
		if got := string(tab.Column(1).AppendText(nil, 0)); got != at.Format(time.DateOnly) {
			t.Fatalf("%s: %s", object, got)
		}
		if got, want := string(tab.Column(2).AppendText(nil, 0)), at.Format("2006-01-02T15:04:05.000000"); got != want {
			t.Fatalf("%s: %s, want %s", object, got, want)
		}
	})
}
