package delta_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
)

func schemaOf(t testing.TB, columns ...string) *rows.Schema {
	t.Helper()
	var list []rows.Column
	for i := 0; i < len(columns); i += 2 {
		typ, err := rows.ParseType(columns[i+1])
		must(t, err)
		list = append(list, rows.Column{Name: columns[i], Type: typ})
	}
	s, err := rows.NewSchema(list)
	must(t, err)
	return s
}

func TestSchemaString(t *testing.T) {
	s := schemaOf(t, "a", "int8", "b", "int16 not null", "c", "int32", "d", "int64", "e", "decimal(9,2)", "f", "timestamp(ms)",
		"l", "list<int32 not null>", "m", "map<string, struct<x: date, \"y\": list<binary>>>", `q"ü`, "string", "n", "timestamp_ntz")
	field := func(name, typ, nullable string) string {
		return fmt.Sprintf(`{"name":"%s","type":%s,"nullable":%s,"metadata":{}}`, name, typ, nullable)
	}
	want := `{"type":"struct","fields":[` + strings.Join([]string{
		field("a", `"byte"`, "true"), field("b", `"short"`, "false"), field("c", `"integer"`, "true"), field("d", `"long"`, "true"),
		field("e", `"decimal(9,2)"`, "true"), field("f", `"timestamp"`, "true"),
		field("l", `{"type":"array","elementType":"integer","containsNull":false}`, "true"),
		field("m", `{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[`+field("x", `"date"`, "true")+","+
			field("y", `{"type":"array","elementType":"binary","containsNull":true}`, "true")+`]},"valueContainsNull":true}`, "true"),
		field(`q\"ü`, `"string"`, "true"), field("n", `"timestamp_ntz"`, "true"),
	}, ",") + "]}"
	if got := delta.SchemaString(s); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func drawType(t *rapid.T, depth int) rows.Type {
	kinds := []string{"string", "boolean", "int8", "int16", "int32", "int64", "float", "double", "decimal(38,3)", "decimal(1,0)", "date", "timestamp", "timestamp_ntz", "binary"}
	typ, err := rows.ParseType(rapid.SampledFrom(kinds).Draw(t, "kind"))
	if err != nil {
		t.Fatal(err)
	}
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(t, "nest") {
		case 0:
			inner := drawType(t, depth-1)
			typ = rows.Type{Kind: rows.List, Elem: &inner}
		case 1:
			inner := drawType(t, depth-1)
			typ = rows.Type{Kind: rows.Map, Key: &rows.Type{Kind: rows.Int32, Required: true}, Elem: &inner}
		case 2:
			typ = rows.Type{Kind: rows.Struct, Fields: drawColumns(t, depth-1)}
		}
	}
	typ.Required = rapid.Bool().Draw(t, "required")
	return typ
}

func drawColumns(t *rapid.T, depth int) []rows.Column {
	var columns []rows.Column
	for i := range rapid.IntRange(1, 4).Draw(t, "columns") {
		columns = append(columns, rows.Column{Name: fmt.Sprintf("%s%d", rapid.StringMatching(`[a-z"\\ü\x01]{0,5}`).Draw(t, "name"), i), Type: drawType(t, depth)})
	}
	return columns
}

func TestSchemasRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := rows.NewSchema(drawColumns(t, 4))
		if err != nil {
			t.Fatal(err)
		}
		got, err := delta.ParseSchema(delta.SchemaString(s))
		if err != nil || !got.Equal(s) {
			t.Fatalf("%s: %v", delta.SchemaString(s), err)
		}
		more := rows.Column{Name: "one more", Type: drawType(t, 2)}
		wider, err := delta.AddColumns(delta.SchemaString(s), []rows.Column{more})
		if err != nil {
			t.Fatal(err)
		}
		if got, err = delta.ParseSchema(wider); err != nil || got.Len() != s.Len()+1 || !got.Column(s.Len()).Type.Equal(more.Type) {
			t.Fatalf("%s: %v", wider, err)
		}
	})
}

func TestSchemasThatAreRefused(t *testing.T) {
	field := func(typ string) string {
		return `{"type":"struct","fields":[{"name":"c","type":` + typ + `,"nullable":true,"metadata":{}}]}`
	}
	for _, c := range []struct{ schema, says string }{
		{"", "type"},
		{`"long"`, "not a struct"},
		{`{"type":"struct","fields":[]}`, "at least one"},
		{field(`"timestamp_ltz"`), `column "c": the type "timestamp_ltz"`},
		{field(`"variant"`), "variant"},
		{field(`"interval year"`), "interval"},
		{field(`"decimal(39,0)"`), "precision"},
		{field(`{"type":"udt","class":"x"}`), "udt"},
		{field(`{"type":"array"}`), "type"},
		{field(`{"type":"map","keyType":"double","valueType":"long"}`), "keys"},
		{field(`7`), "type"},
		{`{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"A","type":"long"}]}`, "case"},
		{strings.Repeat(`{"type":"array","elementType":`, 500) + `"long"` + strings.Repeat("}", 500), "nests deeper"},
		{field(strings.Repeat(`{"type":"array","elementType":`, 40) + `"long"` + strings.Repeat("}", 40)), "nests deeper"},
	} {
		if _, err := delta.ParseSchema(c.schema); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.100s: got %v, want %q", c.schema, err, c.says)
		}
	}
	if s, err := delta.ParseSchema(field(`"decimal"`)); err != nil || s.Column(0).Type.String() != "decimal(10,0)" {
		t.Errorf("decimal: %v", err)
	}
}

// What other engines say of their columns stays as it is when columns are added.
func TestAddColumnsKeepsMetadata(t *testing.T) {
	old := `{"name":"a","type":"long","nullable":false,"metadata":{"comment":"x","delta.other":{"b":[1]}}}`
	got, err := delta.AddColumns(`{"type":"struct","fields":[`+old+`]}`, schemaOf(t, "b", "date").Columns())
	must(t, err)
	if want := `{"type":"struct","fields":[` + old + `,{"name":"b","type":"date","nullable":true,"metadata":{}}]}`; got != want {
		t.Errorf("got %s", got)
	}
	if _, err := delta.AddColumns(`{"type":"struct","fields":[`+old+`]}`, schemaOf(t, "A", "date").Columns()); err == nil {
		t.Error("a column twice")
	}
	if _, err := delta.AddColumns(`{`, nil); err == nil {
		t.Error("no schema")
	}
}

func TestCheckNames(t *testing.T) {
	must(t, delta.CheckNames(schemaOf(t, "a.b-c_ü'\"", "string", "s", "struct<\"x/y\": list<map<string, struct<z: int32>>>>")))
	for _, name := range []string{"a b", "a,b", "a;b", "{", "}", "(", ")", "a\nb", "a\tb", "a=b"} {
		inner := fmt.Sprintf("list<map<string, struct<%q: int32>>>", name)
		for _, s := range []*rows.Schema{schemaOf(t, name, "string"), schemaOf(t, "s", inner)} {
			if err := delta.CheckNames(s); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestCheckPartition(t *testing.T) {
	s := schemaOf(t, "a", "string", "b", "date", "c", "binary", "d", "list<int32>", "e", "double")
	must(t, delta.CheckPartition(s, nil))
	must(t, delta.CheckPartition(s, []string{"e", "b", "a"}))
	for _, columns := range [][]string{{"x"}, {"A"}, {"a", "a"}, {"c"}, {"d"}} {
		if err := delta.CheckPartition(s, columns); err == nil {
			t.Errorf("%v: no error", columns)
		}
	}
	if err := delta.CheckPartition(schemaOf(t, "a", "string"), []string{"a"}); err == nil {
		t.Error("every column a partition column")
	}
}
