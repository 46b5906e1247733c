package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestEarlierChanges: once the last change of a key is refused the one before counts. All that are refused are found at once, by
// rules of the table, by the database, or by both in turn, and the batch goes through without them.
func TestEarlierChanges(t *testing.T) {
	times := func(n int, record kv) []kv { return slices.Repeat([]kv{record}, n) }
	hot := func(n any) kv { return kv{value: fmt.Sprintf(`{"k":"hot","n":%v}`, n)} }
	const checked = "CREATE TABLE x (k varchar(8) PRIMARY KEY, n integer NOT NULL CHECK (n >= 0), p text)"
	for name, c := range map[string]struct {
		only, ddl string
		records   []kv
		good      []int // places of records that are not refused
		want      string
	}{
		"one key": {
			ddl: checked, records: slices.Concat(values(`{"k":"a","n":1}`), []kv{hot(7)}, times(400, hot(-1)), values(`{"k":"b","n":2}`)),
			good: []int{0, 1, 402}, want: "[[a 1] [b 2] [hot 7]]",
		},
		"none is left": {ddl: checked, records: slices.Concat(times(50, hot(-1)), values(`{"k":"a","n":1}`)), good: []int{50}, want: "[[a 1]]"},
		"rules and constraints": {
			ddl: checked, records: slices.Concat([]kv{hot(7)}, slices.Repeat([]kv{hot("null"), hot(-1)}, 20), values(`{"k":"a","n":-1}`)),
			good: []int{0}, want: "[[hot 7]]",
		},
		"rules alone": {ddl: checked, records: slices.Concat([]kv{hot(7)}, times(50, hot("null"))), good: []int{0}, want: "[[hot 7]]"},
		"a deletion before": {
			ddl:     checked + "; INSERT INTO x VALUES ('hot', 1, ''), ('a', 1, '')",
			records: []kv{{value: `{"k":"a","n":2}`}, {key: "hot"}, hot(-1), hot(-2)}, good: []int{0, 1}, want: "[[a 2]]",
		},
		"deletions": {
			ddl:     checked + "; INSERT INTO x VALUES ('hot', 1, ''); CREATE TABLE c (k varchar(8) REFERENCES x (k)); INSERT INTO c VALUES ('hot')",
			records: slices.Concat([]kv{{value: `{"k":"a","n":2}`}, hot(3)}, times(100, kv{key: "hot"})), good: []int{0, 1}, want: "[[a 2] [hot 3]]",
		},
		"keys of their own": {
			ddl: checked, records: values(`{"k":"a","n":1}`, `{"k":"b","n":1}`, `{"k":"a","n":-1}`, `{"k":"b","n":2}`, `{"k":"a","n":-2}`, `{"k":"c","n":-2}`),
			good: []int{0, 1, 3}, want: "[[a 1] [b 2]]",
		},
		"a child of an earlier change": {
			ddl:     "CREATE TABLE x (k varchar(8) PRIMARY KEY, n integer NOT NULL CHECK (n >= 0), p varchar(8) REFERENCES x (k) DEFERRABLE INITIALLY DEFERRED)",
			records: values(`{"k":"c","n":1,"p":"hot"}`, `{"k":"hot","n":1}`, `{"k":"hot","n":-1}`, `{"k":"d","n":1,"p":"none"}`),
			good:    []int{0, 1}, want: "[[c 1] [hot 1]]",
		},
		"rolls back": {
			only: "sqlite", ddl: "CREATE TABLE x (k varchar(8) PRIMARY KEY, n integer NOT NULL UNIQUE ON CONFLICT ROLLBACK, p text); INSERT INTO x VALUES ('z', 9, '')",
			records: slices.Concat(values(`{"k":"a","n":1}`), []kv{hot(7)}, times(40, hot(9))), good: []int{0, 1}, want: "[[a 1] [hot 7] [z 9]]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, c.ddl)
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "k: string, n: int32, p: string"), Key: []string{"k"}})
				publishWithout(t, target, c.records, c.good)
				if got := fmt.Sprint(w.run(t, "SELECT k, n FROM x ORDER BY k")); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// publishWithout asserts that all but the good records are refused at once, and publishes those.
func publishWithout(t *testing.T, target *sql.Target, records []kv, good []int) {
	t.Helper()
	_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", records)))
	var r *sink.Refused
	if !errors.As(err, &r) || r.More {
		t.Fatalf("%v, want refused rows", err)
	}
	refused := map[int]bool{}
	for _, row := range r.Rows {
		refused[int(row.Row)] = true
	}
	var left []int
	var rest []kv
	for i := range records {
		if !refused[i] {
			left, rest = append(left, i), append(rest, records[i])
		}
	}
	if diff := cmp.Diff(good, left); diff != "" {
		t.Fatalf("what is not refused (-want +got):\n%s", diff)
	}
	publish(t, target, 0, rest)
}
