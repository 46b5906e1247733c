package sql_test

import (
	"errors"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestMisfits: what the table says of its columns is known before a row is sent.
func TestMisfits(t *testing.T) {
	for name, c := range map[string]struct {
		ddl, schema, only string
		good              []string
		bad               map[string]string // code by record
	}{
		"varchar": {
			ddl: "CREATE TABLE x (a varchar(3), b char(2))", schema: "a: string, b: string", only: "postgres",
			good: []string{`{"a":"äöü","b":"x"}`, `{"a":null}`},
			bad:  map[string]string{`{"a":"äöüä"}`: "length", `{"a":"a   "}`: "length", `{"b":"abc"}`: "length"},
		},
		"not null": {
			ddl: "CREATE TABLE x (a text NOT NULL, b integer)", schema: "a: string, b: int32",
			good: []string{`{"a":""}`}, bad: map[string]string{`{}`: "missing", `{"a":null,"b":1}`: "missing"},
		},
		"zero byte": {
			ddl: "CREATE TABLE x (a text)", schema: "a: string", good: []string{`{"a":"\u0001"}`},
			bad: map[string]string{`{"a":"x\u0000y"}`: "range"},
		},
		"invalid text": {
			ddl: "CREATE TABLE x (a text)", schema: "a: string", good: []string{`{"a":"😀"}`},
			bad: map[string]string{"{\"a\":\"\xff\"}": "not_json", `{"a":"\ud800"}`: "not_json"},
		},
		"uuid": {
			ddl: "CREATE TABLE x (a uuid)", schema: "a: string", only: "postgres",
			good: []string{`{"a":"6F1e9f0a-0000-4000-8000-000000000001"}`, `{"a":"6f1e9f0a000040008000000000000001"}`},
			bad:  map[string]string{`{"a":"6f1e9f0a-0000-4000-8000-00000000000"}`: "type", `{"a":""}`: "type", `{"a":"6f1e9f0a-0000-4000-8000-00000000000g"}`: "type"},
		},
		"enum": {
			ddl: "CREATE TYPE mood AS ENUM ('sad', 'it''s ok'); CREATE TABLE x (a mood)", schema: "a: string", only: "postgres",
			good: []string{`{"a":"sad"}`, `{"a":"it's ok"}`, `{}`}, bad: map[string]string{`{"a":"Sad"}`: "range", `{"a":""}`: "range"},
		},
		"json": {
			ddl: "CREATE TABLE x (a jsonb, b json)", schema: "a: string, b: string", only: "postgres",
			good: []string{`{"a":"{\"x\":[1]}","b":"1"}`}, bad: map[string]string{`{"a":"{"}`: "type", `{"b":"x"}`: "type", `{"a":"\"\\u0000\""}`: "range"},
		},
		"nested": {
			ddl: "CREATE TABLE x (a jsonb)", schema: "a: list<string>", only: "postgres",
			good: []string{`{"a":["x",null]}`, `{"a":[]}`}, bad: map[string]string{`{"a":["\u0000"]}`: "range"},
		},
		"domain": {
			ddl: "CREATE DOMAIN code AS varchar(2) NOT NULL; CREATE DOMAIN deep AS code; CREATE TABLE x (a deep)", schema: "a: string", only: "postgres",
			good: []string{`{"a":"ab"}`}, bad: map[string]string{`{"a":"abc"}`: "length", `{}`: "missing"},
		},
		"numbers": {
			ddl: "CREATE TABLE x (a numeric(9,2), b integer, c double precision)", schema: "a: decimal(9,2), b: int32, c: double", only: "postgres",
			good: []string{`{"a":9999999.99,"b":-2147483648,"c":"NaN"}`, `{"a":"-1.5"}`},
			bad:  map[string]string{`{"a":"NaN"}`: "type", `{"a":10000000}`: "range", `{"a":0.001}`: "precision", `{"b":2147483648}`: "range"},
		},
		"no NaN": {
			ddl: "CREATE TABLE x (a real)", schema: "a: double", only: "sqlite",
			good: []string{`{"a":"Infinity"}`, `{"a":1e-300}`}, bad: map[string]string{`{"a":"NaN"}`: "range"},
		},
		"key": {
			ddl: "CREATE TABLE x (a uuid PRIMARY KEY)", schema: "a: string", only: "postgres",
			good: []string{`{"a":"6f1e9f0a-0000-4000-8000-000000000001"}`},
			bad:  map[string]string{`{"a":"6F1e9f0a-0000-4000-8000-000000000001"}`: "type", `{"a":"6f1e9f0a000040008000000000000001"}`: "type"},
		},
		"timestamps": {
			ddl: "CREATE TABLE x (a timestamp with time zone, d date)", schema: "a: timestamp, d: date", only: "postgres",
			good: []string{`{"a":"0001-01-01T00:00:00Z","d":"0001-01-01"}`, `{"a":"9999-12-31T23:59:59.999999Z","d":"9999-12-31"}`},
			bad:  map[string]string{`{"a":"9999-12-31T23:59:59-01:00"}`: "range", `{"d":"2013-02-30"}`: "type", `{"a":"infinity"}`: "type"},
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
				target := w.target(t, s)
				l, err := target.NewLane("rows") // before it is known what the table says
				must(t, err)
				_, err = target.Open(t.Context(), owner())
				must(t, err)
				for bad, code := range c.bad {
					size := l.Bytes()
					var m *sink.Misfit
					if err := l.Append(kv{value: bad}.record()); !errors.As(err, &m) || m.Code != code {
						t.Errorf("%s: %v, want a misfit %s", bad, err, code)
					}
					if l.Bytes() != size {
						t.Errorf("%s stays", bad)
					}
				}
				for _, good := range c.good {
					if err := l.Append(kv{value: good}.record()); err != nil {
						t.Errorf("%s: %v", good, err)
					}
				}
				st, err := target.Stage(t.Context(), output(0, "rows", l))
				must(t, err)
				must(t, target.Publish(t.Context(), decision(0), st))
				if n := len(w.run(t, "SELECT a FROM x")); n != len(c.good) {
					t.Errorf("%d rows, want %d", n, len(c.good))
				}
			})
		})
	}
}
