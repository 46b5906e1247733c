package sql_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
	"github.com/wasmill/wasmill/host/sink/sql/postgres"
	"github.com/wasmill/wasmill/host/sink/sql/sqlite"
)

const query = "6f1e9f0a-0000-4000-8000-000000000001"

// world is one empty database of a kind.
type world struct {
	kind   string
	db     sql.Database
	url    string // of PostgreSQL
	schema string // of PostgreSQL: where the tables are
	path   string // of SQLite
}

// kinds are the databases that a test runs on.
var kinds = []string{"sqlite", "postgres"}

// onEach runs a test on an empty database of each kind that there is.
func onEach(t *testing.T, f func(t *testing.T, w *world)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, newWorld(t, kind)) })
	}
}

func newWorld(t testing.TB, kind string) *world {
	t.Helper()
	if kind == "sqlite" {
		path := filepath.Join(t.TempDir(), "it is 100%?.db")
		db, err := sqlite.New("db", path)
		must(t, err)
		return &world{kind: kind, db: db, path: path}
	}
	return newPostgres(t)
}

var databases atomic.Int64

// newPostgres makes a schema on the server that WASMILL_POSTGRES names, in which all tables are looked for.
func newPostgres(t testing.TB) *world {
	t.Helper()
	server := os.Getenv("WASMILL_POSTGRES")
	if server == "" {
		t.Skip("WASMILL_POSTGRES does not name a server")
	}
	name := fmt.Sprintf("t%d_%d_%d", os.Getpid(), time.Now().UnixNano(), databases.Add(1))
	admin := &world{kind: "postgres", db: newPostgresDatabase(t, server)}
	admin.run(t, "CREATE SCHEMA "+name)
	t.Cleanup(func() { admin.run(t, "SET client_min_messages = error", "DROP SCHEMA "+name+" CASCADE") })
	w := &world{kind: "postgres", url: with(t, server, "search_path", name), schema: name}
	w.db = newPostgresDatabase(t, w.url)
	return w
}

func newPostgresDatabase(t testing.TB, address string) sql.Database {
	t.Helper()
	db, err := postgres.New("db", address)
	must(t, err)
	return db
}

// with adds a parameter to the URL of a connection.
func with(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var testLimits = sql.Limits{Lock: 10 * time.Second, Statement: 20 * time.Second, Idle: time.Minute}

// run runs statements on a connection of their own and returns the rows of the last.
func (w *world) run(t fataler, statements ...string) (got [][]string) {
	t.Helper()
	ctx := context.Background()
	c, err := w.db.Connect(ctx, sql.Use{Create: true, Session: "test", Limits: testLimits})
	must(t, err)
	defer c.Close(ctx)
	for _, s := range statements {
		if got, err = c.Query(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return got
}

// texts returns the first column of what a query gives.
func (w *world) texts(t testing.TB, query string) []string {
	t.Helper()
	out := []string{}
	for _, r := range w.run(t, query) {
		out = append(out, r[0])
	}
	return out
}

// schema reads "a int64, b string not null".
func schema(t testing.TB, text string) *rows.Schema {
	t.Helper()
	typ, err := rows.ParseType("struct<" + strings.ReplaceAll(strings.ReplaceAll(text, ": ", ":"), ":", ": ") + ">")
	must(t, err)
	s, err := rows.NewSchema(typ.Fields)
	must(t, err)
	return s
}

// target makes a target with one sink, "rows".
func (w *world) target(t testing.TB, s sql.Sink, change ...func(*sql.Config)) *sql.Target {
	t.Helper()
	if s.Name == "" {
		s.Name = "rows"
	}
	cfg := sql.Config{
		Connection: "db", Database: w.db, Sinks: []sql.Sink{s}, Clock: time.Now, Limits: testLimits, Patience: 20 * time.Second,
	}
	for _, f := range change {
		f(&cfg)
	}
	target, err := sql.New(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, target.Close()) })
	return target
}

// open is target, opened.
func (w *world) open(t testing.TB, s sql.Sink, change ...func(*sql.Config)) *sql.Target {
	t.Helper()
	target := w.target(t, s, change...)
	_, err := target.Open(t.Context(), owner())
	must(t, err)
	return target
}

func owner() sink.Owner { return sink.Owner{Query: query, Job: "test"} }

func digest(id checkpoint.BatchID) string { return fmt.Sprintf("%032x", int64(id)+1) }

func decision(id checkpoint.BatchID) *checkpoint.Decision {
	return &checkpoint.Decision{Batch: id, Digest: digest(id)}
}

// kv is a record: its key, nil for none, and its value, nil for a deletion.
type kv struct{ key, value any }

func (r kv) record() *abi.Record {
	rec := &abi.Record{}
	if k, ok := r.key.(string); ok {
		rec.Key = []byte(k)
	}
	if v, ok := r.value.(string); ok {
		rec.Value = []byte(v)
	}
	return rec
}

func values(texts ...string) []kv {
	out := make([]kv, len(texts))
	for i, s := range texts {
		out[i] = kv{value: s}
	}
	return out
}

// laneOf appends records to a new lane.
func laneOf(t testing.TB, target *sql.Target, name string, records []kv) sink.Lane {
	t.Helper()
	l, err := target.NewLane(name)
	must(t, err)
	for _, r := range records {
		if err := l.Append(r.record()); err != nil {
			t.Fatalf("%v: %v", r, err)
		}
	}
	return l
}

func output(id checkpoint.BatchID, name string, lanes ...sink.Lane) sink.Output {
	return sink.Output{
		Batch: id, TimeMS: 1_700_000_000_000, Digest: digest(id), Attempt: "0000000a",
		Sinks: []sink.SinkOutput{{Name: name, Lanes: lanes}},
	}
}

// publish brings lanes of records to the target as one batch.
func publish(t testing.TB, target *sql.Target, id checkpoint.BatchID, lanes ...[]kv) {
	t.Helper()
	var all []sink.Lane
	for _, l := range lanes {
		all = append(all, laneOf(t, target, "rows", l))
	}
	s, err := target.Stage(t.Context(), output(id, "rows", all...))
	must(t, err)
	must(t, target.Publish(t.Context(), decision(id), s))
}

// wantFault asserts that an error is a fault with a code, a place and a way out.
func wantFault(t testing.TB, err error, code string, says ...string) *fault.Error {
	t.Helper()
	f := asFault(err)
	if f == nil || f.Code() != code || f.Hint() == "" || !strings.HasPrefix(f.Place, "connection db") {
		t.Fatalf("%v, want a fault %s: %+v", err, code, f)
	}
	for _, s := range says {
		if !strings.Contains(f.Error()+" "+f.Hint(), s) {
			t.Fatalf("%v (%s) does not say %q", f, f.Hint(), s)
		}
	}
	return f
}

func asFault(err error) *fault.Error {
	f, _ := errors.AsType[*fault.Error](err)
	return f
}

// fataler is a test, or a case of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// script runs statements that stand with semicolons between.
func (w *world) script(t testing.TB, text string) {
	t.Helper()
	w.run(t, strings.Split(text, "; ")...)
}
