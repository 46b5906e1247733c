package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestTableDropped: a table that the job made and published in is not made again in silence, whatever else it makes.
func TestTableDropped(t *testing.T) {
	made := func(t *testing.T, name string) sql.Sink {
		return sql.Sink{Name: "rows", Table: name, Schema: schema(t, "a: int32"), Create: true}
	}
	count := func(t *testing.T, w *world, table string) string { return w.texts(t, "SELECT count(*) FROM "+table)[0] }
	for name, f := range map[string]func(t *testing.T, w *world){
		"between two runs": func(t *testing.T, w *world) {
			target := w.open(t, made(t, "x"))
			publish(t, target, 0, values(`{"a":1}`))
			must(t, target.Close())
			w.run(t, "DROP TABLE x")
			again := w.target(t, made(t, "x"))
			_, err := again.Open(t.Context(), owner())
			f := wantFault(t, err, sql.CodeRecreated, "table x", "put the table back", "`wasmill checkpoint fork")
			if fault.IsPassing(err) {
				t.Error("it does not pass")
			}
			// The statement of the way out lets an empty one be made.
			_, statement, _ := strings.Cut(f.Hint(), "published: ")
			statement, _, _ = strings.Cut(statement, ";")
			w.run(t, statement)
			p, err := again.Open(t.Context(), owner())
			must(t, err)
			if p.Batch != 0 || count(t, w, "x") != "0" {
				t.Errorf("%+v is published, %s rows", p, count(t, w, "x"))
			}
		},
		"while it runs": func(t *testing.T, w *world) {
			target := w.open(t, made(t, "x"))
			publish(t, target, 0, values(`{"a":1}`))
			w.run(t, "DROP TABLE x")
			for range 2 {
				_, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", values(`{"a":2}`))))
				if wantFault(t, err, sql.CodeRecreated, "table x", "put the table back", "`wasmill checkpoint fork"); fault.IsPassing(err) {
					t.Error("it does not pass")
				}
			}
			_, err := target.Open(t.Context(), owner())
			wantFault(t, err, sql.CodeRecreated, "table x")
		},
		"while it runs, before anything is published": func(t *testing.T, w *world) {
			target := w.open(t, made(t, "x"))
			w.run(t, "DROP TABLE x")
			if _, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", values(`{"a":1}`)))); err != nil {
				if wantFault(t, err, sql.CodeTable, "table x", "start again"); !fault.IsPassing(err) {
					t.Error("it passes")
				}
				_, err := target.Open(t.Context(), owner())
				must(t, err)
			}
			publish(t, target, 0, values(`{"a":1}`))
			if count(t, w, "x") != "1" {
				t.Error("the rows are missing")
			}
		},
		"while it runs, at least once": func(t *testing.T, w *world) {
			target := w.open(t, made(t, "x"), func(c *sql.Config) { c.Guarantee = sink.AtLeastOnce })
			publish(t, target, 0, values(`{"a":1}`))
			w.run(t, "DROP TABLE x")
			lane := laneOf(t, target, "rows", values(`{"a":2}`))
			for _, again := range []func() error{
				func() error { _, err := target.Stage(t.Context(), output(1, "rows", lane)); return err },
				func() error { _, err := target.Open(t.Context(), owner()); return err },
			} {
				err := again()
				if f := wantFault(t, err, sql.CodeRecreated, "table x", "start again"); fault.IsPassing(err) || strings.Contains(f.Hint(), "wasmill_epoch") {
					t.Errorf("%v (%s)", err, f.Hint())
				}
			}
			publish(t, w.open(t, made(t, "x"), func(c *sql.Config) { c.Guarantee = sink.AtLeastOnce }), 1, values(`{"a":2}`))
		},
		"before anything is published": func(t *testing.T, w *world) {
			target := w.open(t, made(t, "x"))
			_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", values(`{"a":1}`))))
			must(t, err)
			must(t, target.Close())
			w.run(t, "DROP TABLE x")
			publish(t, w.open(t, made(t, "x")), 0, values(`{"a":1}`))
			if count(t, w, "x") != "1" {
				t.Error("the rows are missing")
			}
		},
		"another table": func(t *testing.T, w *world) {
			target := w.open(t, made(t, "x"))
			publish(t, target, 0, values(`{"a":1}`))
			must(t, target.Close())
			w.run(t, "DROP TABLE x")
			publish(t, w.open(t, made(t, "y")), 1, values(`{"a":1}`))
		},
		"of a sink that has had no rows": func(t *testing.T, w *world) {
			both := func(c *sql.Config) {
				more := made(t, "y")
				more.Name = "more"
				c.Sinks = append(c.Sinks, more)
			}
			target := w.open(t, made(t, "x"), both)
			publish(t, target, 0, values(`{"a":1}`))
			must(t, target.Close())
			w.run(t, "DROP TABLE y")
			w.open(t, made(t, "x"), both)
		},
		"at least once": func(t *testing.T, w *world) {
			plain := func(c *sql.Config) { c.Guarantee = sink.AtLeastOnce }
			target := w.open(t, made(t, "x"), plain)
			publish(t, target, 0, values(`{"a":1}`))
			must(t, target.Close())
			w.run(t, "DROP TABLE x")
			publish(t, w.open(t, made(t, "x"), plain), 1, values(`{"a":1}`))
		},
	} {
		t.Run(name, func(t *testing.T) { onEach(t, f) })
	}
}

// TestTableNotMade: that the database cannot make the table is no fault of a record.
func TestTableNotMade(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		name, columns := "x", []string{"a: int32"}
		if w.kind == "postgres" {
			for i := range 1700 { // the server takes 1600
				columns = append(columns, fmt.Sprintf("c%d: int32", i))
			}
		} else {
			name = "sqlite_x" // such names are SQLite's own
		}
		target := w.target(t, sql.Sink{Table: name, Schema: schema(t, strings.Join(columns, ", ")), Create: true})
		_, err := target.Open(t.Context(), owner())
		f := wantFault(t, err, sql.CodeTable, "create the table", "table "+name)
		if strings.Contains(f.Hint(), "records") {
			t.Errorf("way out: %s", f.Hint())
		}
	})
}

// TestToldWhatIsPublished: a target that knows nothing, or less, takes a batch without rows for what it has published, and goes
// on after it. Cut off at any point, it is told again.
func TestToldWhatIsPublished(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		s := sql.Sink{Name: "rows", Table: "x", Schema: schema(t, "a: int32"), Create: true}
		plain := func(c *sql.Config) { c.Guarantee = sink.AtLeastOnce }
		target := w.open(t, s, plain)
		publish(t, target, 4, values(`{"a":4}`))
		must(t, target.Close())
		tell := sink.Output{Batch: 4, Digest: digest(4), Attempt: "0000000b"}
		for range 2 { // staged, and cut off
			target := w.open(t, s)
			_, err := target.Stage(t.Context(), tell)
			must(t, err)
			must(t, target.Close())
		}
		target = w.open(t, s)
		staged, err := target.Stage(t.Context(), tell)
		must(t, err)
		must(t, target.Publish(t.Context(), decision(4), staged))
		must(t, target.Close())
		target = w.target(t, s)
		p, err := target.Open(t.Context(), owner())
		must(t, err)
		if p != (sink.Published{Batch: 4, Digest: digest(4)}) {
			t.Fatalf("%+v is published", p)
		}
		publish(t, target, 5, values(`{"a":5}`))
		if err := target.Publish(t.Context(), decision(4), nil); !errors.As(err, new(*fault.Error)) {
			t.Errorf("an earlier batch: %v", err)
		}
		if got := w.texts(t, "SELECT a FROM x ORDER BY a"); strings.Join(got, " ") != "4 5" {
			t.Errorf("rows %v", got)
		}
	})
}
