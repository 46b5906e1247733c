package rows_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

func TestParseType(t *testing.T) {
	for text, want := range map[string]string{
		" int32 ":                         "int32",
		"int8 not null":                   "int8 not null",
		"int16\tnot\n null":               "int16 not null",
		"decimal( 9 , 2 ) not null":       "decimal(9,2) not null",
		"timestamp(ms)":                   "timestamp(ms)",
		"timestamp( us )":                 "timestamp(us)",
		"timestamp_ntz not null":          "timestamp_ntz not null",
		"map<timestamp_ntz,timestamp>":    "map<timestamp_ntz, timestamp>",
		"list<string>":                    "list<string>",
		"list < list<int64 not null> >":   "list<list<int64 not null>>",
		"map<string,int32>":               "map<string, int32>",
		"map<int64 not null, binary>":     "map<int64, binary>",
		"struct<a:int32,B_2: string >":    "struct<a: int32, B_2: string>",
		`struct<"a b": date, "\"": date>`: `struct<"a b": date, "\"": date>`,
		`struct<"plain": date>`:           `struct<plain: date>`,
		`struct<"\u00fc": date>`:          `struct<"ü": date>`,
		`struct<ü: date>`:                 "",
		"struct<a: list<struct<b: map<string, decimal(3,1) not null> not null>>>": "struct<a: list<struct<b: map<string, decimal(3,1) not null> not null>>>",
	} {
		got, err := rows.ParseType(text)
		if want == "" {
			if err == nil {
				t.Errorf("%q: %s", text, got)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestParseTypeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "unknown type",
		"varchar":                         `unknown type "varchar"`,
		"list":                            "angle brackets",
		"list<>":                          "unknown type",
		"list<int32":                      "> is missing",
		"list<int32>>":                    "not expected after list<int32>",
		"int32 null":                      "not expected after int32",
		"int32 not":                       "only null is possible",
		"int32 not empty":                 "only null is possible",
		"int32(4)":                        "not expected",
		"decimal":                         "decimal(precision,scale)",
		"decimal(9)":                      "decimal(precision,scale)",
		"decimal(39,0)":                   "1 to 38",
		"decimal(9,10)":                   "scale 0 to the precision",
		"decimal(99999999999999999999,1)": "decimal(precision,scale)",
		"timestamp(ns)":                   "s, ms or us",
		"timestamp(":                      "s, ms or us",
		"timestamp_ntz(ms)":               "has no unit",
		"timestamp_ltz":                   "unknown type",
		"map<string>":                     "map<key type, value type>",
		"map<list<int32>,int32>":          "the keys of a map are not list",
		"map<double, int32>":              "the keys of a map are not double",
		"struct<>":                        "name of a field is missing",
		"struct<a>":                       "a colon is missing",
		"struct<a:int32,>":                "name of a field is missing",
		`struct<"a:int32>`:                "do not end",
		`struct<"\x": int32>`:             "escape",
		strings.Repeat("list<", 33) + "int32" + strings.Repeat(">", 33): "deeper than 32",
		strings.Repeat("list<", 1e6):                                    "deeper than 32",
	} {
		got, err := rows.ParseType(text)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 800 {
			t.Errorf("%.60q: %s, %v; want %q", text, got, err, want)
		}
	}
}

func TestNestedSchemasAreChecked(t *testing.T) {
	deep := rows.Type{Kind: rows.Int32}
	for range rows.MaxNesting + 1 {
		inner := deep
		deep = rows.Type{Kind: rows.List, Elem: &inner}
	}
	var wide []rows.Column
	for i := range rows.MaxLeaves + 1 {
		wide = append(wide, rows.Column{Name: fmt.Sprint(i), Type: rows.Type{Kind: rows.Date}})
	}
	i32 := rows.Type{Kind: rows.Int32}
	for want, typ := range map[string]rows.Type{
		"deeper than 32":         deep,
		"more than 2000":         {Kind: rows.Struct, Fields: wide},
		"without fields":         {Kind: rows.Struct},
		"what it holds":          {Kind: rows.List},
		"is a map whose keys":    {Kind: rows.Map, Elem: &i32},
		"neither string":         {Kind: rows.Map, Key: &rows.Type{Kind: rows.Double}, Elem: &i32},
		"the precision is 1":     {Kind: rows.List, Elem: &rows.Type{Kind: rows.Decimal}},
		"has no type":            {Kind: rows.Kind(99)},
		"differ at most in case": {Kind: rows.Struct, Fields: []rows.Column{{Name: "a", Type: i32}, {Name: "A", Type: i32}}},
		"an empty name":          {Kind: rows.Struct, Fields: []rows.Column{{Type: i32}}},
	} {
		_, err := rows.NewSchema([]rows.Column{{Name: "v", Type: typ}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"v"`) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestTypesReadTheirOwnText: a type is what its text says, and differs from another exactly where the texts do.
func TestTypesReadTheirOwnText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rowstest.Type(t, 3), rowstest.Type(t, 3)
		again, err := rows.ParseType(a.String())
		if err != nil || !again.Equal(a) || !again.SameData(a) || again.String() != a.String() {
			t.Fatalf("%s became %s, %v", a, again, err)
		}
		if a.Equal(b) != (a.String() == b.String()) {
			t.Fatalf("%s and %s: equal %v", a, b, a.Equal(b))
		}
		again.Required = !again.Required
		if again.Equal(a) || !again.SameData(a) {
			t.Fatalf("%s and %s", a, again)
		}
	})
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"struct<a: list<map<string, decimal(9,2) not null>>, \"b\\n\": timestamp(ms)> not null", "list<", "int32 not", `struct<"": date>`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := rows.ParseType(text)
		if err != nil {
			return
		}
		if again, err := rows.ParseType(typ.String()); err != nil || !again.Equal(typ) {
			t.Fatalf("%q is %s, which is %s, %v", text, typ, again, err)
		}
	})
}

func TestBinaryColumns(t *testing.T) {
	s := rowstest.SchemaOf(t, "b", "binary", "s", "string", "l", "list<list<struct<b: binary, s: string>>>", "p", "struct<q: struct<b: binary>>", "m", "map<string, binary>", "lb", "list<binary>")
	for path, want := range map[string]bool{
		"b": true, "s": false, "none": false, "": false, "l": false, "l b": true, "l s": false, "l none": false, "p q b": true, "p q": false, "b b": false, "m": false, "m b": false, "lb": false,
	} {
		if got := s.Binary(strings.Fields(path)...); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
