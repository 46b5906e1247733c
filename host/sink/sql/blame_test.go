package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestBlame: whatever rows need of each other, the database takes a batch without those that are refused, and does not take it
// with one of these.
func TestBlame(t *testing.T) {
	for name, c := range map[string]struct {
		only, x string
		key     []string
	}{
		"deferred": {x: "CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES x (id) DEFERRABLE INITIALLY DEFERRED, q bigint REFERENCES y (id) DEFERRABLE INITIALLY DEFERRED, n bigint CHECK (n >= 0))"},
		"at once":  {only: "postgres", x: "CREATE TABLE x (id bigint PRIMARY KEY, p bigint REFERENCES x (id), q bigint, n bigint CHECK (n >= 0))"},
		"ranks": {
			only: "postgres", key: []string{"id"},
			x: "CREATE TABLE x (id bigint PRIMARY KEY, p bigint UNIQUE DEFERRABLE, q bigint REFERENCES y (id) DEFERRABLE INITIALLY DEFERRED, n bigint CHECK (n >= 0)); " +
				"INSERT INTO x VALUES (1, 1, NULL, 0), (2, 2, NULL, 0), (3, 3, NULL, 0)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				if c.only != "" && c.only != w.kind {
					t.Skip("not of " + w.kind)
				}
				w.script(t, "CREATE TABLE y (id bigint PRIMARY KEY, n bigint CHECK (n >= 0)); "+c.x)
				target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64, p: int64, q: int64, n: int64"), Key: c.key}, func(cfg *sql.Config) {
					cfg.Sinks = append(cfg.Sinks, sql.Sink{Name: "later", Table: "y", Schema: schema(t, "id: int64, n: int64")})
				})
				blamed := 0
				rapid.Check(t, func(r *rapid.T) {
					var records [2][]kv
					number := func(name string, most int) string {
						return rapid.SampledFrom([]string{"null", fmt.Sprint(rapid.IntRange(1, most).Draw(r, name))}).Draw(r, name)
					}
					sign := func() int { return 1 - 2*(rapid.IntRange(0, 5).Draw(r, "n")/5) }
					ids := rapid.Permutation([]int{1, 2, 3, 4, 5, 6}).Draw(r, "ids")
					for _, id := range ids[:rapid.IntRange(1, 6).Draw(r, "rows")] {
						records[0] = append(records[0], kv{value: fmt.Sprintf(`{"id":%d,"p":%s,"q":%s,"n":%d}`, id, number("p", 7), number("q", 3), sign())})
					}
					for id := range rapid.IntRange(0, 3).Draw(r, "others") {
						records[1] = append(records[1], kv{value: fmt.Sprintf(`{"id":%d,"n":%d}`, id+1, sign())})
					}
					stage := func(without []string) []string {
						out := output(0, "rows", laneOf(t, target, "rows", leaveOut("rows", records[0], without)))
						out.Sinks = append(out.Sinks, sink.SinkOutput{Name: "later", Lanes: []sink.Lane{laneOf(t, target, "later", leaveOut("later", records[1], without))}})
						_, err := target.Stage(t.Context(), out)
						must(r, target.Abort(t.Context(), 0))
						if err == nil {
							return nil
						}
						var refused *sink.Refused
						if !errors.As(err, &refused) || refused.More {
							r.Fatalf("%v, want refused rows", err)
						}
						var got []string
						for _, row := range refused.Rows {
							got = append(got, fmt.Sprintf("%s %d", row.Sink, row.Row))
						}
						return got
					}
					guilty := stage(nil)
					if again := stage(guilty); again != nil {
						r.Fatalf("without %s, %s are refused", guilty, again)
					}
					for i := range guilty {
						if stage(slices.Delete(slices.Clone(guilty), i, i+1)) == nil {
							r.Fatalf("%s is refused, and need not be: %s of %v", guilty[i], strings.Join(guilty, ", "), records)
						}
					}
					blamed += len(guilty)
				})
				t.Logf("%d rows were refused", blamed)
			})
		})
	}
}
