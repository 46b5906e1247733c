package sql_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/sql"
)

// job is what survives the processes of a test: how far publishing was asked for and how far it was confirmed. It plays the
// engine: an error leads to opening the target anew, in the same process or, where that is dead, in another.
type job struct {
	w       *world
	sink    sql.Sink
	batches checkpoint.BatchID
	asked   checkpoint.BatchID
	told    checkpoint.BatchID
	pause   func() // between staging and publishing
	reopens int
}

const perBatch = 7

func newJob(t testing.TB, w *world, batches int) *job {
	return &job{
		w: w, batches: checkpoint.BatchID(batches), asked: checkpoint.NoBatch, told: checkpoint.NoBatch, pause: func() {},
		sink: sql.Sink{Name: "rows", Table: "out", Schema: schema(t, "batch: int64, n: int32, t: string"), Create: true},
	}
}

func (j *job) records(id checkpoint.BatchID) []kv {
	var out []kv
	for i := range perBatch {
		out = append(out, kv{value: fmt.Sprintf(`{"batch":%d,"n":%d,"t":"text"}`, id, i)})
	}
	return out
}

var errDead = errors.New("the process is dead")

// live is one process: it goes on where the target says, until the last batch or until it is dead.
func (j *job) live(ctx context.Context, t testing.TB, target *sql.Target, dead func() bool) error {
	for opens := 0; ; opens++ {
		err := j.goOn(ctx, t, target)
		switch {
		case err == nil:
			return nil
		case dead() || ctx.Err() != nil:
			return errDead
		case opens == 60 || !errors.Is(err, sink.ErrLost) && !fault.IsPassing(err):
			return err
		}
		j.reopens++
	}
}

// goOn opens the target and publishes batch after batch, each twice where it was lost.
func (j *job) goOn(ctx context.Context, t testing.TB, target *sql.Target) error {
	p, err := target.Open(ctx, owner())
	if err != nil {
		return err
	}
	if p.Batch < j.told || p.Batch > j.asked || p.Batch >= 0 && p.Digest != digest(p.Batch) {
		t.Errorf("published is %+v, asked for %d, confirmed %d", p, j.asked, j.told)
	}
	for id := p.Batch + 1; id < j.batches; id++ {
		err := j.bring(ctx, t, target, id)
		if errors.Is(err, sink.ErrLost) {
			err = j.bring(ctx, t, target, id)
		}
		if err != nil {
			return err
		}
		j.told = max(j.told, id)
	}
	return nil
}

func (j *job) bring(ctx context.Context, t testing.TB, target *sql.Target, id checkpoint.BatchID) error {
	l := laneOf(t, target, "rows", j.records(id))
	s, err := target.Stage(ctx, output(id, "rows", l))
	if err != nil {
		return err
	}
	j.pause()
	j.asked = max(j.asked, id)
	return target.Publish(ctx, decision(id), s)
}

// check compares the table with what the job published, and returns how many rows it has.
func (j *job) check(t testing.TB) int {
	t.Helper()
	var want []string
	for id := range j.batches {
		for i := range perBatch {
			want = append(want, fmt.Sprintf("%03d.%d", id, i))
		}
	}
	got := []string{}
	for _, r := range j.w.run(t, "SELECT batch, n FROM out") {
		var id, n int
		_, err := fmt.Sscan(r[0]+" "+r[1], &id, &n)
		must(t, err)
		got = append(got, fmt.Sprintf("%03d.%d", id, n))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the table has (-want +got):\n%s", diff)
	}
	return len(got)
}

// verdict is what becomes of one call of a connection.
type verdict int

const (
	pass   verdict = iota
	before         // the connection breaks, and the database never hears of the call
	after          // the database carries the call out, and the connection breaks before its answer
)

// breaking is a database whose connections break at one call.
type breaking struct {
	sql.Database
	at    int // the call, counted over all connections; -1: none
	what  verdict
	calls int
	met   string
}

var errCut = errors.New("the connection was cut")

func (b *breaking) Explain(err error) sql.Problem {
	if errors.Is(err, errCut) {
		return sql.Problem{Code: sql.CodeUnreachable, Passing: true, Broken: true, WayOut: "none"}
	}
	return b.Database.Explain(err)
}

func (b *breaking) Connect(ctx context.Context, use sql.Use) (c sql.Conn, err error) {
	err = b.call("Connect", func() error { c, err = b.Database.Connect(ctx, use); return err }, func() {
		if c != nil {
			c.Close(ctx)
		}
	})
	if err != nil {
		return nil, err
	}
	return &breakingConn{Conn: c, b: b}, nil
}

// call carries a call out, or not.
func (b *breaking) call(name string, f func() error, cut func()) error {
	n := b.calls
	b.calls++
	if n != b.at {
		return f()
	}
	b.met = name
	if b.what == after {
		_ = f() // nobody hears the answer
	}
	cut()
	return fmt.Errorf("%s: %w", name, errCut)
}

type breakingConn struct {
	sql.Conn
	b      *breaking
	broken bool
}

func (c *breakingConn) do(ctx context.Context, name string, f func() error) error {
	if c.broken {
		return errCut
	}
	return c.b.call(name, f, func() {
		c.broken = true
		c.Conn.Close(ctx)
	})
}

func (c *breakingConn) Close(ctx context.Context) {
	if !c.broken {
		c.Conn.Close(ctx)
	}
}

func (c *breakingConn) Query(ctx context.Context, query string, args ...string) (out [][]string, err error) {
	err = c.do(ctx, "Query", func() error { out, err = c.Conn.Query(ctx, query, args...); return err })
	return out, err
}

func (c *breakingConn) Table(ctx context.Context, name string) (out *sql.Table, err error) {
	err = c.do(ctx, "Table", func() error { out, err = c.Conn.Table(ctx, name); return err })
	return out, err
}

func (c *breakingConn) CreateTable(ctx context.Context, name string, s *rows.Schema, key []string) error {
	return c.do(ctx, "CreateTable", func() error { return c.Conn.CreateTable(ctx, name, s, key) })
}

func (c *breakingConn) Begin(ctx context.Context) error {
	return c.do(ctx, "Begin", func() error { return c.Conn.Begin(ctx) })
}

func (c *breakingConn) Hold(ctx context.Context, b sql.Binding) (same bool, err error) {
	err = c.do(ctx, "Hold", func() error { same, err = c.Conn.Hold(ctx, b); return err })
	return same, err
}

func (c *breakingConn) Write(ctx context.Context, b sql.Binding, ch *sql.Changes) error {
	return c.do(ctx, "Write", func() error { return c.Conn.Write(ctx, b, ch) })
}

func (c *breakingConn) Check(ctx context.Context) error {
	return c.do(ctx, "Check", func() error { return c.Conn.Check(ctx) })
}

func (c *breakingConn) Commit(ctx context.Context) error {
	return c.do(ctx, "Commit", func() error { return c.Conn.Commit(ctx) })
}

func (c *breakingConn) Rollback(ctx context.Context) error {
	return c.do(ctx, "Rollback", func() error { return c.Conn.Rollback(ctx) })
}

// TestEveryCallBroken breaks every call once, before and after the database has carried it out, and lets the process go on or
// die with it.
func TestEveryCallBroken(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		runs, all, met := 0, 0, map[string]int{}
		for _, what := range []verdict{before, after} {
			for _, dies := range []bool{false, true} {
				for at := 0; ; at++ {
					if w.kind == "postgres" {
						w.run(t, "SET client_min_messages = error", "DROP TABLE IF EXISTS out, wasmill_epoch")
					} else {
						w.run(t, "DROP TABLE IF EXISTS out", "DROP TABLE IF EXISTS wasmill_epoch")
					}
					j := newJob(t, w, 3)
					b := &breaking{Database: w.db, at: at, what: what}
					broken := func(cfg *sql.Config) { cfg.Database = b }
					dead := func() bool { return dies && b.met != "" }
					target := w.target(t, j.sink, broken)
					err := j.live(t.Context(), t, target, dead)
					must(t, target.Close())
					if errors.Is(err, errDead) {
						target = w.target(t, j.sink)
						err = j.live(t.Context(), t, target, func() bool { return false })
						must(t, target.Close())
					}
					if err != nil {
						t.Fatalf("call %d (%s): %v", at, b.met, err)
					}
					all += j.check(t)
					runs++
					if b.met == "" {
						break
					}
					met[b.met]++
				}
			}
		}
		t.Logf("%d runs, %d rows, none lost, none doubled; broken: %v", runs, all, met)
		if met["Commit"] < 12 || met["Begin"] < 12 || met["Write"] < 12 || met["Check"] < 12 {
			t.Errorf("not all of the protocol was broken: %v", met)
		}
	})
}

// TestStagedForTooLong: what waited for longer than a transaction may is lost, not published late.
func TestStagedForTooLong(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		j := newJob(t, w, 1)
		now := time.Now()
		target := w.open(t, j.sink, func(cfg *sql.Config) {
			cfg.Clock = func() time.Time { return now }
		})
		s, err := target.Stage(t.Context(), output(0, "rows", laneOf(t, target, "rows", j.records(0))))
		must(t, err)
		now = now.Add(testLimits.Idle)
		if err := target.Publish(t.Context(), decision(0), s); !errors.Is(err, sink.ErrLost) {
			t.Fatalf("%v, want ErrLost", err)
		}
		must(t, j.bring(t.Context(), t, target, 0))
		j.check(t)
	})
}
