package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestUpsertAndDelete: the last change of a key counts, over lanes and batches, whatever the key's columns are.
func TestUpsertAndDelete(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		one := w.open(t, sql.Sink{Table: "totals", Schema: schema(t, "id: int64, total: decimal(9,2), note: string"), Key: []string{"id"}, Create: true})
		publish(t, one, 0,
			values(`{"id":1,"total":1.5,"note":"a"}`, `{"id":2,"total":2}`, `{"id":1,"total":1.75,"note":"b"}`),
			values(`{"id":3,"total":3}`, `{"id":2,"total":2.25,"note":"c"}`),
		)
		want := func(want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, w.texts(t, "SELECT id || ' ' || total || ' ' || coalesce(note, '-') FROM totals ORDER BY id")); diff != "" {
				t.Fatalf("the table has (-want +got):\n%s", diff)
			}
		}
		want("1 1.75 b", "2 2.25 c", "3 3.00 -")
		publish(t, one, 1,
			[]kv{{key: "1"}, {key: "x", value: `{"id":3,"total":4}`}, {key: "2"}, {value: `{"id":2,"total":9}`}},
			[]kv{{value: `{"id":4,"total":5}`}, {key: "4"}, {key: "99"}},
		)
		want("2 9.00 -", "3 4.00 -")
		publish(t, one, 2, []kv{{key: "2"}, {key: "3"}, {key: "3"}})
		if got := w.texts(t, "SELECT id FROM totals"); len(got) != 0 {
			t.Fatalf("%v is left", got)
		}
	})
}

func TestUpsertByTwoColumns(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		s := sql.Sink{Table: "w", Schema: schema(t, "who: string, at: timestamp(ms), n: int32"), Key: []string{"who", "at"}, Create: true}
		two := w.open(t, s)
		publish(t, two, 0, values(`{"who":"a","at":1000,"n":1}`, `{"who":"a","at":2000,"n":2}`, `{"who":"b","at":1000,"n":3}`))
		publish(t, two, 1, []kv{{key: `["a",1000]`}, {key: `["b","1970-01-01T00:00:01Z"]`, value: nil}, {value: `{"who":"b","at":3000,"n":4}`}})
		if diff := cmp.Diff([]string{"a2", "b4"}, w.texts(t, "SELECT who || n FROM w ORDER BY 1")); diff != "" {
			t.Fatal(diff)
		}
		l, err := two.NewLane("rows")
		must(t, err)
		for _, bad := range []kv{{}, {key: "a"}, {key: `["a"]`}, {key: `["a",1,2]`}, {key: `["a",null]`}, {key: "\xff"}, {value: `{"who":null,"at":1}`}, {value: `{"who":"a"}`}} {
			var m *sink.Misfit
			if err := l.Append(bad.record()); !errors.As(err, &m) || m.Code == "" || m.Reason == "" {
				t.Errorf("%v: %v, want a misfit", bad, err)
			}
		}
		if l.Rows() != 0 || l.Bytes() != 0 {
			t.Errorf("misfits left %d rows of %d bytes", l.Rows(), l.Bytes())
		}
	})
}

// TestKeysOfEachKind: each type that can be a key finds its row again, to replace it and to delete it.
func TestKeysOfEachKind(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		for typ, c := range map[string]struct{ one, other, key string }{
			"string": {`"a"`, `"A"`, "a"}, "boolean": {"true", "false", "true"}, "int8": {"-128", "127", "-128"}, "int16": {"-32768", "7", "-32768"},
			"int32": {"1", "2", "1"}, "int64": {"9223372036854775807", "0", "9223372036854775807"}, "decimal(9,2)": {"1.50", "-1.5", "1.5"},
			"timestamp":     {`"2026-01-01T00:00:00.000001Z"`, `"2026-01-01T00:00:00Z"`, "2026-01-01T00:00:00.000001Z"},
			"timestamp_ntz": {`"2026-01-01T00:00:00.000001"`, `"2026-01-01T00:00:00"`, "2026-01-01T00:00:00.000001"}, "date": {`"2026-01-01"`, `"2026-01-02"`, "2026-01-01"},
		} {
			table := "of_" + strings.Trim(typ, "()92,")
			row := func(k string, v int) kv { return kv{value: fmt.Sprintf(`{"k":%s,"v":%d}`, k, v)} }
			s := sql.Sink{Table: table, Schema: schema(t, "k: "+typ+", v: int32"), Key: []string{"k"}, Create: true}
			target := w.open(t, s, func(cfg *sql.Config) { cfg.Connection = table })
			publish(t, target, 0, []kv{row(c.one, 1), row(c.other, 2), row(c.one, 3)})
			publish(t, target, 1, []kv{row(c.other, 4)})
			if diff := cmp.Diff([]string{"3", "4"}, w.texts(t, "SELECT v FROM "+table+" ORDER BY v")); diff != "" {
				t.Errorf("%s: the table has (-want +got):\n%s", typ, diff)
			}
			publish(t, target, 2, []kv{{key: c.key}})
			if diff := cmp.Diff([]string{"4"}, w.texts(t, "SELECT v FROM "+table)); diff != "" {
				t.Errorf("%s: after a deletion the table has (-want +got):\n%s", typ, diff)
			}
		}
	})
}

// TestKeyOnly: a table that has nothing but its key.
func TestKeyOnly(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		s := w.open(t, sql.Sink{Table: "seen", Schema: schema(t, "id: string"), Key: []string{"id"}, Create: true})
		publish(t, s, 0, values(`{"id":"a"}`, `{"id":"b"}`, `{"id":"a"}`))
		publish(t, s, 1, []kv{{value: `{"id":"a"}`}, {key: "b"}})
		if diff := cmp.Diff([]string{"a"}, w.texts(t, "SELECT id FROM seen")); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestManyRows crosses the bounds of what is sent at once.
func TestManyRows(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const n = 25_003
		var all []kv
		for i := range n {
			all = append(all, kv{value: fmt.Sprintf(`{"id":%d,"t":%q}`, i, strings.Repeat("x", i%90))})
		}
		sum := func(table string) string {
			return w.texts(t, "SELECT count(*) || ' ' || sum(id) || ' ' || sum(length(t)) FROM "+table)[0]
		}
		length := 0
		for i := range n {
			length += i % 90
		}
		want := fmt.Sprintf("%d %d %d", n, n*(n-1)/2, length)
		for name, s := range map[string]sql.Sink{
			"appended": {}, "upserted": {Key: []string{"id"}}, "stated": {Statement: "insert into stated (id, t) values (:id, :t)"},
		} {
			s.Table, s.Schema, s.Create = name, schema(t, "id: int64, t: string"), true
			target := w.open(t, s, func(cfg *sql.Config) { cfg.Connection = name })
			publish(t, target, 0, all[:n/2], nil, all[n/2:])
			if got := sum(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		target := w.open(t, sql.Sink{Table: "upserted", Schema: schema(t, "id: int64, t: string"), Key: []string{"id"}}, func(cfg *sql.Config) { cfg.Connection = "upserted" })
		var gone []kv
		for i := range n {
			gone = append(gone, kv{key: fmt.Sprint(i)})
		}
		publish(t, target, 1, gone)
		if got := w.texts(t, "SELECT count(*) FROM upserted"); got[0] != "0" {
			t.Errorf("%s rows are left", got[0])
		}
	})
}

// TestSeveralSinks: all sinks of a connection publish in one transaction.
func TestSeveralSinks(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		add := func(cfg *sql.Config) {
			cfg.Sinks = append(cfg.Sinks, sql.Sink{Name: "b", Table: "b", Schema: schema(t, "n: int32"), Create: true})
		}
		target := w.open(t, sql.Sink{Name: "a", Table: "a", Schema: schema(t, "n: int32"), Create: true}, add)
		out := output(0, "b", laneOf(t, target, "b", values(`{"n":1}`, `{"n":2}`)))
		out.Sinks = append(out.Sinks, sink.SinkOutput{Name: "a", Lanes: []sink.Lane{laneOf(t, target, "a", values(`{"n":3}`))}})
		s, err := target.Stage(t.Context(), out)
		must(t, err)
		count := func() string {
			return w.texts(t, "SELECT (SELECT count(*) FROM a) || ' ' || (SELECT count(*) FROM b)")[0]
		}
		if got := count(); got != "0 0" {
			t.Fatalf("%s rows are visible before they are published", got)
		}
		must(t, target.Publish(t.Context(), decision(0), s))
		if got := count(); got != "1 2" {
			t.Fatalf("%s rows, want 1 2", got)
		}
	})
}

// TestTwoQueries publish to one table, each with an epoch row of its own.
func TestTwoQueries(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		for n, id := range []string{query, "6f1e9f0b-0000-4000-8000-000000000002"} {
			target := w.target(t, sql.Sink{Table: "n", Schema: schema(t, "n: int32"), Create: true})
			o := owner()
			o.Query = id
			p, err := target.Open(t.Context(), o)
			must(t, err)
			if p.Batch != -1 {
				t.Fatalf("%s: %+v is published", id, p)
			}
			for batch := range 3 {
				publish(t, target, checkpoint.BatchID(batch), values(fmt.Sprintf(`{"n":%d}`, 10*n+batch)))
			}
			must(t, target.Close())
		}
		if got := w.texts(t, "SELECT n FROM n ORDER BY n"); !slices.Equal(got, []string{"0", "1", "2", "10", "11", "12"}) {
			t.Fatalf("%v", got)
		}
		if got := w.texts(t, "SELECT batch || ' ' || owner || ' ' || version || ' ' || job FROM wasmill_epoch WHERE query_id NOT LIKE '%/table' ORDER BY query_id"); !slices.Equal(got, []string{"2 1 1 test", "2 1 1 test"}) {
			t.Fatalf("%v", got)
		}
	})
}
