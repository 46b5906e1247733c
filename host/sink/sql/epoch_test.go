package sql_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/sink/sql/postgres"
	"github.com/wasmill/wasmill/host/sink/sql/sqlite"
)

func numbers(t testing.TB) sql.Sink {
	return sql.Sink{Name: "rows", Table: "x", Schema: schema(t, "a: int32"), Create: true}
}

// TestEpochRow: what somebody else does to the row is noticed, before anything is published over it.
func TestEpochRow(t *testing.T) {
	for name, c := range map[string]struct{ change, code, open string }{
		"newer":       {"UPDATE wasmill_epoch SET version = 2", "", sql.CodeEpochNewer},
		"damaged":     {"UPDATE wasmill_epoch SET digest = ''", "", sql.CodeEpoch},
		"gone":        {"DELETE FROM wasmill_epoch", sql.CodeEpoch, ""},
		"no table":    {"DROP TABLE wasmill_epoch", sql.CodeEpoch, ""},
		"restored":    {"UPDATE wasmill_epoch SET batch = 0, digest = '00000000000000000000000000000001'", sql.CodeConflict, ""},
		"ahead":       {"UPDATE wasmill_epoch SET batch = 7", sql.CodeConflict, ""},
		"last owner":  {"UPDATE wasmill_epoch SET owner = 9223372036854775807", sql.CodeFenced, sql.CodeEpoch},
		"other owner": {"UPDATE wasmill_epoch SET owner = 7", sql.CodeFenced, ""},
		"other table": {"DROP TABLE wasmill_epoch; CREATE TABLE wasmill_epoch (a integer)", sql.CodeEpoch, sql.CodeEpoch},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) {
				target := w.open(t, numbers(t))
				publish(t, target, 0, values(`{"a":1}`))
				publish(t, target, 1, values(`{"a":2}`))
				w.script(t, c.change)
				_, err := target.Stage(t.Context(), output(2, "rows", laneOf(t, target, "rows", values(`{"a":3}`))))
				if c.code != "" {
					if f := wantFault(t, err, c.code); f.Passes || strings.Contains(f.Hint(), "createTable") {
						t.Errorf("%v passes: %t (%s)", f, f.Passes, f.Hint())
					}
				}
				must(t, target.Close())
				_, err = w.target(t, numbers(t)).Open(t.Context(), owner())
				if c.open == "" {
					must(t, err)
				} else {
					wantFault(t, err, c.open)
				}
				if n := len(w.texts(t, "SELECT a FROM x")); n != 2 {
					t.Errorf("%d rows, want 2", n)
				}
			})
		})
	}
}

// TestFenced: who was replaced cannot publish any more, and is told so for good.
func TestFenced(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		slow, quick := w.open(t, numbers(t)), w.open(t, numbers(t))
		_, err := slow.Stage(t.Context(), output(0, "rows", laneOf(t, slow, "rows", values(`{"a":1}`))))
		if f := wantFault(t, err, sql.CodeFenced); f.Passes {
			t.Error("it passes")
		}
		_, err = slow.Stage(t.Context(), output(0, "rows", laneOf(t, slow, "rows", values(`{"a":1}`))))
		wantFault(t, err, sql.CodeFenced)
		wantFault(t, slow.Publish(t.Context(), decision(0), nil), sql.CodeFenced)
		publish(t, quick, 0, values(`{"a":2}`))
		if got := w.texts(t, "SELECT a FROM x"); len(got) != 1 || got[0] != "2" {
			t.Fatalf("%v", got)
		}
	})
}

// TestRowsThatOthersLock: a lock of somebody else is waited for as long as is said, and no longer.
func TestRowsThatOthersLock(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		short := func(cfg *sql.Config) { cfg.Limits.Lock = 50 * time.Millisecond }
		target := w.open(t, numbers(t), short)
		ctx := context.Background()
		other, err := w.db.Connect(ctx, sql.Use{Session: "other", Limits: testLimits})
		must(t, err)
		defer other.Close(ctx)
		must(t, other.Begin(ctx))
		if w.kind == "postgres" {
			_, err = other.Query(ctx, "LOCK TABLE x")
			must(t, err)
		}
		_, err = target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", values(`{"a":1}`))))
		if f := wantFault(t, err, sql.CodeLocked); !f.Passes {
			t.Errorf("%v does not pass", f)
		}
		must(t, other.Rollback(ctx))
		publish(t, target, 0, values(`{"a":1}`))
	})
}

// TestForeignTransactionOnTheRow: only connections of an earlier owner are ended.
func TestForeignTransactionOnTheRow(t *testing.T) {
	w := newWorld(t, "postgres")
	target := w.open(t, numbers(t))
	publish(t, target, 0, values(`{"a":1}`))
	ctx := context.Background()
	other, err := w.db.Connect(ctx, sql.Use{Session: "psql", Limits: testLimits})
	must(t, err)
	defer other.Close(ctx)
	must(t, other.Begin(ctx))
	_, err = other.Query(ctx, "UPDATE wasmill_epoch SET job = 'x'")
	must(t, err)
	_, err = w.target(t, numbers(t), func(cfg *sql.Config) { cfg.Limits.Lock = time.Second }).Open(t.Context(), owner())
	wantFault(t, err, sql.CodeLocked)
	must(t, other.Rollback(ctx))
}

// TestSlowStatement: a statement that takes too long is ended.
func TestSlowStatement(t *testing.T) {
	for kind, statement := range map[string]string{
		"postgres": "insert into x select :a from (select pg_sleep(60)) as s",
		"sqlite":   "insert into x with recursive c(n) as (select 1 union all select n + 1 from c where n < 1000000000) select max(n) + :a from c",
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			s := numbers(t)
			s.Statement = statement
			target := w.open(t, s, func(cfg *sql.Config) { cfg.Limits.Statement = 100 * time.Millisecond })
			_, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", values(`{"a":1}`))))
			if f := wantFault(t, err, sql.CodeTimeout); !f.Passes {
				t.Errorf("%v does not pass", f)
			}
			if n := len(w.texts(t, "SELECT a FROM x")); n != 0 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

// TestLittlePrivilege: a role that may write to its table and to a table of epochs that was made for it is enough.
func TestLittlePrivilege(t *testing.T) {
	w := newWorld(t, "postgres")
	poor, role := w.poor(t)
	w.run(t, "CREATE TABLE x (a integer PRIMARY KEY, b text)")
	s := sql.Sink{Table: "x", Schema: schema(t, "a: int32, b: string")}
	fails := func(s sql.Sink, says ...string) (wayOut string) {
		t.Helper()
		target := poor.target(t, s)
		_, err := target.Inspect(t.Context(), owner())
		wantFault(t, err, sql.CodePrivilege, says...)
		_, err = target.Open(t.Context(), owner())
		return wantFault(t, err, sql.CodePrivilege, says...).Hint()
	}
	fails(s, "INSERT")
	w.run(t, "GRANT INSERT ON x TO "+role)
	fails(s, "wasmill_epoch", "grant the role CREATE on the schema", "with a role that may")
	w.run(t, sql.EpochTable)
	fails(s, "wasmill_epoch", "SELECT, INSERT and UPDATE")
	w.run(t, "GRANT SELECT, INSERT, UPDATE ON wasmill_epoch TO "+role)
	target := poor.open(t, s)
	publish(t, target, 0, values(`{"a":1}`))
	must(t, target.Close())
	s.Key = []string{"a"}
	fails(s, "SELECT, INSERT, UPDATE")
	w.run(t, "GRANT SELECT, UPDATE ON x TO "+role)
	target = poor.open(t, s)
	publish(t, target, 1, values(`{"a":1,"b":"x"}`))
	_, err := target.Stage(t.Context(), output(2, "rows", laneOf(t, target, "rows", []kv{{key: "1"}})))
	wantFault(t, err, sql.CodePrivilege, "DELETE")
	w.run(t, "GRANT DELETE ON x TO "+role)
	publish(t, target, 2, []kv{{key: "1"}})
	must(t, target.Close())
	s.Create = true
	for _, name := range []string{"y", w.schema + ".y"} {
		s.Table = name
		if wayOut := fails(s, "the role may not make tables", "CREATE on the schema", "beforehand"); strings.Contains(wayOut, "INSERT on the table") {
			t.Errorf("the way out speaks of a table that is not there: %s", wayOut)
		}
	}
	w.run(t, "REVOKE USAGE ON SCHEMA "+w.schema+" FROM "+role)
	fails(s, "USAGE on the schema")
}

// TestDatabasesThatRefuse: each way of being let down has a code and a way out, and none shows the password.
func TestDatabasesThatRefuse(t *testing.T) {
	w := newWorld(t, "postgres")
	w.run(t, "SET client_min_messages = error", "DROP ROLE IF EXISTS pw_user", "CREATE ROLE pw_user LOGIN PASSWORD 'right-secret'")
	t.Cleanup(func() { w.run(t, "DROP ROLE pw_user") })
	at := strings.TrimPrefix(w.url, "postgres://wasmill@")
	for name, c := range map[string]struct {
		url, code string
		passes    bool
	}{
		"wrong password": {"postgres://pw_user:wrong-secret@" + at, sql.CodeAuth, false},
		"no role":        {"postgres://nobody_at_all:wrong-secret@" + at, sql.CodeAuth, false},
		"no database":    {strings.Replace(w.url, "/postgres?", "/nope?", 1), sql.CodeDatabase, false},
		"nobody listens": {"postgres://wasmill:wrong-secret@127.0.0.1:1/postgres?sslmode=disable", sql.CodeUnreachable, true},
		"no such host":   {"postgres://wasmill:wrong-secret@nowhere.invalid/postgres?sslmode=disable", sql.CodeUnreachable, true},
		"no TLS":         {strings.Replace(strings.Replace(w.url, "//wasmill@", "//wasmill:wrong-secret@", 1), "sslmode=disable", "sslmode=require", 1), sql.CodeAuth, false},
		"no parameter":   {with(t, w.url, "pool_max_conns", "5"), sql.CodeConfig, false},
		"no value of it": {with(t, w.url, "timezone", "nowhere/at_all"), sql.CodeConfig, false},
		"read only":      {with(t, w.url, "default_transaction_read_only", "on"), sql.CodeReadOnly, true},
	} {
		t.Run(name, func(t *testing.T) {
			bad := &world{kind: "postgres", db: newPostgresDatabase(t, c.url)}
			target := bad.target(t, numbers(t), func(cfg *sql.Config) { cfg.Patience = 3 * time.Second })
			_, err := target.Open(t.Context(), owner())
			f := wantFault(t, err, c.code)
			if f.Passes != c.passes {
				t.Errorf("%v passes: %t", f, f.Passes)
			}
			if strings.Contains(err.Error()+f.Hint(), "secret") {
				t.Errorf("the password is shown: %v (%s)", err, f.Hint())
			}
		})
	}
}

func TestBadURLs(t *testing.T) {
	for _, address := range []string{
		"", "mysql://u:secret@h/d", "postgres://u:sec%ret@h/d", "postgres://u:secret@h:port/d", "postgres://u:secret@h/d?sslmode=secret", "host=h password=secret",
		"postgres://u:s@secret@h/d", "postgres://u:p@ss/secret@h:5432/d", "postgres://u:1#secret@h/d", "postgres://u:1?secret@h/d", "postgres://u:1,b#secret@h/d",
		"postgres://u:p@s?secret@h/d", "postgres://u:p@s?x=secret@h/d", "postgres://u:p@s,b/secret@h,i/d", "postgres://u:p[secret@h/d",
		"postgres://u:secret@h/d?connect_timeout=x", "postgres://u:se cret@h/d", "postgres://u:secret@a:1,b:x/d",
	} {
		_, err := postgres.New("db", address)
		f := wantFault(t, err, sql.CodeConfig)
		if strings.HasPrefix(address, "postgres://u:") && !strings.Contains(err.Error(), "%40") {
			t.Errorf("%s: %v does not say how a password is written", address, err)
		}
		if text := err.Error() + f.Hint(); strings.Contains(text, "secret") || strings.Contains(text, "sec%") || strings.Contains(text, "cret@") {
			t.Errorf("%s: the password is shown: %s", address, text)
		}
	}
	if _, err := sqlite.New("db", ""); err == nil {
		t.Error("a database without a path")
	}
}

// TestFilesThatAreNoDatabase: SQLite's ways of being let down.
func TestFilesThatAreNoDatabase(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, []byte(strings.Repeat("this is no database ", 100)), 0o600))
	for name, c := range map[string]struct {
		path   string
		create bool
		code   string
	}{
		"text":        {text, true, sql.CodeDatabase},
		"no folder":   {filepath.Join(dir, "no", "x.db"), true, sql.CodeDatabase},
		"a folder":    {dir, true, sql.CodeDatabase},
		"not to make": {filepath.Join(dir, "x.db"), false, sql.CodeDatabase},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlite.New("db", c.path)
			must(t, err)
			w := &world{kind: "sqlite", db: db}
			s := numbers(t)
			s.Create = c.create
			target := w.target(t, s, func(cfg *sql.Config) { cfg.Patience = time.Second })
			_, err = target.Inspect(t.Context(), owner())
			wantFault(t, err, c.code)
			_, err = target.Open(t.Context(), owner())
			if f := wantFault(t, err, c.code); f.Passes {
				t.Errorf("%v passes", f)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "x.db")); err == nil {
		t.Error("a database was made that nobody asked for")
	}
}

// TestInspectMakesNothing: looking at a database or a table that is not there says that nothing is published, and leaves it so. What
// opening makes is taken for made: other sinks may write to it.
func TestInspectMakesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		looks := func(code string, sinks ...sql.Sink) {
			t.Helper()
			p, err := w.target(t, numbers(t), func(cfg *sql.Config) { cfg.Sinks = append(cfg.Sinks, sinks...) }).Inspect(t.Context(), owner())
			switch {
			case p.Batch != -1:
				t.Errorf("%+v", p)
			case code != "":
				wantFault(t, err, code)
			default:
				must(t, err)
			}
		}
		same, other, own := numbers(t), numbers(t), numbers(t)
		same.Name, same.Create = "same", false
		other.Name, other.Table, other.Create = "other", "y", false
		own.Name, own.Table, own.Create, own.Statement = "own", "", false, "insert into x values (:a)"
		foreign := own
		foreign.Statement = "insert into y values (:a)"
		for i := range 2 {
			looks("")
			looks("", same, own)
			looks(sql.CodeTable, other)
			looks(sql.CodeTable, foreign)
			if _, err := os.Stat(w.path); w.kind == "sqlite" && i == 0 && err == nil {
				t.Error("the database was made")
			}
			w.run(t, "SELECT 1") // of SQLite there is an empty file now
		}
		query := "SELECT count(*) FROM sqlite_schema"
		if w.kind == "postgres" {
			query = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema"
		}
		if got := w.texts(t, query); got[0] != "0" {
			t.Errorf("%s tables were made", got[0])
		}
	})
}

// TestConfigs that contradict themselves.
func TestConfigs(t *testing.T) {
	w := &world{kind: "sqlite", path: filepath.Join(t.TempDir(), "x.db")}
	db, err := sqlite.New("db", w.path)
	must(t, err)
	s := schema(t, "a: int32, f: double")
	for says, change := range map[string]func(*sql.Config){
		"a name":             func(c *sql.Config) { c.Connection = "" },
		"no sink":            func(c *sql.Config) { c.Sinks = nil },
		"guarantee":          func(c *sql.Config) { c.Guarantee = "maybe" },
		"a limit":            func(c *sql.Config) { c.Limits.Idle = 1 },
		"two sinks":          func(c *sql.Config) { c.Sinks = append(c.Sinks, c.Sinks[0]) },
		"a schema is needed": func(c *sql.Config) { c.Sinks[0].Schema = nil },
		"a table is needed":  func(c *sql.Config) { c.Sinks[0].Table = "" },
		"no name of a table": func(c *sql.Config) { c.Sinks[0].Table = "a.b.c" },
		"rows cannot go":     func(c *sql.Config) { c.Sinks[0].Table = "wasmill_epoch" },
		"no column":          func(c *sql.Config) { c.Sinks[0].Key = []string{"b"} },
		"twice":              func(c *sql.Config) { c.Sinks[0].Key = []string{"a", "a"} },
		"no key":             func(c *sql.Config) { c.Sinks[0].Key = []string{"f"} },
		"no parameter":       func(c *sql.Config) { c.Sinks[0].Statement = "insert into x values (1)" },
		"bytes":              func(c *sql.Config) { c.Connection = strings.Repeat("x", 256) },
	} {
		cfg := sql.Config{Connection: "db", Database: db, Clock: time.Now, Sinks: []sql.Sink{{Name: "rows", Table: "x", Schema: s}}}
		change(&cfg)
		_, err := sql.New(cfg)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code() != sql.CodeConfig || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestAtLeastOnce: without the epoch row a batch whose commit was answered and then forgotten is there twice.
func TestAtLeastOnce(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		plain := func(cfg *sql.Config) { cfg.Guarantee = sink.AtLeastOnce }
		for range 2 {
			target := w.open(t, numbers(t), plain)
			if tr := target.Traits(); tr.Guarantee != sink.AtLeastOnce || !tr.Volatile || tr.Why == "" {
				t.Errorf("%+v", tr)
			}
			publish(t, target, 0, values(`{"a":1}`))
			must(t, target.Close())
		}
		if n := len(w.texts(t, "SELECT a FROM x")); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
		query := "SELECT count(*) FROM sqlite_schema WHERE name = 'wasmill_epoch'"
		if w.kind == "postgres" {
			query = "SELECT count(*) FROM pg_tables WHERE tablename = 'wasmill_epoch' AND schemaname = current_schema"
		}
		if got := w.texts(t, query); got[0] != "0" {
			t.Error("there is a table of epochs")
		}
		if w.kind == "postgres" {
			w.run(t, "ALTER TABLE x SET UNLOGGED")
			w.open(t, numbers(t), plain)
		}
	})
}
