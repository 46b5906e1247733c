package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestRefused: rows that break a constraint are named before anything is decided, all of them, and the batch goes through
// without them.
func TestRefused(t *testing.T) {
	tables := map[string]struct {
		ddl   []string
		key   []string
		lanes [][]kv
		want  []string // lane row
		only  string   // kind
		sql   string   // a statement instead of the INSERT
	}{
		"unique": {
			ddl:   []string{"CREATE TABLE x (id bigint UNIQUE, t text)", "INSERT INTO x VALUES (7, 'old')"},
			lanes: [][]kv{values(`{"id":1}`, `{"id":7}`, `{"id":2}`, `{"id":1}`), values(`{"id":3}`, `{"id":7}`)},
			want:  []string{"0 1", "0 3", "1 1"},
		},
		"check": {
			ddl:   []string{"CREATE TABLE x (id bigint CHECK (id > 0), t text CHECK (t <> 'no'))"},
			lanes: [][]kv{values(`{"id":-1}`, `{"id":1}`, `{"id":2,"t":"no"}`)},
			want:  []string{"0 0", "0 2"},
		},
		"foreign key": {
			ddl:   []string{"CREATE TABLE p (id bigint PRIMARY KEY)", "INSERT INTO p VALUES (1)", "CREATE TABLE x (id bigint REFERENCES p (id), t text)"},
			lanes: [][]kv{values(`{"id":1}`, `{"id":2}`, `{"id":1}`)},
			want:  []string{"0 1"},
		},
		"deferred foreign key": {
			ddl: []string{
				"CREATE TABLE p (id bigint PRIMARY KEY)", "INSERT INTO p VALUES (1)",
				"CREATE TABLE x (id bigint REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED, t text)",
			},
			lanes: [][]kv{values(`{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":1}`)},
			want:  []string{"0 1", "0 2"},
		},
		"deferred unique": {
			ddl:   []string{"CREATE TABLE x (id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED, t text)"},
			lanes: [][]kv{values(`{"id":1}`, `{"id":2}`, `{"id":1}`)},
			want:  []string{"0 2"}, only: "postgres",
		},
		"upsert": {
			ddl:   []string{"CREATE TABLE x (id bigint PRIMARY KEY, t text UNIQUE)", "INSERT INTO x VALUES (7, 'seven'), (8, 'eight')"},
			key:   []string{"id"},
			lanes: [][]kv{{{value: `{"id":1,"t":"seven"}`}, {key: "8"}, {value: `{"id":2,"t":"eight"}`}, {value: `{"id":3,"t":"x"}`}}, values(`{"id":4,"t":"x"}`)},
			want:  []string{"0 0", "1 0"},
		},
		"deletion": {
			ddl: []string{
				"CREATE TABLE x (id bigint PRIMARY KEY, t text)", "INSERT INTO x VALUES (7, 'seven'), (8, 'eight')",
				"CREATE TABLE c (id bigint REFERENCES x (id))", "INSERT INTO c VALUES (7)",
			},
			key: []string{"id"}, lanes: [][]kv{{{key: "8"}, {value: `{"id":1}`}, {key: "7"}}},
			want: []string{"0 2"},
		},
		"strict": {
			ddl:   []string{"CREATE TABLE x (id integer NOT NULL, t text CHECK (length(t) < 3)) STRICT"},
			lanes: [][]kv{values(`{"id":1,"t":"abc"}`, `{"id":1,"t":"ab"}`)},
			want:  []string{"0 0"}, only: "sqlite",
		},
		"unique, rolls back": {
			ddl:   []string{"CREATE TABLE x (id bigint UNIQUE ON CONFLICT ROLLBACK, t text)", "INSERT INTO x VALUES (7, 'old')"},
			lanes: [][]kv{append(ids(100, 550), values(`{"id":7}`, `{"id":2}`, `{"id":2}`)...), append(values(`{"id":7}`, `{"id":3}`), ids(900, 1000)...)},
			want:  []string{"0 450", "0 452", "1 0"}, only: "sqlite",
		},
		"a trigger that rolls back": {
			ddl: []string{
				"CREATE TABLE x (id bigint, t text)",
				"CREATE TRIGGER tr BEFORE INSERT ON x WHEN NEW.id % 100 = 3 BEGIN SELECT RAISE(ROLLBACK, 'no threes'); END",
			},
			lanes: [][]kv{ids(0, 450), ids(502, 504)},
			want:  []string{"0 3", "0 103", "0 203", "0 303", "0 403", "1 1"}, only: "sqlite",
		},
		"an upsert that rolls back": {
			ddl: []string{"CREATE TABLE x (id bigint PRIMARY KEY, t text UNIQUE ON CONFLICT ROLLBACK)", "INSERT INTO x VALUES (7, 'seven'), (8, 'eight')"},
			key: []string{"id"}, lanes: [][]kv{{{value: `{"id":1,"t":"seven"}`}, {key: "8"}, {value: `{"id":2,"t":"eight"}`}, {value: `{"id":3,"t":"x"}`}}, values(`{"id":4,"t":"x"}`)},
			want: []string{"0 0", "1 0"}, only: "sqlite",
		},
		"a deletion that rolls back": {
			ddl: []string{
				"CREATE TABLE x (id bigint PRIMARY KEY, t text)", "INSERT INTO x VALUES (7, 'seven'), (8, 'eight')",
				"CREATE TRIGGER tr BEFORE DELETE ON x WHEN OLD.id = 7 BEGIN SELECT RAISE(ROLLBACK, 'stays'); END",
			},
			key: []string{"id"}, lanes: [][]kv{{{key: "8"}, {value: `{"id":1}`}, {key: "7"}}},
			want: []string{"0 2"}, only: "sqlite",
		},
		"a statement that rolls back": {
			ddl:   []string{"CREATE TABLE x (id bigint UNIQUE, t text)", "INSERT INTO x VALUES (7, 'old')"},
			lanes: [][]kv{values(`{"id":1}`, `{"id":7}`, `{"id":2}`), values(`{"id":2}`, `{"id":3}`)},
			want:  []string{"0 1", "1 0"}, only: "sqlite", sql: "insert or rollback into x values (:id, :t)",
		},
		"fails and stays in the transaction": {
			ddl:   []string{"CREATE TABLE x (id bigint UNIQUE ON CONFLICT FAIL, t text)", "INSERT INTO x VALUES (7, 'old')"},
			lanes: [][]kv{append(ids(100, 350), values(`{"id":7}`, `{"id":2}`)...)},
			want:  []string{"0 250"}, only: "sqlite",
		},
		"partition": {
			ddl: []string{
				"CREATE TABLE x (id bigint, t text) PARTITION BY RANGE (id)", "CREATE TABLE x1 PARTITION OF x FOR VALUES FROM (0) TO (10)",
			},
			lanes: [][]kv{values(`{"id":1}`, `{"id":10}`)},
			want:  []string{"0 1"}, only: "postgres",
		},
		"trigger": {
			ddl: []string{
				"CREATE TABLE x (id bigint, t text)",
				"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 2 THEN RAISE 'no twos'; END IF; RETURN NEW; END $$",
				"CREATE TRIGGER refuse BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION refuse()",
			},
			lanes: [][]kv{values(`{"id":1}`, `{"id":2}`)},
			want:  []string{"0 1"}, only: "postgres",
		},
	}
	for name, c := range tables {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.run(t, c.ddl...)
				before := w.run(t, "SELECT id, t FROM x ORDER BY id")
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64, t: string"), Key: c.key, Statement: c.sql})
				lanes := output(0, "rows")
				for _, l := range c.lanes {
					lanes.Sinks[0].Lanes = append(lanes.Sinks[0].Lanes, laneOf(t, target, "rows", l))
				}
				_, err := target.Stage(t.Context(), lanes)
				var r *sink.Refused
				if !errors.As(err, &r) {
					t.Fatalf("%v, want refused rows", err)
				}
				wantFault(t, err, sql.CodeConstraint, "table x", "sink rows")
				var got []string
				for _, row := range r.Rows {
					got = append(got, fmt.Sprintf("%d %d", row.Lane, row.Row))
					if row.Sink != "rows" || row.Misfit.Code != "constraint" || row.Misfit.Reason == "" || strings.HasPrefix(row.Misfit.Reason, "row ") || strings.HasSuffix(row.Misfit.Reason, ")") && w.kind == "sqlite" {
						t.Errorf("%+v: %+v", row, row.Misfit)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" || r.More {
					t.Fatalf("refused are (-want +got, more: %t):\n%s", r.More, diff)
				}
				if diff := cmp.Diff(before, w.run(t, "SELECT id, t FROM x ORDER BY id")); diff != "" {
					t.Fatalf("the table has changed:\n%s", diff)
				}
				var rest [][]kv
				for i, l := range c.lanes {
					var keep []kv
					for n, record := range l {
						if !slices.Contains(c.want, fmt.Sprintf("%d %d", i, n)) {
							keep = append(keep, record)
						}
					}
					rest = append(rest, keep)
				}
				publish(t, target, 0, rest...)
				if n := w.texts(t, "SELECT count(*) FROM wasmill_epoch WHERE batch = 0 AND query_id NOT LIKE '%/table'"); n[0] != "1" {
					t.Error("the batch is not published")
				}
			})
		})
	}
}

// ids are rows with ids [from, to).
func ids(from, to int) []kv {
	var out []kv
	for i := from; i < to; i++ {
		out = append(out, kv{value: fmt.Sprintf(`{"id":%d}`, i)})
	}
	return out
}

// TestManyRefused: no more rows are looked for than would fit a report.
func TestManyRefused(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.run(t, "CREATE TABLE x (id bigint CHECK (id < 10))")
		target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64")})
		var records []kv
		for i := range 1500 {
			records = append(records, kv{value: fmt.Sprintf(`{"id":%d}`, i)})
		}
		_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", records)))
		var r *sink.Refused
		if !errors.As(err, &r) || len(r.Rows) != 1000 || !r.More {
			t.Fatalf("%v", err)
		}
		publish(t, target, 0, records[:10])
	})
}
