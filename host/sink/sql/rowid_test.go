package sql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestRowNumbers: of SQLite's primary keys of one INTEGER, those alone that are the row's number get a value by themselves, and are
// left out where the columns are the table's own.
func TestRowNumbers(t *testing.T) {
	for name, c := range map[string]struct{ ddl, columns string }{
		"number":                {"CREATE TABLE x (id INTEGER PRIMARY KEY, s TEXT)", "s string"},
		"number, autoincrement": {"CREATE TABLE x (id INTEGER PRIMARY KEY AUTOINCREMENT, s TEXT)", "s string"},
		"number, not null":      {"CREATE TABLE x (id INTEGER PRIMARY KEY NOT NULL, s TEXT)", "s string"},
		"number, strict":        {"CREATE TABLE x (id INTEGER PRIMARY KEY, s TEXT) STRICT", "s string"},
		"number of a table":     {"CREATE TABLE x (id INTEGER, s TEXT, PRIMARY KEY (id DESC))", "s string"},
		"falling":               {"CREATE TABLE x (id INTEGER PRIMARY KEY DESC, s TEXT)", "id int64, s string"},
		"without rowid":         {"CREATE TABLE x (id INTEGER PRIMARY KEY, s TEXT) WITHOUT ROWID", "id int64 not null, s string"},
		"of another type":       {"CREATE TABLE x (id INT PRIMARY KEY, s TEXT)", "id int64, s string"},
		"of two":                {"CREATE TABLE x (id INTEGER, s TEXT, PRIMARY KEY (id, s))", "id int64, s string"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "sqlite")
			w.run(t, c.ddl)
			columns, err := sql.Columns(t.Context(), w.db, testLimits, "db", "x", nil)
			must(t, err)
			var got []string
			for _, c := range columns {
				got = append(got, c.Name+" "+c.Type.String())
			}
			if diff := cmp.Diff(c.columns, strings.Join(got, ", ")); diff != "" {
				t.Fatal(diff)
			}
			s, err := rows.NewSchema(columns)
			must(t, err)
			publish(t, w.open(t, sql.Sink{Table: "x", Schema: s}), 0, values(`{"id":7,"s":"a"}`))
			want := "1a" // the row's number
			if s.Index("id") >= 0 {
				want = "7a"
			}
			if name != "of two" {
				key := w.open(t, sql.Sink{Table: "x", Schema: schema(t, "id: int64, s: string"), Key: []string{"id"}}, func(cfg *sql.Config) { cfg.Connection = "keyed" })
				publish(t, key, 0, values(`{"id":9,"s":"b"}`, `{"id":9,"s":"c"}`))
				want += " 9c"
			}
			if diff := cmp.Diff(want, strings.Join(w.texts(t, "SELECT id || s FROM x ORDER BY id"), " ")); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
