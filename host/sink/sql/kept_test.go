package sql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestUpsertKeepsOtherColumns: a row that takes the place of another leaves the columns that the sink does not have as they are.
func TestUpsertKeepsOtherColumns(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.script(t, "CREATE TABLE x (k integer PRIMARY KEY, v text, o text DEFAULT 'new'); INSERT INTO x VALUES (1, 'a', 'mine'), (2, 'b', NULL)")
		target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "k: int32, v: string"), Key: []string{"k"}})
		publish(t, target, 0, values(`{"k":1,"v":"c"}`, `{"k":2}`, `{"k":3,"v":"d"}`))
		var got []string
		for _, r := range w.run(t, "SELECT k, v, o FROM x ORDER BY k") {
			got = append(got, strings.Join(r, " "))
		}
		if diff := cmp.Diff([]string{"1 c mine", "2  ", "3 d new"}, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestNegativeZero: which databases have one.
func TestNegativeZero(t *testing.T) {
	for kind, want := range map[string]string{"postgres": "-0 -0 [0, 0]", "sqlite": "0.0 0.0 [-0,-0]"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			target := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "a: double, b: float, c: list<double>"), Create: true})
			publish(t, target, 0, values(`{"a":-0.0,"b":-0.0,"c":[-0.0,-0]}`))
			if diff := cmp.Diff([]string{want}, w.texts(t, "SELECT a || ' ' || b || ' ' || CAST(c AS text) FROM x")); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
