package rows_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

// one appends {"v":value} to a table of one column, between two other rows, and returns what the row then shows.
func one(t *testing.T, typ, value string) (string, error) {
	t.Helper()
	tab := rows.NewTable(rowstest.SchemaOf(t, "v", typ))
	for range 2 {
		if err := tab.Append([]byte(`{"v":null}`)); err != nil {
			t.Fatal(err)
		}
	}
	before := tab.Bytes()
	err := tab.Append([]byte(`{"v":` + value + `}`))
	if err != nil {
		if tab.Len() != 2 || tab.Bytes() != before {
			t.Errorf("%s %s: a misfit left %d rows of %d bytes", typ, value, tab.Len(), tab.Bytes())
		}
		return "", err
	}
	if tab.Len() != 3 {
		t.Fatalf("%s %s: %d rows", typ, value, tab.Len())
	}
	return string(tab.Column(0).AppendJSON(nil, 2)), nil
}

func TestValues(t *testing.T) {
	big := strings.Repeat("9", 38)
	for _, c := range []struct{ typ, value, want string }{
		{"string", `"abc"`, `"abc"`},
		{"string", `""`, `""`},
		{"string", `"exactly8"`, `"exactly8"`},
		{"string", `"a longer text, with \"quotes\" and \u00e9\ud83d\ude00\/"`, `"a longer text, with \"quotes\" and é😀/"`},
		{"string", `"é😀 raw"`, `"é😀 raw"`},
		{"string", `null`, `null`},
		{"string", `1.50`, `"1.50"`},
		{"string", `-1E+2`, `"-1E+2"`},
		{"string", `true`, `"true"`},
		{"string", ` false `, `"false"`},
		{"boolean", `"true"`, `true`},
		{"boolean", `"false"`, `false`},
		{"int32", `"12"`, `12`},
		{"int32", `"-2147483648"`, `-2147483648`},
		{"int32", `"1e2"`, `100`},
		{"int32", `"7.00"`, `7`},
		{"int64", `"9223372036854775807"`, `9223372036854775807`},
		{"int64", `"-0"`, `0`},
		{"double", `"1.5"`, `1.5`},
		{"double", `"-12e-1"`, `-1.2`},
		{"double", `"123456789012345678"`, `1.2345678901234568e+17`},
		{"float", `"0.1"`, `0.1`},
		{"boolean", `true`, `true`},
		{"boolean", ` false `, `false`},
		{"int32", `2147483647`, `2147483647`},
		{"int32", `-2147483648`, `-2147483648`},
		{"int32", `-0`, `0`},
		{"int32", `1.0`, `1`},
		{"int32", `1e2`, `100`},
		{"int32", `1200E-2`, `12`},
		{"int32", `0.00e999999999999999999999`, `0`},
		{"int64", `9223372036854775807`, `9223372036854775807`},
		{"int64", `-9223372036854775808`, `-9223372036854775808`},
		{"int64", `-9223372036854775808.000`, `-9223372036854775808`},
		{"int64", `123456789012345678`, `123456789012345678`},
		{"int64", `0.1e1`, `1`},
		{"double", `1234.56`, `1234.56`},
		{"double", `-0`, `-0`},
		{"double", `0.1`, `0.1`},
		{"double", `123456789012345678`, `1.2345678901234568e+17`},
		{"double", `9007199254740993`, `9.007199254740992e+15`},
		{"double", `1e-400`, `0`},
		{"double", `1.7976931348623157e308`, `1.7976931348623157e+308`},
		{"double", `"NaN"`, `"NaN"`},
		{"double", `"-Infinity"`, `"-Infinity"`},
		{"float", `0.1`, `0.1`},
		{"float", `16777217`, `1.6777216e+07`},
		{"float", `"Infinity"`, `"Infinity"`},
		{"decimal(6,1)", `370.0`, `370.0`},
		{"decimal(6,1)", `-99999.9`, `-99999.9`},
		{"decimal(6,1)", `5`, `5.0`},
		{"decimal(6,1)", `5.10000`, `5.1`},
		{"decimal(6,1)", `"5.1"`, `5.1`},
		{"decimal(6,1)", `51e-1`, `5.1`},
		{"decimal(6,1)", `-0.0`, `0.0`},
		{"decimal(18,18)", `0.123456789012345678`, `0.123456789012345678`},
		{"decimal(18,0)", `999999999999999999`, `999999999999999999`},
		{"decimal(38,0)", big, big},
		{"decimal(38,38)", `-0.` + big, `-0.` + big},
		{"decimal(20,3)", `-1`, `-1.000`},
		{"timestamp", `"2013-01-01T10:00:00Z"`, `"2013-01-01T10:00:00.000000Z"`},
		{"timestamp", `"2013-01-01T10:00:00.5Z"`, `"2013-01-01T10:00:00.500000Z"`},
		{"timestamp", `"2013-01-01t10:00:00.123456000z"`, `"2013-01-01T10:00:00.123456Z"`},
		{"timestamp", `"2013-01-01T00:30:00+01:00"`, `"2012-12-31T23:30:00.000000Z"`},
		{"timestamp", `"2013-01-01T00:30:00.1-00:30"`, `"2013-01-01T01:00:00.100000Z"`},
		{"timestamp", `"1969-12-31T23:59:59.999999Z"`, `"1969-12-31T23:59:59.999999Z"`},
		{"timestamp", `"0001-01-01T00:00:00Z"`, `"0001-01-01T00:00:00.000000Z"`},
		{"timestamp", `"9999-12-31T23:59:59.999999Z"`, `"9999-12-31T23:59:59.999999Z"`},
		{"timestamp", `"0001-01-01T01:00:00+01:00"`, `"0001-01-01T00:00:00.000000Z"`},
		{"timestamp", `"0001-01-01T00:00:00-23:59"`, `"0001-01-01T23:59:00.000000Z"`},
		{"timestamp", `"9999-12-31T22:59:59.999999-01:00"`, `"9999-12-31T23:59:59.999999Z"`},
		{"timestamp", `"9999-12-31T23:59:59.999999+23:59"`, `"9999-12-31T00:00:59.999999Z"`},
		{"timestamp_ntz", `"2023-06-15T12:30:00"`, `"2023-06-15T12:30:00.000000"`},
		{"timestamp_ntz", `"2023-06-15 12:30:00.5"`, `"2023-06-15T12:30:00.500000"`},
		{"timestamp_ntz", `"2023-06-15t12:30:00.123456000"`, `"2023-06-15T12:30:00.123456"`},
		{"timestamp_ntz", `"1969-12-31T23:59:59.999999"`, `"1969-12-31T23:59:59.999999"`},
		{"timestamp_ntz", `"0001-01-01T00:00:00"`, `"0001-01-01T00:00:00.000000"`},
		{"timestamp_ntz", `"9999-12-31 23:59:59.999999"`, `"9999-12-31T23:59:59.999999"`},
		{"date", `"2024-02-29"`, `"2024-02-29"`},
		{"date", `"1900-03-01"`, `"1900-03-01"`},
		{"binary", `"AAEC/w=="`, `"AAEC/w=="`},
		{"binary", `""`, `""`},
		{"binary", `"A\/8="`, `"A/8="`},
		{"binary", `"+A\u003d\u003D"`, `"+A=="`},
		{"timestamp", `"2024-01-01T00:00:00\u002B01:00"`, `"2023-12-31T23:00:00.000000Z"`},
		{"timestamp(s)", `"\u0031\u0032"`, `"1970-01-01T00:00:12.000000Z"`},
		{"timestamp_ntz", `"2024-01-01T00:00:00\u002E5"`, `"2024-01-01T00:00:00.500000"`},
		{"date", `"2024\u002D02-29"`, `"2024-02-29"`},
		{"boolean", `"tru\u0065"`, `true`},
		{"int64", `"\u002d1"`, `-1`},
		{"double", `"1e\u002B2"`, `100`},
		{"float", `"N\u0061N"`, `"NaN"`},
		{"decimal(3,1)", `"12\u002e5"`, `12.5`},
		{"map<date, int8>", `{"2024\u002D02-29":1}`, `{"2024-02-29":1}`},
		{"map<binary, int8>", `{"\/\/8=":1}`, `{"//8=":1}`},
	} {
		got, err := one(t, c.typ, c.value)
		if err != nil || got != c.want {
			t.Errorf("%s %s: got %s, %v; want %s", c.typ, c.value, got, err, c.want)
		}
	}
}

func TestMisfits(t *testing.T) {
	for _, c := range []struct{ typ, value, code string }{
		{"string", `01`, "not_json"},
		{"string", `-`, "not_json"},
		{"string", `truth`, "not_json"},
		{"string", `{"a":1}`, "type"},
		{"string", `["a"]`, "type"},
		{"string", `"\ud800"`, "not_json"},
		{"string", `"\udc00\ud800"`, "not_json"},
		{"string", `"\ud800\u0041"`, "not_json"},
		{"string", `"\x"`, "not_json"},
		{"string", `"\u12g4"`, "not_json"},
		{"string", "\"\xff\"", "not_json"},
		{"string", "\"\xc0\x80 and more text\"", "not_json"},
		{"string", "\"tab\there, eight bytes or more\"", "not_json"},
		{"string", `"open`, "not_json"},
		{"string", `'a'`, "not_json"},
		{"boolean", `1`, "type"},
		{"boolean", `"True"`, "type"},
		{"boolean", `"1"`, "type"},
		{"boolean", `""`, "type"},
		{"boolean", `"true `, "not_json"},
		{"boolean", `True`, "not_json"},
		{"int32", `2147483648`, "range"},
		{"int32", `-2147483649`, "range"},
		{"int32", `1.5`, "precision"},
		{"int32", `1e-1`, "precision"},
		{"int32", `""`, "type"},
		{"int32", `" 1"`, "type"},
		{"int32", `"1 "`, "type"},
		{"int32", `"01"`, "type"},
		{"int32", `"+1"`, "type"},
		{"int32", `"1,000"`, "type"},
		{"int32", `"\q"`, "not_json"},
		{"int32", `"null"`, "type"},
		{"int32", `"1.5"`, "precision"},
		{"int32", `"2147483648"`, "range"},
		{"int32", `"1`, "not_json"},
		{"int32", `01`, "not_json"},
		{"int32", `+1`, "not_json"},
		{"int32", `1.`, "not_json"},
		{"int32", `.5`, "not_json"},
		{"int32", `-`, "not_json"},
		{"int32", `1e`, "not_json"},
		{"int32", `0x10`, "not_json"},
		{"int32", `1e99999999999999999999`, "range"},
		{"int64", `9223372036854775808`, "range"},
		{"int64", `-9223372036854775809`, "range"},
		{"int64", `99999999999999999999`, "range"},
		{"double", `1e309`, "range"},
		{"double", `""`, "type"},
		{"double", `"1."`, "type"},
		{"double", `"1e309"`, "range"},
		{"double", `"0x1p3"`, "type"},
		{"double", `"nan"`, "type"},
		{"double", `NaN`, "not_json"},
		{"double", `0x1p3`, "not_json"},
		{"float", `3.5e38`, "range"},
		{"decimal(6,1)", `1.23`, "precision"},
		{"decimal(6,1)", `100000`, "range"},
		{"decimal(6,1)", `99999.95`, "precision"},
		{"decimal(6,1)", `1e5`, "range"},
		{"decimal(6,1)", `"abc"`, "type"},
		{"decimal(6,1)", `"1 "`, "type"},
		{"decimal(6,1)", `""`, "type"},
		{"decimal(6,1)", `true`, "type"},
		{"decimal(38,0)", `1` + strings.Repeat("0", 38), "range"},
		{"timestamp", `1700000000`, "type"},
		{"timestamp", `"2013-01-01"`, "type"},
		{"timestamp", `"2013-01-01T10:00:00"`, "type"},
		{"timestamp", `"2013-01-01 10:00:00Z"`, "type"},
		{"timestamp", `"2013-01-01T24:00:00Z"`, "type"},
		{"timestamp", `"2013-01-01T10:60:00Z"`, "type"},
		{"timestamp", `"2016-12-31T23:59:60Z"`, "type"},
		{"timestamp", `"2013-02-29T10:00:00Z"`, "type"},
		{"timestamp", `"2013-01-01T10:00:00.Z"`, "type"},
		{"timestamp", `"2013-01-01T10:00:00.1234567Z"`, "precision"},
		{"timestamp", `"2013-01-01T10:00:00+24:00"`, "type"},
		{"timestamp", `"0000-01-01T00:00:00Z"`, "type"},
		{"timestamp", `"0001-01-01T00:00:00+01:00"`, "range"},
		{"timestamp", `"0001-01-01T00:59:59.999999+01:00"`, "range"},
		{"timestamp", `"9999-12-31T23:59:59.999999-01:00"`, "range"},
		{"timestamp", `"9999-12-31T23:00:00-01:00"`, "range"},
		{"timestamp", `"2013-01-01T10:00:00Z `, "not_json"},
		{"timestamp_ntz", `"2013-01-01T10:00:00Z"`, "type"},
		{"timestamp_ntz", `"2013-01-01 10:00:00.5+02:00"`, "type"},
		{"timestamp_ntz", `"2013-01-01T10:00:00-02"`, "type"},
		{"timestamp_ntz", `"2013-01-01T10:00:00 UTC"`, "type"},
		{"timestamp_ntz", `"2013-01-01T10:00"`, "type"},
		{"timestamp_ntz", `"2013-01-01"`, "type"},
		{"timestamp_ntz", `"2013-01-01_10:00:00"`, "type"},
		{"timestamp_ntz", `"2013-01-01T24:00:00"`, "type"},
		{"timestamp_ntz", `"2013-01-01T10:00:00."`, "type"},
		{"timestamp_ntz", `"2013-01-01T10:00:00.1234567"`, "precision"},
		{"timestamp_ntz", `"2013-02-29T10:00:00"`, "type"},
		{"timestamp_ntz", `"0000-01-01T00:00:00"`, "type"},
		{"timestamp_ntz", `1700000000`, "type"},
		{"timestamp_ntz", `"1700000000"`, "type"},
		{"timestamp_ntz", `""`, "type"},
		{"timestamp_ntz", `"2013-01-01T10:00:00 `, "not_json"},
		{"date", `"2013-13-01"`, "type"},
		{"date", `"2013-1-1"`, "type"},
		{"date", `"2013-01-01T00:00:00Z"`, "type"},
		{"date", `15706`, "type"},
		{"binary", `"AAE"`, "type"},
		{"binary", `"AAE*"`, "type"},
		{"binary", `"AB=="`, "type"},
		{"binary", `"AA==\n"`, "type"},
		{"binary", `"AA\n=="`, "type"},
		{"binary", `"\ud800"`, "not_json"},
		{"int8", `"\u0031\u0032\u0038"`, "range"},
		{"int8", `"\u00201"`, "type"},
		{"int8", `"\x31"`, "not_json"},
		{"timestamp_ntz", `"2024-01-01T00:00:00\u002B01:00"`, "type"},
		{"binary", `[0]`, "type"},
	} {
		_, err := one(t, c.typ, c.value)
		var m *sink.Misfit
		if !errors.As(err, &m) || m.Code != c.code || m.Reason == "" || c.code != "not_json" && m.Column != "v" {
			t.Errorf("%s %s: got %#v, want code %s", c.typ, c.value, err, c.code)
		}
	}
}

// TestReasons: what does not fit is shown as it is written, and the reason says what would.
func TestReasons(t *testing.T) {
	for _, c := range []struct{ typ, value, want string }{
		{"int32", `"abc"`, `v: the text is not a number: "abc" for int32`},
		{"int32", `""`, `v: an empty text is no value, only null is none: "" for int32`},
		{"int32", `1.5`, `v: more digits than the type holds: 1.5 for int32`},
		{"double", `"x"`, `v: the text is not a number, NaN, Infinity or -Infinity: "x" for double`},
		{"boolean", `"yes"`, `v: the text is neither true nor false: "yes" for boolean`},
		{"decimal(4,1)", `"1,5"`, `v: the text is not a number: "1,5" for decimal(4,1)`},
		{"date", `"31.1.2013"`, `v: the text is not a date, as in 2013-01-31: "31.1.2013" for date`},
		{"timestamp", `"now"`, `v: the text is not an RFC 3339 time with its offset, as in 2013-01-31T10:00:00Z: "now" for timestamp`},
		{"binary", `"?"`, `v: the text is not base64 with its padding: "?" for binary`},
		{"string", `{"a": "b"}`, `v: not a value for this type: {"a": "b"} for string`},
		{"string", "[\n1]", `v: not a value for this type: "[\n1]" for string`},
		{"int32", `"` + strings.Repeat("x", 38) + `ü"`, `v: the text is not a number: "` + strings.Repeat("x", 38) + `... for int32`},
	} {
		if _, err := one(t, c.typ, c.value); err == nil || err.Error() != c.want {
			t.Errorf("%s %s:\n got %v\nwant %s", c.typ, c.value, err, c.want)
		}
	}
}

// TestReasonsOfNoJSON: the words are the same for typed rows and for lines, and say where.
func TestReasonsOfNoJSON(t *testing.T) {
	deep := strings.Repeat("[", 1024) + strings.Repeat("]", 1024)
	for _, c := range []struct{ value, want string }{
		{`{"v":"x","z":[` + deep + `]}`, "arrays and objects nest deeper than 1024 levels, at byte 1037"},
		{`{"v":[` + deep + `]}`, "v: arrays and objects nest deeper than 1024 levels, at byte 1029"},
		{`{"v":"\x"}`, "v: a string has an escape that JSON does not know, at byte 5"},
		{`{"v":"a long text before \u12"}`, "v: a string has an escape that JSON does not know, at byte 5"},
		{`{"z":"\x"}`, "a string has an escape that JSON does not know, at byte 5"},
		{`{"\x":1}`, "a string has an escape that JSON does not know, at byte 1"},
		{"{\"v\":\"\xff\"}", "v: a string is not valid Unicode, at byte 5"},
		{"{\"z\":\"\xff\"}", "a string is not valid Unicode, at byte 5"},
		{`{"v":1,}`, "the value is not well-formed JSON, at byte 7"},
	} {
		err := rows.NewTable(rowstest.SchemaOf(t, "v", "string")).Append([]byte(c.value))
		if err == nil || err.Error() != c.want {
			t.Errorf("%.40s:\n got %v\nwant %s", c.value, err, c.want)
		}
		if strings.Contains(c.want, "deeper") {
			continue // a byte more or less
		}
		err = new(rows.Lines).Append([]byte(c.value))
		if want := strings.TrimPrefix(c.want, "v: "); err == nil || err.Error() != want {
			t.Errorf("a line of %.40s:\n got %v\nwant %s", c.value, err, want)
		}
	}
	// A lone surrogate is JSON, but no text.
	if err := rows.NewTable(rowstest.SchemaOf(t, "v", "string")).Append([]byte(`{"v":"\ud800"}`)); err == nil || err.Error() != "v: a string is not valid Unicode, at byte 5" {
		t.Error(err)
	}
	var m *sink.Misfit
	if err := new(rows.Lines).Append([]byte("[" + deep + "]")); !errors.As(err, &m) || m.Code != "not_json" || !strings.Contains(m.Reason, "deeper") {
		t.Error(err)
	}
}

func TestObjects(t *testing.T) {
	deep := strings.Repeat(`[`, 1025) + strings.Repeat(`]`, 1025)
	for _, c := range []struct{ object, want string }{
		{`{"a":1,"b":"x"}`, `1 "x"`},
		{`{"b":"x","a":1}`, `1 "x"`},
		{` { "b" : "x" , "a" : 1 } `, `1 "x"`},
		{"\t{\r\n\"a\"\t:1}\n", `1 null`},
		{`{}`, `null null`},
		{`{ }`, `null null`},
		{`{"a":1,"a":2}`, `2 null`},
		{`{"b":"x","a":1,"b":null}`, `1 null`},
		{`{"b":"x","a":1,"b":"yy"}`, `1 "yy"`},
		{`{"a":"bad","a":1}`, `1 null`},
		{`{"a":1.5,"b":[],"a":"x","b":"yy","a":null}`, `null "yy"`},
		{`{"a":"bad","b":"x","\u0061":7,"other":[{}]}`, `7 "x"`},
		{`{"b":"\ud800","b":"x"}`, `null "x"`},
		{`{"a":1,"a":"bad"}`, "type"},
		{`{"a":"bad","a":1,"b":[]}`, "type"},
		{`{"a":1.5,"b":[]}`, "precision"},
		{`{"b":[],"a":1.5}`, "type"},
		{`{"a":"bad","a":1.5}`, "precision"},
		{`{"a":"bad","a":1`, "not_json"},
		{`{"a":"bad","a":1}x`, "not_json"},
		{`{"a":"bad","other":01,"a":1}`, "not_json"},
		{`{"a":"\q","a":1}`, "not_json"},
		{`{"\u0061":1,"b":"x"}`, `1 "x"`},
		{`{"A":1,"ab":2,"":3,"b":"x"}`, `null "x"`},
		{`{"a":1,"other":{"x":[1,"]}\"",{"y":null}],"z":-1.5e3},"b":"x"}`, `1 "x"`},
		{`{"other":"\ud800","a":1}`, `1 null`},
		{``, "not_json"},
		{` `, "not_json"},
		{`null`, "not_json"},
		{`[{"a":1}]`, "not_json"},
		{`"a"`, "not_json"},
		{`{`, "not_json"},
		{`{"a"`, "not_json"},
		{`{"a":`, "not_json"},
		{`{"a":1`, "not_json"},
		{`{"a":1,`, "not_json"},
		{`{"a":1,}`, "not_json"},
		{`{,"a":1}`, "not_json"},
		{`{"a":1 "b":"x"}`, "not_json"},
		{`{"a":1;"b":"x"}`, "not_json"},
		{`{"a" 1}`, "not_json"},
		{`{a:1}`, "not_json"},
		{`{"a":1}{"a":1}`, "not_json"},
		{`{"a":1}x`, "not_json"},
		{`{"other":` + deep + `}`, "not_json"},
		{`{"other":[1,]}`, "not_json"},
		{`{"other":[}`, "not_json"},
		{`{"other":{"x"}}`, "not_json"},
		{`{"other":nul}`, "not_json"},
		{`{"other":"\q"}`, "not_json"},
		{"{\"other\":\"\xff\"}", "not_json"},
		{"{\"\xff\":1}", "not_json"},
		{`{"\ud800":1}`, "not_json"},
		{"\xef\xbb\xbf{}", "not_json"},
	} {
		tab := rows.NewTable(rowstest.SchemaOf(t, "a", "int32", "b", "string"))
		err := tab.Append([]byte(c.object))
		var m *sink.Misfit
		got := ""
		switch {
		case err == nil:
			got = fmt.Sprintf("%s %s", tab.Column(0).AppendJSON(nil, 0), tab.Column(1).AppendJSON(nil, 0))
		case errors.As(err, &m):
			got = m.Code
		}
		if got != c.want {
			t.Errorf("%.60s: got %s, want %s (%v)", c.object, got, c.want, err)
		}
	}
}

// TestLastOfEqualKeysCounts: a row is that of the object without its earlier duplicates, whatever those hold.
func TestLastOfEqualKeysCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := []string{"1", "1.5", `"x"`, `"2"`, "null", "true", `"\ud800"`, "[1]", `"2024-01-01"`, "99999999999"}
		names := []string{"a", "b", "c", "z"}
		object, lean := "", ""
		last := map[string]string{}
		var order []string
		for range rapid.IntRange(0, 8).Draw(t, "members") {
			name, value := rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(values).Draw(t, "value")
			object += fmt.Sprintf(",%q:%s", name, value)
			last[name] = value
			order = append(slices.DeleteFunc(order, func(s string) bool { return s == name }), name)
		}
		for _, name := range order {
			lean += fmt.Sprintf(",%q:%s", name, last[name])
		}
		schema, err := rows.NewSchema([]rows.Column{
			{Name: "a", Type: rows.Type{Kind: rows.Int32}}, {Name: "b", Type: rows.Type{Kind: rows.String}}, {Name: "c", Type: rows.Type{Kind: rows.Date}},
		})
		if err != nil {
			t.Fatal(err)
		}
		show := func(members string) string {
			tab := rows.NewTable(schema)
			err := tab.Append([]byte("{" + strings.TrimPrefix(members, ",") + "}"))
			var m *sink.Misfit
			if errors.As(err, &m) {
				return m.Code + " " + m.Column
			}
			return string(rowText(tab, 0))
		}
		if got, want := show(object), show(lean); got != want {
			t.Fatalf("{%s}: %s, without duplicates %s", object, got, want)
		}
	})
}

// TestLongAndOddNames: the fast comparison of keys must not take one name for another.
func TestLongAndOddNames(t *testing.T) {
	names := []string{
		"a", "ab", "abc", "abcd", "abcde", "abcdef", "twelve_chars", "twelve_charz", "thirteen_char", "a_name_of_quite_some_length",
		"a_name_of_quita_some_length", `quo"te`, "ü", "new\nline",
	}
	var columns []string
	for _, n := range names {
		columns = append(columns, n, "int32")
	}
	tab := rows.NewTable(rowstest.SchemaOf(t, columns...))
	for shift := range names {
		object := []byte("{")
		for k := range names {
			i := (k + shift) % len(names)
			if k > 0 {
				object = append(object, ',')
			}
			object = fmt.Appendf(append(rows.AppendQuoted(object, []byte(names[i])), ':'), "%d", i)
		}
		if err := tab.Append(append(object, '}')); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		for i := range names {
			if v := tab.Column(i); v.Valid[shift] != 1 || v.I32[shift] != int32(i) {
				t.Fatalf("%s: %q holds %d", object, names[i], v.I32[shift])
			}
		}
	}
}

func TestSchemaMistakes(t *testing.T) {
	str := rows.Type{Kind: rows.String}
	for name, columns := range map[string][]rows.Column{
		"empty": nil, "no name": {{Name: "", Type: str}}, "no type": {{Name: "a"}}, "twice": {{Name: "a", Type: str}, {Name: "a", Type: str}},
		"case": {{Name: "a", Type: str}, {Name: "A", Type: str}}, "not text": {{Name: "\xff", Type: str}},
		"long": {{Name: strings.Repeat("x", 256), Type: str}}, "many": make([]rows.Column, rows.MaxColumns+1),
	} {
		if _, err := rows.NewSchema(columns); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, bad := range []string{"", "text", "decimal", "decimal(0,0)", "decimal(39,0)", "decimal(5,6)", "decimal(5)", "decimal(5,-1)", "decimal(5,2", "INT32"} {
		if _, err := rows.ParseType(bad); err == nil {
			t.Errorf("%q is taken for a type", bad)
		}
	}
	for _, good := range []string{"string", "boolean", "int32", "int64", "float", "double", "timestamp", "timestamp_ntz", "date", "binary", "decimal(38,38)", "decimal(1,0)"} {
		if typ, err := rows.ParseType(good); err != nil || typ.String() != good {
			t.Errorf("%q: %v, %v", good, typ, err)
		}
	}
}

func TestTruncateAndReset(t *testing.T) {
	tab := rows.NewTable(rowstest.SchemaOf(t, "s", "string", "d", "double"))
	for i := range 200 {
		if err := tab.Append(fmt.Appendf(nil, `{"s":"row %d","d":%d}`, i, i)); err != nil {
			t.Fatal(err)
		}
	}
	var sum int64
	for i := range 200 {
		sum += tab.RowBytes(i)
	}
	if sum != tab.Bytes() {
		t.Errorf("the rows have %d bytes, the table %d", sum, tab.Bytes())
	}
	tab.Truncate(100)
	if err := tab.Append([]byte(`{"s":"next"}`)); err != nil {
		t.Fatal(err)
	}
	if got := string(tab.Column(0).Bytes(99)) + "," + string(tab.Column(0).Bytes(100)); tab.Len() != 101 || got != "row 99,next" {
		t.Errorf("%d rows, at the end %s", tab.Len(), got)
	}
	if tab.Reset(); tab.Len() != 0 || tab.Bytes() != 0 {
		t.Errorf("after Reset %d rows of %d bytes", tab.Len(), tab.Bytes())
	}
}

// TestFloatsRoundAsStrconv compares the short way with the standard library's, bit by bit.
func TestFloatsRoundAsStrconv(t *testing.T) {
	tab := rows.NewTable(rowstest.SchemaOf(t, "v", "double"))
	for _, m := range []int64{0, 1, 7, 99, 123456789, 999999999999999, 100000000000000, 314159265358979} {
		for frac := range 15 {
			text := fmt.Sprintf("%016d", m)
			text = strings.TrimLeft(text[:16-frac], "0") + "." + text[16-frac:]
			if strings.HasPrefix(text, ".") {
				text = "0" + text
			}
			text = strings.TrimSuffix(text, ".")
			tab.Reset()
			if err := tab.Append([]byte(`{"v":` + text + `}`)); err != nil {
				t.Fatal(text, err)
			}
			var want float64
			if _, err := fmt.Sscan(text, &want); err != nil {
				t.Fatal(err)
			}
			if got := tab.Column(0).F64[0]; math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("%s: %v, want %v", text, got, want)
			}
		}
	}
}

// TestAppendDoesNotAllocate once the table has room.
func TestAppendDoesNotAllocate(t *testing.T) {
	tab := rows.NewTable(rowstest.SchemaOf(t, "s", "string", "e", "string", "i", "int64", "d", "double", "c", "decimal(9,2)", "w", "decimal(30,2)",
		"t", "timestamp", "x", "binary", "n", "string", "qi", "int32", "qd", "double", "qb", "boolean", "z", "timestamp_ntz"))
	object := []byte(`{"other":[1,{"a":"\u0041"}],"n":12.5,"qi":"12","qd":"1.5e300","qb":"true","s":"plain text","e":"\u00e9 \"escaped\"","i":1e3,"d":1.5e300,"c":"1.25","w":-3.5,` +
		`"t":"2020-02-29T01:02:03.4+05:06","x":"AAEC","z":"2020-02-29 01:02:03.4"}`)
	fill := func() {
		tab.Reset()
		for range 100 {
			if err := tab.Append(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n != 0 {
		t.Errorf("%v allocations in 100 rows", n)
	}
}

// TestNoTimestampWithoutItsDigits: what a column remembers of the row before must not let through what is no date.
func TestNoTimestampWithoutItsDigits(t *testing.T) {
	for typ, zone := range map[string]string{"timestamp": "Z", "timestamp_ntz": ""} {
		schema := rowstest.SchemaOf(t, "t", typ)
		for _, bad := range []string{
			"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00T01:02:03", "0000-00-00T01:02:03", "2020-01-0\x00T01:02:03", "          T01:02:03",
		} {
			for _, before := range []string{"", "2020-01-01T00:00:00"} {
				table := rows.NewTable(schema)
				if before != "" {
					if err := table.Append([]byte(`{"t":"` + before + zone + `"}`)); err != nil {
						t.Fatal(err)
					}
				}
				if err := table.Append([]byte(`{"t":"` + bad + zone + `"}`)); err == nil {
					t.Errorf("%q after %q was taken for a %s", bad, before, typ)
				}
			}
		}
	}
}

// TestZonesAreNamed: a time that does not fit for its zone, or for want of one, says so.
func TestZonesAreNamed(t *testing.T) {
	for _, c := range []struct{ typ, value, says string }{
		{"timestamp_ntz", `"2013-01-01T10:00:00Z"`, `the text has a time zone, and the type has none: "2013-01-01T10:00:00Z" for timestamp_ntz`},
		{"timestamp_ntz", `"2013-01-01 10:00:00+02:00"`, "has a time zone"},
		{"timestamp_ntz", `"yesterday"`, "without a zone, as in 2013-01-31T10:00:00"},
		{"timestamp", `"2013-01-01T10:00:00"`, "with its offset"},
	} {
		if _, err := one(t, c.typ, c.value); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, want %q", c.typ, c.value, err, c.says)
		}
	}
}
