package sql_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/sink/sql/sqlite"
)

// TestUnfitTables: what is published is known also where a table is not as it must be, or not there, or where there is no database.
func TestUnfitTables(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.script(t, "CREATE TABLE x (a integer, b integer); CREATE TABLE y (a integer)")
		s := sql.Sink{Table: "x", Schema: schema(t, "a: int32, b: int32")}
		more := func(c *sql.Config) {
			c.Sinks = append(c.Sinks, sql.Sink{Name: "more", Schema: schema(t, "a: int32"), Statement: "insert into y values (:a)"})
		}
		look := func(name string, target *sql.Target, want sink.Published, code string) {
			t.Helper()
			p, err := target.Inspect(t.Context(), owner())
			unfit, ok := errors.AsType[*sink.UnfitError](err)
			if !ok || unfit.Published != want || p.Batch != checkpoint.NoBatch {
				t.Fatalf("%s: %+v, %v: %+v, want %+v", name, p, err, unfit, want)
			}
			wantFault(t, err, code)
		}
		target := w.open(t, s, more)
		publish(t, target, 0, values(`{"a":1}`))
		must(t, target.Close())
		published, nothing := sink.Published{Batch: 0, Digest: digest(0)}, sink.Published{Batch: checkpoint.NoBatch}
		w.run(t, "DROP TABLE y")
		look("a statement's table", w.target(t, s, more), published, sql.CodeTable)
		w.run(t, "ALTER TABLE x DROP COLUMN b")
		look("a column", w.target(t, s), published, sql.CodeColumn)
		w.run(t, "DROP TABLE x")
		look("a table", w.target(t, s), published, sql.CodeTable)
		w.run(t, "DROP TABLE wasmill_epoch")
		look("all tables", w.target(t, s), nothing, sql.CodeTable)
		_, err := w.target(t, s, func(c *sql.Config) { c.Guarantee = sink.AtLeastOnce }).Inspect(t.Context(), owner())
		if wantFault(t, err, sql.CodeTable); errors.As(err, new(*sink.UnfitError)) {
			t.Error("without epochs nothing is known")
		}
		look("the database", w.target(t, s, elsewhere(t, w)), nothing, sql.CodeDatabase)
	})
}

// elsewhere leads a target to a database that is not there.
func elsewhere(t *testing.T, w *world) func(*sql.Config) {
	if w.kind == "postgres" {
		return func(c *sql.Config) { c.Database = newPostgresDatabase(t, with(t, w.url, "dbname", "there_is_none")) }
	}
	db, err := sqlite.New("db", filepath.Join(t.TempDir(), "none.db"))
	must(t, err)
	return func(c *sql.Config) { c.Database = db }
}
