package sql_test

import (
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/sink/sql"
)

// TestTwoConnectionsToOneTable: they are refused before a batch waits for itself, by whatever names they call server and table,
// unless they only add rows.
func TestTwoConnectionsToOneTable(t *testing.T) {
	keyed := []string{"k"}
	for name, c := range map[string]struct {
		other     sql.Sink
		key       []string
		server    [2]string // written so in the other url
		made      bool
		refused   bool
		otherPath bool // the other connection looks elsewhere first
	}{
		"the same name":        {other: sql.Sink{Table: "x", Key: keyed}, key: keyed, refused: true},
		"with the schema":      {other: sql.Sink{Table: "SCHEMA.x", Key: keyed}, key: keyed, refused: true},
		"another host name":    {other: sql.Sink{Table: "x", Key: keyed}, key: keyed, server: [2]string{"127.0.0.1", "localhost"}, refused: true},
		"to be made":           {other: sql.Sink{Table: "SCHEMA.new", Key: keyed, Create: true}, key: keyed, made: true, refused: true},
		"one adds":             {other: sql.Sink{Table: "x"}, key: keyed, refused: true},
		"both add":             {other: sql.Sink{Table: "x"}},
		"another table":        {other: sql.Sink{Table: "y", Key: keyed}, key: keyed},
		"a statement":          {other: sql.Sink{Table: "x", Key: keyed, Statement: "insert into x values (:k)"}, key: keyed, refused: true},
		"one name, two tables": {other: sql.Sink{Table: "x", Key: keyed}, key: keyed, otherPath: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, elsewhere := newWorld(t, "postgres"), newWorld(t, "postgres")
			for _, at := range []*world{w, elsewhere} {
				at.run(t, "CREATE TABLE x (k integer PRIMARY KEY)", "CREATE TABLE y (k integer PRIMARY KEY)")
			}
			mine := sql.Sink{Table: "x", Key: c.key, Schema: schema(t, "k: int32")}
			if c.made {
				mine.Table, mine.Create = "new", true
			}
			other := c.other
			other.Name, other.Schema, other.Table = "others", mine.Schema, strings.ReplaceAll(other.Table, "SCHEMA", w.schema)
			second := &world{kind: w.kind, url: strings.Replace(w.url, c.server[0], c.server[1], 1)}
			if c.otherPath {
				second.url = elsewhere.url
			}
			second.db = newPostgresDatabase(t, second.url)
			a, b := w.target(t, mine), second.target(t, other, func(cfg *sql.Config) { cfg.Connection = "db2" })
			if err := b.Clash(a); err != nil {
				t.Fatalf("before they are looked at: %v", err)
			}
			for _, target := range []*sql.Target{a, b} {
				_, err := target.Inspect(t.Context(), owner())
				must(t, err)
			}
			err := b.Clash(a)
			if !c.refused {
				must(t, err)
				return
			}
			wantFault(t, err, sql.CodeConfig, "connection db2, table", "the connection db leads to the same table", "share one connection")
		})
	}
}
