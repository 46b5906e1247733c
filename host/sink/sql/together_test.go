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

// TestOthersRefused: rows that the database takes are not set aside for others of their batch that it does not take, whatever
// they need of rows that come later, and the batch goes through at once with all of them.
func TestOthersRefused(t *testing.T) {
	const (
		tree   = "CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES x (id)%s, n bigint CHECK (n >= 0))"
		family = "CREATE TABLE y (id bigint PRIMARY KEY, p bigint, n bigint CHECK (n >= 0)); CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES y (id) DEFERRABLE INITIALLY DEFERRED, n bigint CHECK (n >= 0))"
		ranks  = "CREATE TABLE x (id bigint PRIMARY KEY, p bigint UNIQUE DEFERRABLE%s, n bigint CHECK (n >= 0)); INSERT INTO x VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0)"
	)
	children := func(n int, other ...kv) []kv {
		var out []kv
		for i := range n {
			out = append(out, kv{value: fmt.Sprintf(`{"id":%d,"p":%d,"n":1}`, i, n-1-i)})
		}
		return append(out, other...)
	}
	for name, c := range map[string]struct {
		only, ddl string
		key       []string
		x, y      []kv // y is written after x
		want      []string
	}{
		"parents come later": {
			ddl: family, x: children(300), y: children(300, values(`{"id":900,"n":-1}`)...), want: []string{"later 300"},
		},
		"a parent is refused": {
			ddl: family, x: values(`{"id":1,"p":1}`, `{"id":2,"p":2}`, `{"id":3,"p":3}`), y: values(`{"id":1}`, `{"id":2,"n":-1}`, `{"id":3}`),
			want: []string{"rows 1", "later 1"},
		},
		"a parent is missing": {
			ddl: family, x: children(300, values(`{"id":900,"p":901}`)...), y: children(300), want: []string{"rows 300"},
		},
		"its own parent in the batch": {
			only: "postgres", ddl: fmt.Sprintf(tree, ""), x: values(`{"id":9,"n":-1}`, `{"id":1,"p":2}`, `{"id":2,"p":3}`, `{"id":3}`, `{"id":4}`), want: []string{"rows 0"},
		},
		"its own parent, deferred": {
			ddl: fmt.Sprintf(tree, " DEFERRABLE INITIALLY DEFERRED"), x: values(`{"id":1,"p":2}`, `{"id":9,"n":-1}`, `{"id":2,"p":3}`, `{"id":7,"p":8}`, `{"id":3}`, `{"id":4}`),
			want: []string{"rows 1", "rows 3"},
		},
		"parents of each other": {
			only: "postgres", ddl: fmt.Sprintf(tree, ""), x: values(`{"id":1,"p":3}`, `{"id":9,"n":-1}`, `{"id":8,"p":99}`, `{"id":3,"p":1}`), want: []string{"rows 1", "rows 2"},
		},
		"a long chain": {
			only: "postgres", ddl: fmt.Sprintf(tree, ""), key: []string{"id"}, x: chain(1000, values(`{"id":5000,"p":5001}`, `{"id":5002,"n":-1}`)...), want: []string{"rows 500", "rows 501"},
		},
		"values that change places": {
			only: "postgres", ddl: fmt.Sprintf(ranks, " INITIALLY DEFERRED"), key: []string{"id"},
			x: values(`{"id":1,"p":2}`, `{"id":2,"p":1}`, `{"id":3,"p":3,"n":-1}`), want: []string{"rows 2"},
		},
		"values that change places in a statement": {
			only: "postgres", ddl: fmt.Sprintf(ranks, ""), key: []string{"id"},
			x: values(`{"id":1,"p":2}`, `{"id":2,"p":3}`, `{"id":3,"p":1}`, `{"id":4,"n":-1}`), want: []string{"rows 3"},
		},
		"a row that is refused has the value": {
			ddl: family, x: values(`{"id":1,"p":99}`, `{"id":1,"p":1}`), y: values(`{"id":1}`), want: []string{"rows 0"},
		},
		"parents in another part, not deferred": {
			only: "postgres", ddl: strings.Replace(family, " DEFERRABLE INITIALLY DEFERRED", "", 1), x: values(`{"id":1,"p":1}`, `{"id":2}`), y: values(`{"id":1}`), want: []string{"rows 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, c.ddl)
				s := schema(t, "id: int64, p: int64, n: int64")
				target := w.open(t, sql.Sink{Table: "x", Schema: s, Key: c.key}, func(cfg *sql.Config) {
					if c.y != nil {
						cfg.Sinks = append(cfg.Sinks, sql.Sink{Name: "later", Table: "y", Schema: s})
					}
				})
				batch := func(without []string) sink.Output {
					out := output(0, "rows", laneOf(t, target, "rows", leaveOut("rows", c.x, without)))
					if c.y != nil {
						out.Sinks = append(out.Sinks, sink.SinkOutput{Name: "later", Lanes: []sink.Lane{laneOf(t, target, "later", leaveOut("later", c.y, without))}})
					}
					return out
				}
				_, err := target.Stage(t.Context(), batch(nil))
				var r *sink.Refused
				if !errors.As(err, &r) || r.More {
					t.Fatalf("%v, want refused rows", err)
				}
				var got []string
				for _, row := range r.Rows {
					got = append(got, fmt.Sprintf("%s %d", row.Sink, row.Row))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("refused are (-want +got):\n%s", diff)
				}
				st, err := target.Stage(t.Context(), batch(got))
				must(t, err)
				must(t, target.Publish(t.Context(), decision(0), st))
			})
		})
	}
}

// chain are rows each of which needs the next, with others in the middle.
func chain(n int, others ...kv) []kv {
	var out []kv
	for i := range n {
		if i == n/2 {
			out = append(out, others...)
		}
		out = append(out, kv{value: fmt.Sprintf(`{"id":%d,"p":%d}`, i, min(i+1, n-1))})
	}
	return out
}

func leaveOut(name string, records []kv, without []string) []kv {
	var out []kv
	for i, r := range records {
		if !slices.Contains(without, fmt.Sprintf("%s %d", name, i)) {
			out = append(out, r)
		}
	}
	return out
}

// TestRefusedTogether: where no row is refused alone the way out does not say that it can be set aside, and works.
func TestRefusedTogether(t *testing.T) {
	w := newWorld(t, "postgres")
	w.run(
		t, "CREATE TABLE x (k text PRIMARY KEY, v integer)",
		"CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k = lower(NEW.k); RETURN NEW; END $$",
		"CREATE TRIGGER low BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION low()",
	)
	s := sql.Sink{Table: "x", Schema: schema(t, "k: string, v: int32"), Key: []string{"k"}}
	records := values(`{"k":"a","v":1}`, `{"k":"A","v":2}`, `{"k":"b","v":3}`)
	target := w.open(t, s)
	_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", records)))
	f := wantFault(t, err, sql.CodeValue, "a second time", "a trigger changes the key", "`statement`")
	if errors.As(err, new(*sink.Refused)) || strings.Contains(f.Hint(), "dead-letter") || f.Passes {
		t.Errorf("%v (%s)", f, f.Hint())
	}
	s.Key, s.Statement = nil, "insert into x values (:k, :v) on conflict (k) do update set v = excluded.v"
	publish(t, w.open(t, s), 0, records)
	if diff := cmp.Diff([]string{"a2", "b3"}, w.texts(t, "SELECT k || v FROM x ORDER BY k")); diff != "" {
		t.Errorf("the table has (-want +got):\n%s", diff)
	}
}

// TestRowsThatNeedEachOther: rows of a batch may need others of it, however many there are and whatever the order.
func TestRowsThatNeedEachOther(t *testing.T) {
	const n = 10_500 // more than go into a statement elsewhere
	for name, c := range map[string]struct {
		only, ddl string
		key       []string
	}{
		"appended":     {ddl: "CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES x (id))"},
		"upserted":     {ddl: "CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES x (id))", key: []string{"id"}},
		"row security": {only: "postgres", ddl: "CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES x (id)); ALTER TABLE x ENABLE ROW LEVEL SECURITY"},
		"a value that goes round": {
			only: "postgres", key: []string{"id"},
			ddl: fmt.Sprintf("CREATE TABLE x (id bigint PRIMARY KEY, p bigint UNIQUE DEFERRABLE); INSERT INTO x SELECT i, (i + %d) %% %d FROM generate_series(0, %d) AS i", n-1, n, n-1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, c.ddl)
				var records []kv
				for i := range n {
					records = append(records, kv{value: fmt.Sprintf(`{"id":%d,"p":%d}`, i, (i+1)%n)})
				}
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64, p: int64"), Key: c.key})
				publish(t, target, 0, records)
				if got := w.texts(t, fmt.Sprintf("SELECT count(*) FROM x WHERE p = (id + 1) %% %d", n)); got[0] != fmt.Sprint(n) {
					t.Errorf("%s rows, want %d", got[0], n)
				}
			})
		})
	}
}

// TestMostRefused: a row that another one stood in the way of is none of those that are refused, also where as many are found as
// are looked for.
func TestMostRefused(t *testing.T) {
	for _, n := range []int{998, 999, 1000, 1200} {
		onEach(t, func(t *testing.T, w *world) {
			w.script(t, "CREATE TABLE y (id bigint PRIMARY KEY); INSERT INTO y VALUES (1); "+
				"CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES y (id) DEFERRABLE INITIALLY DEFERRED)")
			var records []kv
			for i := range n {
				records = append(records, kv{value: fmt.Sprintf(`{"id":%d,"p":777}`, i)})
			}
			records = append(records, values(`{"id":0,"p":1}`, `{"id":50000,"p":1}`)...)
			target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64, p: int64")})
			_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", records)))
			var r *sink.Refused
			if !errors.As(err, &r) || len(r.Rows) == 0 {
				t.Fatalf("%d: %v, want refused rows", n, err)
			}
			for _, row := range r.Rows {
				if row.Row >= int64(n) {
					t.Errorf("%d: row %d is refused: %s", n, row.Row, row.Misfit.Reason)
				}
			}
		})
	}
}
