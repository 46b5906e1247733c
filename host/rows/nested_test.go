package rows_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
)

func TestNestedValues(t *testing.T) {
	many := `{`
	for i := range 100 {
		many += fmt.Sprintf(`"%d":%d,`, i, i)
	}
	many = strings.TrimSuffix(many, ",") + `}`
	for _, c := range []struct{ typ, value, want string }{
		{"int8", `-128`, `-128`},
		{"int8", `"127"`, `127`},
		{"int16", `3.2767e4`, `32767`},
		{"timestamp(s)", `-1`, `"1969-12-31T23:59:59.000000Z"`},
		{"timestamp(ms)", `1700000000123`, `"2023-11-14T22:13:20.123000Z"`},
		{"timestamp(ms)", `"1700000000123"`, `"2023-11-14T22:13:20.123000Z"`},
		{"timestamp(ms)", `"2023-11-14T22:13:20.123456Z"`, `"2023-11-14T22:13:20.123456Z"`},
		{"timestamp(us)", `253402300799999999`, `"9999-12-31T23:59:59.999999Z"`},
		{"timestamp(us)", `-62135596800000000`, `"0001-01-01T00:00:00.000000Z"`},
		{"timestamp(s)", `1.7e9`, `"2023-11-14T22:13:20.000000Z"`},
		{"list<int32>", `[ 1 , null,3]`, `[1,null,3]`},
		{"list<int32>", `[]`, `[]`},
		{"list<int32>", ` [ ] `, `[]`},
		{"list<int32>", `null`, `null`},
		{"list<string>", `["", "a much longer text, \u00e9", null]`, `["","a much longer text, é",null]`},
		{"list<list<string>>", `[[], null, ["a"], ["b","c"]]`, `[[],null,["a"],["b","c"]]`},
		{"map<string, int32>", `{"a":1, "b" : null}`, `{"a":1,"b":null}`},
		{"map<string, int32>", `{ }`, `{}`},
		{"map<int32, string>", `{"-1":"x","1e1":"y"}`, `{"-1":"x","10":"y"}`},
		{"map<boolean, date>", `{"true":"2024-02-29"}`, `{"true":"2024-02-29"}`},
		{"map<decimal(5,2), list<int8>>", `{"1.5":[1],"1.51":[]}`, `{"1.50":[1],"1.51":[]}`},
		{"map<timestamp(ms), int8>", `{"0":1,"1970-01-01T00:00:01Z":2}`, `{"1970-01-01T00:00:00.000000Z":1,"1970-01-01T00:00:01.000000Z":2}`},
		{"map<int32, int32>", many, many},
		{"struct<a: int32, b: string>", `{"b":"x","z":[1,{"a":2}],"a":1}`, `{"a":1,"b":"x"}`},
		{"struct<a: int32, b: string>", `{}`, `{"a":null,"b":null}`},
		{"struct<a: int32, b: string>", `{"a":"no","a":1}`, `{"a":1,"b":null}`},
		{"struct<a: struct<b: list<struct<c: binary>>>>", `{"a":{"b":[{"c":"AA=="},null,{}]}}`, `{"a":{"b":[{"c":"AA=="},null,{"c":null}]}}`},
		{`struct<"a b": int32, "ü": int32>`, `{"a\u0020b":1,"\u00fc":2}`, `{"a b":1,"ü":2}`},
		{"list<struct<a: list<int32>>>", `[{"a":[1]},{"a":["x"],"a":[2,3]},{"a":[]}]`, `[{"a":[1]},{"a":[2,3]},{"a":[]}]`},
	} {
		got, err := one(t, c.typ, c.value)
		if err != nil || got != c.want {
			t.Errorf("%s %.80s: got %s, %v; want %s", c.typ, c.value, got, err, c.want)
		}
	}
}

func TestNestedMisfits(t *testing.T) {
	for _, c := range []struct{ typ, value, code, column, reason string }{
		{"int8", `128`, "range", "v", "128 for int8"},
		{"int16", `-32769`, "range", "v", "-32769 for int16"},
		{"timestamp(s)", `1.5`, "precision", "v", "1.5 for timestamp(s)"},
		{"timestamp(s)", `253402300800`, "range", "v", "253402300800"},
		{"timestamp(ms)", `-62135596800001`, "range", "v", "timestamp(ms)"},
		{"timestamp(us)", `9223372036854775808`, "range", "v", "timestamp(us)"},
		{"timestamp(us)", `"yesterday"`, "type", "v", "RFC 3339"},
		{"timestamp", `0`, "type", "v", "0 for timestamp"},
		{"list<int32>", `7`, "type", "v", "7 for list<int32>"},
		{"list<int32>", `{"a":1}`, "type", "v", `{"a":1} for list<int32>`},
		{"list<int32>", `[1,2,"x"]`, "type", "v[2]", `"x" for int32`},
		{"list<int32 not null>", `[1,null]`, "missing", "v[1]", "into int32 not null"},
		{"list<int32>", `[1,]`, "not_json", "v", "at byte"},
		{"list<int32>", `[1 2]`, "not_json", "v", "at byte"},
		{"list<int32>", `[1`, "not_json", "v", "at byte"},
		{"list<list<int8>>", `[[],[1,300]]`, "range", "v[1][1]", "300 for int8"},
		{"map<string, int32>", `[]`, "type", "v", "[] for map<string, int32>"},
		{"map<string, int32>", `{"a":1,"b":"x"}`, "type", `v{"b"}`, `"x" for int32`},
		{"map<string, int32>", `{"a":1,"b":2,"a":3}`, "duplicate", `v{"a"}`, `twice: "a"`},
		{"map<int32, int32>", `{"1":1,"1.0":3}`, "duplicate", `v{"1.0"}`, "for int32"},
		{"map<int32, int32>", `{"x":1}`, "type", `v{"x"}`, "not a number"},
		{"map<string, int32 not null>", `{"long key, that is longer than a message shows it":null}`, "missing", `v{"long key, that is longer than a message...}`, ""},
		{"struct<a: int32>", `"x"`, "type", "v", `"x" for struct<a: int32>`},
		{"struct<a: int32>", `{"a":{"b":1}}`, "type", "v.a", `{"b":1} for int32`},
		{"struct<a: int32 not null>", `{}`, "missing", "v.a", ""},
		{"struct<a: int32, b: struct<c: list<struct<d: date>>>>", `{"b":{"c":[{},{"d":"2023-02-29"}]},"a":1}`, "type", "v.b.c[1].d", "2023-02-29"},
		{"struct<a: string>", "{\"a\":\"\xff\"}", "not_json", "v", "Unicode"},
		{"struct<a: string>", `{"a":"\ud800"}`, "not_json", "v.a", "Unicode"},
		{"list<double>", `[1e999]`, "range", "v[0]", "1e999 for double"},
		{"list<decimal(3,1)>", `["NaN"]`, "type", "v[0]", "not a number"},
		{"list<decimal(3,1)>", `[100]`, "range", "v[0]", "100 for decimal(3,1)"},
		{"list<decimal(3,1)>", `[0.01]`, "precision", "v[0]", "0.01"},
	} {
		_, err := one(t, c.typ, c.value)
		var m *sink.Misfit
		if !errors.As(err, &m) || m.Code != c.code || m.Column != c.column || !strings.Contains(m.Reason, c.reason) {
			t.Errorf("%s %s: %#v, want %s %s %q", c.typ, c.value, m, c.code, c.column, c.reason)
		}
	}
}

// TestTheFirstMisfitCounts by its place in the input, where earlier members of one name do not count, at any level.
func TestTheFirstMisfitCounts(t *testing.T) {
	s := rowstest.SchemaOf(t, "a", "struct<x: int8, y: int8>", "b", "list<int8>", "c", "int8 not null")
	for object, want := range map[string]string{
		`{"b":[300],"a":{"y":300,"x":300},"c":1}`:       "b[0]",
		`{"a":{"y":300,"x":300},"b":[300],"c":1}`:       "a.y",
		`{"a":{"y":300,"x":300,"y":1},"b":[300],"c":1}`: "a.x",
		`{"a":{"x":300},"b":[300],"a":null,"c":1}`:      "b[0]",
		`{"b":[1]}`:            "c",
		`{"c":null,"b":[300]}`: "c",
	} {
		err := rows.NewTable(s).Append([]byte(object))
		var m *sink.Misfit
		if !errors.As(err, &m) || m.Column != want {
			t.Errorf("%s: %#v, want %s", object, m, want)
		}
	}
}

// TestMisfitsLeaveNestedTablesAsTheyWere, whatever was read before the misfit.
func TestMisfitsLeaveNestedTablesAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner := rowstest.Schema(t, 3).Columns()
		s, err := rows.NewSchema(append(inner, rows.Column{Name: "last", Type: rows.Type{Kind: rows.Int8, Required: true}}))
		if err != nil {
			t.Fatal(err)
		}
		tab := rows.NewTable(s)
		var want [][]byte
		for range rapid.IntRange(1, 12).Draw(t, "rows") {
			object := rowstest.Object(t, s)
			if rapid.Bool().Draw(t, "misfit") {
				before := tab.Bytes()
				broken := append(bytes.TrimSuffix(bytes.Clone(object), []byte("}")), `,"last":300}`...)
				if err := tab.Append(broken); err == nil || tab.Bytes() != before {
					t.Fatalf("%s was taken", broken)
				}
			}
			if err := tab.Append(object); err != nil {
				t.Fatal(err)
			}
			want = append(want, object)
		}
		cut := rapid.IntRange(0, len(want)).Draw(t, "cut")
		tab.Truncate(cut)
		for _, object := range want[cut:] {
			if err := tab.Append(object); err != nil {
				t.Fatal(err)
			}
		}
		var size int64
		for i := range want {
			if got := rowstest.JSON(tab, i); !bytes.Equal(got, want[i]) {
				t.Fatalf("%s became %s", want[i], got)
			}
			size += tab.RowBytes(i)
		}
		if size != tab.Bytes() {
			t.Fatalf("the rows have %d bytes, the table %d", size, tab.Bytes())
		}
	})
}

// FuzzNested: no input makes a nested schema panic, and what was taken reads back the same.
func FuzzNested(f *testing.F) {
	for _, s := range []string{
		`{"l":[{"a":[1,null],"m":{"k":1.5,"":null}}],"m":{"2024-01-01":["x"]},"s":{"t":1700000000,"u":{"b":"AA=="}}}`,
		`{"l":[[]],"s":{"t":{}}}`, `{"m":{"2024-01-01":[],"2024-01-01":[]}}`, `{"l":[{"a":[`, `{"s":{"t":1,"t":"x","t":null}}`,
	} {
		f.Add([]byte(s))
	}
	schema := rowstest.SchemaOf(f, "l", "list<struct<a: list<int8>, m: map<string, decimal(9,2)>>>", "m", "map<date, list<string>>",
		"s", "struct<t: timestamp(s), u: struct<b: binary, d: double not null>>")
	f.Fuzz(func(t *testing.T, object []byte) {
		tab := rows.NewTable(schema)
		if err := tab.Append([]byte(`{"l":[{"a":[7]}]}`)); err != nil {
			t.Fatal(err)
		}
		err := tab.Append(object)
		var m *sink.Misfit
		if err != nil {
			if !errors.As(err, &m) || m.Code == "" || tab.Len() != 1 || !strings.Contains(string(rowText(tab, 0)), `[7]`) {
				t.Fatalf("%q: %#v, %d rows", object, err, tab.Len())
			}
			return
		}
		first := rowText(tab, 1)
		again := rows.NewTable(schema)
		if err := again.Append(first); err != nil {
			t.Fatalf("%q became %q: %v", object, first, err)
		}
		if second := rowText(again, 0); !bytes.Equal(first, second) {
			t.Fatalf("%q became %q, then %q", object, first, second)
		}
	})
}

// TestDeepInputIsReadInGoodTime: a misfit at the bottom of the deepest type, in a row that repeats each member.
func TestDeepInputIsReadInGoodTime(t *testing.T) {
	const depth = rows.MaxNesting
	typ, object := "int32", `"x"`
	for range depth - 1 {
		typ = "struct<a: " + typ + ">"
		object = `{"a":1,"a":` + object + `}`
	}
	err := rows.NewTable(rowstest.SchemaOf(t, "v", typ)).Append([]byte(`{"v":` + object + `}`))
	var m *sink.Misfit
	if !errors.As(err, &m) || m.Column != "v"+strings.Repeat(".a", depth-1) {
		t.Errorf("%#v", m)
	}
}
