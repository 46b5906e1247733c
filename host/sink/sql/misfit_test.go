package sql_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestMisfits: what no database of the kind takes does not become a row; what the table does not take is refused before it is
// sent, row by row, and what is left is published.
func TestMisfits(t *testing.T) {
	for name, c := range map[string]struct {
		ddl, schema, only string
		good              []string
		misfits           map[string]string // code by record
		refused           map[string]string // code by record
	}{
		"varchar": {
			ddl: "CREATE TABLE x (a varchar(3), b char(2))", schema: "a: string, b: string", only: "postgres",
			good:    []string{`{"a":"äöü","b":"x"}`, `{"a":null}`},
			refused: map[string]string{`{"a":"äöüä"}`: "length", `{"a":"a   "}`: "length", `{"b":"abc"}`: "length"},
		},
		"not null": {
			ddl: "CREATE TABLE x (a text NOT NULL, b integer)", schema: "a: string, b: int32",
			good: []string{`{"a":""}`}, refused: map[string]string{`{}`: "missing", `{"a":null,"b":1}`: "missing"},
		},
		"schema's not null": {
			ddl: "CREATE TABLE x (a text)", schema: "a: string not null", good: []string{`{"a":""}`}, misfits: map[string]string{`{}`: "missing"},
		},
		"zero byte": {
			ddl: "CREATE TABLE x (a text)", schema: "a: string", good: []string{`{"a":"\u0001"}`},
			misfits: map[string]string{`{"a":"x\u0000y"}`: "range"},
		},
		"invalid text": {
			ddl: "CREATE TABLE x (a text)", schema: "a: string", good: []string{`{"a":"😀"}`},
			misfits: map[string]string{"{\"a\":\"\xff\"}": "not_json", `{"a":"\ud800"}`: "not_json"},
		},
		"uuid": {
			ddl: "CREATE TABLE x (a uuid)", schema: "a: string", only: "postgres",
			good:    []string{`{"a":"6F1e9f0a-0000-4000-8000-000000000001"}`, `{"a":"6f1e9f0a000040008000000000000001"}`},
			refused: map[string]string{`{"a":"6f1e9f0a-0000-4000-8000-00000000000"}`: "type", `{"a":""}`: "type", `{"a":"6f1e9f0a-0000-4000-8000-00000000000g"}`: "type"},
		},
		"enum": {
			ddl: "CREATE TYPE mood AS ENUM ('sad', 'it''s ok'); CREATE TABLE x (a mood)", schema: "a: string", only: "postgres",
			good: []string{`{"a":"sad"}`, `{"a":"it's ok"}`, `{}`}, refused: map[string]string{`{"a":"Sad"}`: "range", `{"a":""}`: "range"},
		},
		"json": {
			ddl: "CREATE TABLE x (a jsonb, b json)", schema: "a: string, b: string", only: "postgres",
			good:    []string{`{"a":"{\"x\":[1]}","b":"1"}`, `{"a":"\"\\\\u0000\""}`},
			refused: map[string]string{`{"a":"{"}`: "type", `{"b":"x"}`: "type", `{"a":"\"\\u0000\""}`: "range"},
		},
		"nested": {
			ddl: "CREATE TABLE x (a jsonb)", schema: "a: list<map<string, struct<b: string>>>", only: "postgres",
			good:    []string{`{"a":[{"k":{"b":"x"},"l":null},null,{"k":{"b":"\\u0000"}}]}`, `{"a":[]}`},
			misfits: map[string]string{`{"a":[{},{"k":{"b":"\u0000"}}]}`: "range", `{"a":[{"\u0000":null}]}`: "range"},
		},
		"domain": {
			ddl: "CREATE DOMAIN code AS varchar(2) NOT NULL; CREATE DOMAIN deep AS code; CREATE TABLE x (a deep)", schema: "a: string", only: "postgres",
			good: []string{`{"a":"ab"}`}, refused: map[string]string{`{"a":"abc"}`: "length", `{}`: "missing"},
		},
		"numbers": {
			ddl: "CREATE TABLE x (a numeric(9,2), b integer, c double precision)", schema: "a: decimal(9,2), b: int32, c: double", only: "postgres",
			good:    []string{`{"a":9999999.99,"b":-2147483648,"c":"NaN"}`, `{"a":"-1.5"}`},
			misfits: map[string]string{`{"a":"NaN"}`: "type", `{"a":10000000}`: "range", `{"a":0.001}`: "precision", `{"b":2147483648}`: "range"},
		},
		"no NaN": {
			ddl: "CREATE TABLE x (a real)", schema: "a: double", only: "sqlite",
			good: []string{`{"a":"Infinity"}`, `{"a":1e-300}`}, misfits: map[string]string{`{"a":"NaN"}`: "range"},
		},
		"key": {
			ddl: "CREATE TABLE x (a uuid PRIMARY KEY)", schema: "a: string", only: "postgres",
			good:    []string{`{"a":"6f1e9f0a-0000-4000-8000-000000000001"}`},
			misfits: map[string]string{`{}`: "missing"},
			refused: map[string]string{`{"a":"6F1e9f0a-0000-4000-8000-000000000001"}`: "type", `{"a":"6f1e9f0a000040008000000000000001"}`: "type"},
		},
		"timestamps": {
			ddl: "CREATE TABLE x (a timestamp with time zone, d date)", schema: "a: timestamp, d: date", only: "postgres",
			good:    []string{`{"a":"0001-01-01T00:00:00Z","d":"0001-01-01"}`, `{"a":"9999-12-31T23:59:59.999999Z","d":"9999-12-31"}`},
			misfits: map[string]string{`{"a":"9999-12-31T23:59:59-01:00"}`: "range", `{"d":"2013-02-30"}`: "type", `{"a":"infinity"}`: "type"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, c.ddl)
				s := sql.Sink{Table: "x", Schema: schema(t, c.schema)}
				if name == "key" {
					s.Key = []string{"a"}
				}
				target := w.open(t, s)
				l := laneOf(t, target, "rows", nil)
				for bad, code := range c.misfits {
					var m *sink.Misfit
					if err := l.Append(kv{value: bad}.record()); !errors.As(err, &m) || m.Code != code || l.Rows() != 0 || l.Bytes() != 0 {
						t.Errorf("%s: %v, want a misfit %s", bad, err, code)
					}
				}
				want := map[int64]string{}
				for bad, code := range c.refused {
					want[l.Rows()] = code
					must(t, l.Append(kv{value: bad}.record()))
				}
				for _, good := range c.good {
					must(t, l.Append(kv{value: good}.record()))
				}
				if len(want) > 0 {
					_, err := target.Stage(t.Context(), output(0, "rows", l))
					wantFault(t, err, sql.CodeValue, "sink rows, row ", " of lane 0: ")
					wantRefusals(t, err, want)
				}
				publish(t, target, 0, values(c.good...))
				if n := len(w.run(t, "SELECT a FROM x")); n != len(c.good) {
					t.Errorf("%d rows, want %d", n, len(c.good))
				}
			})
		})
	}
}

// wantRefusals asserts that the first lane's rows are refused that are named, with a code each.
func wantRefusals(t *testing.T, err error, want map[int64]string) {
	t.Helper()
	var r *sink.Refused
	if !errors.As(err, &r) || len(r.Rows) != len(want) || r.More {
		t.Fatalf("%v, want %d rows refused", err, len(want))
	}
	for _, row := range r.Rows {
		if m := row.Misfit; row.Sink != "rows" || row.Lane != 0 || m.Code != want[row.Row] || m.Column == "" || m.Reason == "" {
			t.Errorf("row %d of lane %d is refused: %+v, want %q", row.Row, row.Lane, m, want[row.Row])
		}
	}
}

// TestManyMisfits: as many rows are refused at once as would fit a report.
func TestManyMisfits(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.run(t, "CREATE TABLE x (k integer PRIMARY KEY, a text NOT NULL)")
		target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "k: int32, a: string"), Key: []string{"k"}})
		var records []kv
		for i := range 1500 {
			records = append(records, kv{value: fmt.Sprintf(`{"k":%d}`, i)}, kv{key: "7000"})
		}
		_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", records)))
		var r *sink.Refused
		if !errors.As(err, &r) || len(r.Rows) != 1000 || !r.More {
			t.Fatalf("%v", err)
		}
		for _, row := range r.Rows {
			if row.Row%2 != 0 {
				t.Fatalf("row %d is a deletion", row.Row)
			}
		}
	})
}
