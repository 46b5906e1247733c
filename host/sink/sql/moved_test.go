package sql_test

import (
	"os"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestFileMoved: a job that has an SQLite file open neither writes to what is moved away, removed or replaced nor takes it for a
// file that it may not write to.
func TestFileMoved(t *testing.T) {
	for mode, pragma := range map[string]string{"journal": "DELETE", "wal": "WAL"} {
		for name, move := range map[string]func(w *world) error{
			"moved":   func(w *world) error { return os.Rename(w.path, w.path+".away") },
			"removed": func(w *world) error { return os.Remove(w.path) },
			"replaced": func(w *world) error {
				old, err := os.ReadFile(w.path)
				if err != nil {
					return err
				}
				if err := os.Rename(w.path, w.path+".away"); err != nil {
					return err
				}
				return os.WriteFile(w.path, old, 0o600)
			},
		} {
			t.Run(mode+" "+name, func(t *testing.T) {
				w := newWorld(t, "sqlite")
				w.run(t, "PRAGMA journal_mode = "+pragma)
				s := sql.Sink{Name: "rows", Table: "x", Schema: schema(t, "a: int32"), Create: true}
				target := w.open(t, s)
				publish(t, target, 0, values(`{"a":1}`))
				must(t, move(w))
				_, err := target.Stage(t.Context(), output(1, "rows", laneOf(t, target, "rows", values(`{"a":2}`))))
				f := wantFault(t, err, sql.CodeMoved, "moved, removed or replaced", "put it back", "start again")
				if fault.IsPassing(err) || strings.Contains(f.Hint(), "let the process write") {
					t.Errorf("%v (%s)", err, f.Hint())
				}
				must(t, target.Close())
				if name == "removed" {
					return
				}
				must(t, os.Rename(w.path+".away", w.path))
				target = w.target(t, s)
				if p, err := target.Open(t.Context(), owner()); err != nil || p.Batch != 0 {
					t.Fatalf("%+v is published, %v", p, err)
				}
				publish(t, target, 1, values(`{"a":2}`))
				if got := w.texts(t, "SELECT a FROM x ORDER BY a"); strings.Join(got, " ") != "1 2" {
					t.Errorf("rows %v", got)
				}
			})
		}
	}
}
