package sql_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sinktest"
	"github.com/wasmill/wasmill/host/sink/sql"
)

func suitePlace(t *testing.T, w *world, guarantee sink.Guarantee, s sql.Sink) sinktest.Place {
	s.Name, s.Table, s.Create = "rows", "numbers", true
	s.Schema = schema(t, "i: int64 not null, t: string")
	openAs := func(connection, table string) func(t *testing.T) sink.Target {
		s := s
		s.Table = table
		return func(t *testing.T) sink.Target {
			return w.target(t, s, func(cfg *sql.Config) { cfg.Guarantee, cfg.Connection = guarantee, cmp.Or(connection, cfg.Connection) })
		}
	}
	open := openAs("", s.Table)
	alias := map[string]string{"sqlite": "main.Numbers", "postgres": w.schema + ".numbers"}[w.kind]
	p := sinktest.Place{
		Sink: "rows", Open: open, Alias: openAs("renamed", alias), Elsewhere: openAs("", "elsewhere"), Shared: true,
		Value:  func(i int) string { return fmt.Sprintf(`{"i":%d,"t":"text %d"}`, i, i) },
		Misfit: `{"i":null}`,
		Visible: func(t *testing.T) []string {
			if found := w.run(t, "CREATE TABLE IF NOT EXISTS numbers (i bigint NOT NULL PRIMARY KEY, t text)", "SELECT i, t FROM numbers"); found != nil {
				out := []string{}
				for _, r := range found {
					out = append(out, fmt.Sprintf(`{"i":%s,"t":%q}`, r[0], r[1]))
				}
				return out
			}
			return nil
		},
	}
	if w.kind == "postgres" {
		p.Usurp = open // a transaction of SQLite holds the lock of writers for as long as its process likes
	}
	return p
}

func runSuite(t *testing.T, guarantee sink.Guarantee, s sql.Sink) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			newWorld(t, kind)
			sinktest.Run(t, func(t *testing.T) sinktest.Place { return suitePlace(t, newWorld(t, kind), guarantee, s) })
		})
	}
}

func TestSuite(t *testing.T) { runSuite(t, sink.ExactlyOnce, sql.Sink{}) }

func TestSuiteUpsert(t *testing.T) { runSuite(t, sink.ExactlyOnce, sql.Sink{Key: []string{"i"}}) }

func TestSuiteStatement(t *testing.T) {
	runSuite(t, sink.ExactlyOnce, sql.Sink{Statement: "insert into numbers (i, t) values (:i, :t)"})
}

func TestSuiteAtLeastOnce(t *testing.T) { runSuite(t, sink.AtLeastOnce, sql.Sink{}) }
