package sql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestTableChangedUnderneath: a table that is changed while a job runs is a fault of the next batch, of which nothing is
// published, and which goes through when the table is mended.
func TestTableChangedUnderneath(t *testing.T) {
	for name, c := range map[string]struct{ only, change, mend, code string }{
		"column dropped": {"", "ALTER TABLE x DROP COLUMN b", "ALTER TABLE x ADD COLUMN b text", sql.CodeColumn},
		"column renamed": {"", "ALTER TABLE x RENAME COLUMN b TO c", "ALTER TABLE x RENAME COLUMN c TO b", sql.CodeColumn},
		"table dropped":  {"", "DROP TABLE x", "CREATE TABLE x (a integer, b text)", sql.CodeTable},
		"other type":     {"postgres", "ALTER TABLE x ALTER COLUMN a TYPE real", "ALTER TABLE x ALTER COLUMN a TYPE integer", sql.CodeType},
		"new column":     {"postgres", "TRUNCATE x; ALTER TABLE x ADD COLUMN c integer NOT NULL", "ALTER TABLE x DROP COLUMN c", sql.CodeColumn},
		"unlogged":       {"postgres", "ALTER TABLE x SET UNLOGGED", "ALTER TABLE x SET LOGGED", sql.CodeUnlogged},
		"made anew":      {"", "DROP TABLE x; CREATE TABLE x (a text, b text)", "DROP TABLE x; CREATE TABLE x (a integer, b text)", sql.CodeType},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.run(t, "CREATE TABLE x (a integer, b text)")
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "a: int32, b: string")})
				publish(t, target, 0, values(`{"a":1,"b":"x"}`))
				w.script(t, c.change)
				_, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", values(`{"a":2,"b":"y"}`))))
				if f := wantFault(t, err, c.code, "table x"); f.Passes {
					t.Errorf("%v passes", f)
				}
				w.script(t, c.mend)
				publish(t, target, 1, values(`{"a":2,"b":"y"}`))
				if got := w.texts(t, "SELECT b FROM x WHERE a = 2"); len(got) != 1 {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

// narrow is a database of SQLite that is full after so many pages.
type narrow struct {
	sql.Database
	pages string
}

func (n *narrow) Connect(ctx context.Context, use sql.Use) (sql.Conn, error) {
	c, err := n.Database.Connect(ctx, use)
	if err == nil {
		_, err = c.Query(ctx, "PRAGMA max_page_count = "+n.pages)
	}
	return c, err
}

// TestFull: a batch for which there is no room is not published in part, and goes through when there is.
func TestFull(t *testing.T) {
	w := newWorld(t, "sqlite")
	target := w.open(t, numbers(t), func(cfg *sql.Config) { cfg.Database = &narrow{w.db, "40"} })
	var many []kv
	for range 100_000 {
		many = append(many, kv{value: `{"a":1234567}`})
	}
	publish(t, target, 0, many[:10])
	_, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", many)))
	if f := wantFault(t, err, sql.CodeFull); !f.Passes {
		t.Errorf("%v does not pass", f)
	}
	publish(t, target, 1, many[:10])
	if got := w.texts(t, "SELECT count(*) FROM x"); got[0] != "20" {
		t.Errorf("%v rows", got)
	}
}

// TestReaderInTheWay: who reads a database without WAL for too long keeps a batch from being committed, not from being
// published once, later.
func TestReaderInTheWay(t *testing.T) {
	w := newWorld(t, "sqlite")
	target := w.open(t, numbers(t), func(cfg *sql.Config) {
		cfg.Limits.Lock, cfg.Patience = 20*time.Millisecond, 200*time.Millisecond
	})
	ctx := context.Background()
	reader, err := w.db.Connect(ctx, sql.Use{ReadOnly: true, Limits: testLimits})
	must(t, err)
	defer reader.Close(ctx)
	_, err = reader.Query(ctx, "BEGIN")
	must(t, err)
	_, err = reader.Query(ctx, "SELECT count(*) FROM x")
	must(t, err)
	out := output(0, "rows", laneOf(t, target, "rows", values(`{"a":1}`)))
	s, err := target.Stage(t.Context(), out)
	must(t, err)
	err = target.Publish(t.Context(), decision(0), s)
	if !errors.Is(err, sink.ErrLost) && asFault(err) == nil {
		t.Fatalf("%v, want ErrLost or a fault", err)
	}
	must(t, reader.Rollback(ctx))
	p, err := target.Open(t.Context(), owner())
	must(t, err)
	if p.Batch != -1 {
		t.Fatalf("%+v", p)
	}
	publish(t, target, 0, values(`{"a":1}`))
	if got := w.texts(t, "SELECT count(*) FROM x"); got[0] != "1" {
		t.Errorf("%v rows", got)
	}
}

// TestWAL: a database in that mode is published to beside a reader that stays.
func TestWAL(t *testing.T) {
	w := newWorld(t, "sqlite")
	w.run(t, "PRAGMA journal_mode = WAL")
	target := w.open(t, numbers(t))
	ctx := context.Background()
	reader, err := w.db.Connect(ctx, sql.Use{ReadOnly: true, Limits: testLimits})
	must(t, err)
	defer reader.Close(ctx)
	_, err = reader.Query(ctx, "BEGIN")
	must(t, err)
	count := func() string {
		got, err := reader.Query(ctx, "SELECT count(*) FROM x")
		must(t, err)
		return got[0][0]
	}
	before := count()
	publish(t, target, 0, values(`{"a":1}`))
	if before != "0" || count() != "0" {
		t.Error("the reader sees another state in its transaction")
	}
	must(t, reader.Rollback(ctx))
	if got := count(); got != "1" {
		t.Errorf("%s rows", got)
	}
}

// TestCancelledWhileStaging: a job that is told to end does not wait for a statement.
func TestCancelledWhileStaging(t *testing.T) {
	w := newWorld(t, "postgres")
	s := numbers(t)
	s.Statement = "insert into x select :a from (select pg_sleep(60)) as s"
	target := w.open(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := target.Stage(ctx, output(0, "rows", laneOf(t, target, "rows", values(`{"a":1}`))))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	must(t, target.Abort(t.Context(), 0))
	if got := w.texts(t, "SELECT a FROM x"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestTableWidened: what still takes the values is taken up while the job runs.
func TestTableWidened(t *testing.T) {
	for name, c := range map[string]struct{ only, change, want string }{
		"wider type": {"postgres", "ALTER TABLE x ALTER COLUMN a TYPE bigint", "2y"},
		"decimal":    {"postgres", "ALTER TABLE x ALTER COLUMN a TYPE numeric(12,2)", "2.00y"},
		"new column": {"", "ALTER TABLE x ADD COLUMN c text DEFAULT 'z'", "2y"},
		"new rule":   {"postgres", "ALTER TABLE x ALTER COLUMN b TYPE varchar(1)", "2y"},
		"made anew":  {"", "DROP TABLE x; CREATE TABLE x (b text, a bigint)", "2y"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.run(t, "CREATE TABLE x (a integer, b text)")
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "a: int32, b: string")})
				publish(t, target, 0, values(`{"a":1,"b":"x"}`))
				w.script(t, c.change)
				if name == "new rule" {
					_, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", values(`{"b":"zz"}`))))
					wantRefusals(t, err, map[int64]string{0: "length"})
				}
				publish(t, target, 1, values(`{"a":2,"b":"y"}`))
				if got := w.texts(t, "SELECT CAST(a AS text) || b FROM x WHERE a = 2"); len(got) != 1 || got[0] != c.want {
					t.Errorf("%v, want %s", got, c.want)
				}
			})
		})
	}
}

// TestTypeWidened: so is what changed in a column's type alone, or took the table's place.
func TestTypeWidened(t *testing.T) {
	for name, c := range map[string]struct{ ddl, change, value string }{
		"enum, new value":    {"CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE x (id integer PRIMARY KEY, a mood)", "ALTER TYPE mood ADD VALUE 'glad'", `"glad"`},
		"enum, renamed":      {"CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE x (id integer PRIMARY KEY, a mood)", "ALTER TYPE mood RENAME VALUE 'sad' TO 'glad'", `"glad"`},
		"enum in a domain":   {"CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d AS mood; CREATE TABLE x (id integer PRIMARY KEY, a d)", "ALTER TYPE mood ADD VALUE 'glad'", `"glad"`},
		"domain takes null":  {"CREATE DOMAIN d AS text NOT NULL; CREATE TABLE x (id integer PRIMARY KEY, a d)", "ALTER DOMAIN d DROP NOT NULL", "null"},
		"replaced by a view": {"CREATE TABLE x (id integer, a text)", "ALTER TABLE x RENAME TO y; CREATE VIEW x AS SELECT id, a FROM y", `"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "postgres")
			w.script(t, c.ddl)
			target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int32, a: string")})
			publish(t, target, 0, values(`{"id":1,"a":"sad"}`))
			w.script(t, c.change)
			publish(t, target, 1, values(`{"id":2,"a":`+c.value+`}`))
			if got := w.texts(t, "SELECT coalesce(to_json(a::text)::text, 'null') FROM x WHERE id = 2"); len(got) != 1 || got[0] != c.value {
				t.Errorf("%v, want %s", got, c.value)
			}
		})
	}
}

// TestRoleDefaults: what a role's settings make of texts, times and sessions does not reach what the job writes.
func TestRoleDefaults(t *testing.T) {
	w := newWorld(t, "postgres")
	poor, role := w.poor(t)
	for _, set := range []string{
		"timezone = 'Asia/Tokyo'", "datestyle = 'German'", "intervalstyle = 'sql_standard'", "extra_float_digits = -10", "standard_conforming_strings = off",
		"idle_session_timeout = '5s'", "idle_in_transaction_session_timeout = '5s'", "synchronous_commit = off",
	} {
		w.run(t, "ALTER ROLE "+role+" SET "+set)
	}
	w.run(t, "CREATE TABLE x (a timestamp, b timestamptz, c date, d interval, e text, f text)", "GRANT SELECT, INSERT ON x TO "+role, sql.EpochTable, "GRANT SELECT, INSERT, UPDATE ON wasmill_epoch TO "+role)
	target := poor.open(t, sql.Sink{
		Schema:    schema(t, "at: timestamp, day: string, span: string, n: double"),
		Statement: `insert into x values (:at, :at, :day, :span, :n::text, 'a\' || :day)`,
	})
	publish(t, target, 0, values(`{"at":"2020-06-01T00:00:00Z","day":"2020-06-01","span":"-1 2:03:04","n":0.1234567890123}`))
	if diff := cmp.Diff([]string{`2020-06-01 00:00:00 1590969600 2020-06-01 -1 days +02:03:04 0.1234567890123 a\2020-06-01`},
		w.texts(t, "SELECT concat_ws(' ', a, extract(epoch FROM b)::bigint, c, d, e, f) FROM x")); diff != "" {
		t.Errorf("the table has (-want +got):\n%s", diff)
	}
	for setting, want := range map[string]string{"idle_session_timeout": "0", "idle_in_transaction_session_timeout": "1min", "synchronous_commit": "on"} {
		if got := poor.texts(t, "SHOW "+setting); got[0] != want {
			t.Errorf("%s is %s, want %s", setting, got[0], want)
		}
	}
}
