package abi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fullManifest = `{"abi": 1, "name": "clean", "version": "1.0.0",
 "inputs": [{"name": "flights", "content": "json", "fields": ["/dep_time", "/arr_delay"]}],
 "outputs": [{"name": "flights", "content": "json", "updates": true}, {"name": "cancelled", "updates": false}],
 "tables": [{"name": "counts"}, {"name": "totals", "type": "i64"}], "config": {"type": "object", "a": 1.0},
 "stateConfig": ["size", "by"], "delay": ["/late", "1s", "/late"]}`

func TestParseManifest(t *testing.T) {
	got, err := ParseManifest([]byte(fullManifest))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		ABI: 1, Name: "clean", Version: "1.0.0",
		Inputs:  []InputPort{{Name: "flights", Content: "json", Fields: []string{"/dep_time", "/arr_delay"}}},
		Outputs: []OutputPort{{Name: "flights", Content: "json", Updates: true}, {Name: "cancelled"}},
		Tables:  []Table{{Name: "counts", Type: TableBytes}, {Name: "totals", Type: TableI64}}, Config: []byte(`{"a":1,"type":"object"}`),
		StateConfig: []string{"size", "by"}, Delay: []string{"/late", "1s", "/late"},
	}
	if !cmp.Equal(got, want) {
		t.Fatal(cmp.Diff(want, got))
	}
}

// rowsManifest has an output of binary rows.
const rowsManifest = `{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[{"updates":true,"rows":1,"name":"out","columns":"id: int64 not null, tags: list<string>","content":"rows"}]}`

func TestManifestRows(t *testing.T) {
	m, err := ParseManifest([]byte(rowsManifest))
	want := OutputPort{Name: "out", Content: "rows", Updates: true, Rows: RowsVersion, Columns: "id: int64 not null, tags: list<string>"}
	if err != nil || m.Outputs[0] != want {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestManifestJSON(t *testing.T) {
	for _, text := range []string{fullManifest, string(DefaultManifest().JSON()), `{"name":"a","version":"1","inputs":[{"name":"in","fields":["","/\""]}],"outputs":[],"config":true}`, rowsManifest} {
		m, err := ParseManifest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out := m.JSON()
		canonical, err := CanonicalJSON(out)
		if err != nil || !bytes.Equal(out, canonical) {
			t.Errorf("not canonical: %s, %v", out, err)
		}
		again, err := ParseManifest(out)
		if err != nil || !cmp.Equal(again, m) {
			t.Errorf("%s: %v", cmp.Diff(m, again), err)
		}
	}
}

// Texts that stand in revisions: what can be said of ports and tables today must not change what said nothing of it.
func TestManifestTextStays(t *testing.T) {
	for in, want := range map[string]string{
		`{"abi":1,"name":"a","version":"1","inputs":[{"name":"in","content":"json","fields":["/a","/b"]}],"outputs":[{"name":"out","content":"json"},{"name":"late"}],"tables":[{"name":"t"},{"name":"u"}]}`: `{"abi":1,"inputs":[{"content":"json","fields":["/a","/b"],"name":"in"}],"name":"a","outputs":[{"content":"json","name":"out"},{"name":"late"}],"tables":[{"name":"t"},{"name":"u"}],"version":"1"}`,
		`{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[{"name":"out","updates":false}],"tables":[{"name":"t","type":"bytes"}]}`:                                                              `{"inputs":[{"name":"in"}],"name":"a","outputs":[{"name":"out"}],"tables":[{"name":"t"}],"version":"1"}`,
		`{"name":"a","version":"1","inputs":[{"name":"in"}],"outputs":[{"updates":true,"name":"out","content":"json"}],"tables":[{"type":"json","name":"t"},{"name":"n","type":"i64"}]}`:                     `{"inputs":[{"name":"in"}],"name":"a","outputs":[{"content":"json","name":"out","updates":true}],"tables":[{"name":"t","type":"json"},{"name":"n","type":"i64"}],"version":"1"}`,
	} {
		m, err := ParseManifest([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.JSON()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestParseManifestRefuses(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(fullManifest, old, new, 1) }
	ports := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"p%d"}`, i)
		}
		return b.String()[1:]
	}
	for name, c := range map[string]struct{ text, says string }{
		"empty":              {"", "not one JSON text"},
		"two texts":          {fullManifest + "{}", "not one JSON text"},
		"not UTF-8":          {with("clean", "cl\xffan"), "not one JSON text"},
		"array":              {"[]", `is an array, want an object`},
		"unknown name":       {with(`"abi"`, `"api"`), `at "/api": unknown name`},
		"duplicate":          {with(`"version"`, `"name"`), `duplicate`},
		"other ABI":          {with(`1,`, `2,`), `at "/abi": ABI 2, this host has 1`},
		"ABI as text":        {with(`1,`, `"1",`), `at "/abi": is a string, want a number`},
		"no name":            {with(`"name": "clean", `, ``), `"name" is missing`},
		"no version":         {with(`"version": "1.0.0",`, ``), `"version" is missing`},
		"bad name":           {with(`clean`, `Clean`), `at "/name": "Clean" is no name`},
		"long name":          {with(`clean`, strings.Repeat("a", 64)), `is no name`},
		"empty version":      {with(`1.0.0`, ``), `at "/version"`},
		"version with line":  {with(`1.0.0`, `1\n0`), `printable ASCII`},
		"no inputs":          {with(`{"name": "flights", "content": "json", "fields": ["/dep_time", "/arr_delay"]}`, ``), `"inputs" is empty`},
		"same input":         {with(`"/arr_delay"]}`, `"/arr_delay"]},{"name":"flights"}`), `at "/inputs/1": a second input "flights"`},
		"same output":        {with(`cancelled`, `flights`), `at "/outputs/1": a second output "flights"`},
		"same table":         {with(`{"name": "counts"}`, `{"name": "counts"},{"name": "counts"}`), `a second table "counts"`},
		"fields of output":   {with(`{"name": "cancelled", `, `{"name": "cancelled","fields":[], `), `at "/outputs/1/fields": unknown name`},
		"pointer":            {with(`/dep_time`, `dep_time`), `at "/inputs/0/fields/0": JSON pointer "dep_time"`},
		"same pointer":       {with(`/dep_time`, `/arr_delay`), `at "/inputs/0/fields/1": "/arr_delay" comes twice`},
		"nameless port":      {with(`"name": "cancelled", "updates": false`, ``), `at "/outputs/1": "name" is missing`},
		"updates of input":   {with(`"fields": [`, `"updates": true, "fields": [`), `at "/inputs/0/updates": unknown name`},
		"updates as text":    {with(`true`, `"true"`), `at "/outputs/0/updates": is a string, want true or false`},
		"updates null":       {with(`true`, `null`), `at "/outputs/0/updates": is null, want true or false`},
		"state config twice": {with(`"size", "by"`, `"by", "by"`), `at "/stateConfig/1": "by" comes twice`},
		"no state config":    {with(`"size"`, `""`), `at "/stateConfig/0": a member's name has 1 to 128 bytes`},
		"no delay":           {with(`"1s"`, `""`), `at "/delay/1": a delay has 1 to 128 bytes`},
		"bad pointer":        {with(`"/late"`, `"/~2"`), `at "/delay/0"`},
		"delay as a number":  {with(`"1s"`, `1`), `at "/delay/0": is a number, want a string`},
		"type of table":      {with(`i64`, `I64`), `at "/tables/1/type": "I64" is no type of a table: bytes, json or i64`},
		"type as number":     {with(`"i64"`, `64`), `at "/tables/1/type": is a number, want a string`},
		"type null":          {with(`"i64"`, `null`), `at "/tables/1/type": is null, want a string`},
		"unknown of table":   {with(`"type": "i64"`, `"kind": "i64"`), `at "/tables/1/kind": unknown name`},
		"null inputs":        {with(`"tables": [`, `"tables": null, "x":[`), `at "/tables": is null, want an array`},
		"config as text":     {with(`{"type": "object", "a": 1.0}`, `"x"`), `at "/config": is a string, want a JSON schema`},
		"17 outputs":         {with(`{"name": "cancelled", "updates": false}`, ports(16)), `at "/outputs/15": more than 16 entries`},
		"65 tables":          {with(`{"name": "counts"}`, ports(65)), `more than 64 entries`},
		"too long":           {fullManifest + strings.Repeat(" ", MaxManifest), `at most 65536`},
		"too deep":           {with(`1.0}`, strings.Repeat("[", 600)+strings.Repeat("]", 600)+"}"), `not one JSON text`},
		"rows of input":      {with(`"fields": [`, `"rows": 1, "fields": [`), `at "/inputs/0/rows": unknown name`},
		"rows alone":         {with(`"updates": false`, `"rows": 1`), `"rows" and "columns" go together`},
		"columns alone":      {with(`"updates": false`, `"columns": "a: int8"`), `"rows" and "columns" go together`},
		"rows of JSON":       {with(`"content": "json", "updates": true`, `"content": "json", "rows": 1, "columns": "a: int8"`), `exclude each other`},
		"newer rows":         {with(`"updates": false`, `"rows": 2, "columns": "a: int8"`), `at "/outputs/1/rows": rows of version 2, this host has 1`},
		"rows as text":       {with(`"updates": false`, `"rows": "1"`), `at "/outputs/1/rows": is a string, want a number`},
		"no columns":         {with(`"updates": false`, `"rows": 1, "columns": ""`), `at "/outputs/1/columns": columns are a text of 1 to 32768 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ParseManifest([]byte(c.text))
			if !errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v: %v, want %q", m, err, c.says)
			}
		})
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(fullManifest))
	f.Add(DefaultManifest().JSON())
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		again, err := ParseManifest(m.JSON())
		if err != nil || !cmp.Equal(m, again) {
			t.Fatalf("%s: %v", m.JSON(), err)
		}
	})
}
