package sql_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sinktest"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// tap has the points of a database's connections noted.
func (w *world) tap() (points *[]string) {
	points = &[]string{}
	w.db = sql.Tap(w.db, func(p string) { *points = append(*points, p) })
	return points
}

// TestTapSuite: a tapped database is like any other.
func TestTapSuite(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			newWorld(t, kind)
			sinktest.Run(t, func(t *testing.T) sinktest.Place {
				w := newWorld(t, kind)
				w.tap()
				return suitePlace(t, w, sink.ExactlyOnce, sql.Sink{Key: []string{"i"}})
			})
		})
	}
}

// TestTap: every step by which something is changed is told of, in order.
func TestTap(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		points := w.tap()
		target := w.open(t, sql.Sink{Table: "out", Create: true, Schema: schema(t, "id: int64, t: string"), Key: []string{"id"}})
		opened := len(*points)
		publish(t, target, 0, []kv{{value: `{"id":1}`}, {key: "2"}, {value: `{"id":3}`}})
		both := func(steps ...string) (out []string) {
			for _, s := range steps {
				out = append(out, s+":before", s+":after")
			}
			return out
		}
		kind := func(points []string) (out []string) {
			for _, p := range points {
				out = append(out, p+" "+w.kind)
			}
			return out
		}
		if d := cmp.Diff(kind(both("create-table", "epoch-create", "epoch-insert", "epoch-claim")), (*points)[:opened]); d != "" {
			t.Error(d)
		}
		want := kind(both("begin", "epoch-advance"))
		want = append(want, "rows:before "+w.kind+" upsert", "rows:half "+w.kind+" upsert", "rows:after "+w.kind+" upsert")
		if d := cmp.Diff(append(want, kind(both("epoch-note", "commit"))...), (*points)[opened:]); d != "" {
			t.Error(d)
		}
		if got := w.texts(t, "SELECT id FROM out ORDER BY id"); !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("the table has %v", got)
		}
	})
}

// TestTapRefused: rows that are refused are found in both halves.
func TestTapRefused(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.run(t, "CREATE TABLE x (id bigint CHECK (id > 0), t text)")
		points := w.tap()
		target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64")})
		for at := range 5 {
			lines := values(`{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`, `{"id":5}`)
			lines[at] = kv{value: `{"id":-1}`}
			_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", lines)))
			r, ok := errors.AsType[*sink.Refused](err)
			if !ok || len(r.Rows) != 1 || r.Rows[0].Row != int64(at) {
				t.Errorf("row %d: %v", at, err)
			}
		}
		if slices.Contains(*points, "commit:before "+w.kind) || !slices.Contains(*points, "rows:half "+w.kind+" append") {
			t.Errorf("points: %q", *points)
		}
	})
}
