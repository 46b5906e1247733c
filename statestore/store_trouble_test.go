package statestore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/badger"
	"github.com/wasmill/wasmill/statestore/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted counts what is asked of a backend.
type counted struct {
	statestore.Backend
	gets, seeks, steps atomic.Int64
	fail               atomic.Pointer[error]
}

func (c *counted) opener(disk *mem.Disk) statestore.Opener {
	return func(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
		b, err := disk.Open(ctx, cfg)
		c.Backend = b
		return c, err
	}
}

func (c *counted) reset() { c.gets.Store(0); c.seeks.Store(0); c.steps.Store(0) }

func (c *counted) visited() int64 { return c.gets.Load() + c.seeks.Load() + c.steps.Load() }

func (c *counted) Get(asOf int64, key, dst []byte) ([]byte, bool, error) {
	c.gets.Add(1)
	if err := c.fail.Load(); err != nil {
		return nil, false, *err
	}
	return c.Backend.Get(asOf, key, dst)
}

func (c *counted) Apply(ctx context.Context, m statestore.Marker, changes iter.Seq2[statestore.Change, error]) error {
	if err := c.fail.Load(); err != nil {
		return *err
	}
	return c.Backend.Apply(ctx, m, changes)
}

func (c *counted) Cursor(asOf int64, r statestore.Range, descending bool) (statestore.Cursor, error) {
	cursor, err := c.Backend.Cursor(asOf, r, descending)
	return &countedCursor{cursor, c}, err
}

type countedCursor struct {
	statestore.Cursor
	c *counted
}

func (c *countedCursor) Seek(key []byte) { c.c.seeks.Add(1); c.Cursor.Seek(key) }
func (c *countedCursor) Next()           { c.c.steps.Add(1); c.Cursor.Next() }

func config(files durable.Files, opener statestore.Opener) statestore.Config {
	return statestore.Config{Files: files, Dir: "/c/state", Query: query, Backend: opener, BackendName: "mem", ApplyBatches: 1}
}

func openWith(t *testing.T, cfg statestore.Config) *statestore.Store {
	t.Helper()
	s, err := statestore.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin begins a batch of one stage and one lane.
func begin(t *testing.T, s *statestore.Store, n int64) *statestore.Txn {
	t.Helper()
	txn, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: n, Lanes: 1, Stages: oneStage})
	must(t, err)
	t.Cleanup(txn.Close)
	return txn
}

func put(t *testing.T, l *statestore.Lane, key, value string) {
	t.Helper()
	must(t, l.Put(entry(key, ""), []byte(value), 0))
}

// Seal waits while the backlog is full, and goes on when a batch was applied, or ends with its context.
func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		cfg := config(faulty.New().Process(), mem.New().Open)
		cfg.BacklogBatches, cfg.Events.Point = 2, g.pass
		s, err := statestore.Open(t.Context(), cfg)
		must(t, err)
		g.set(true)
		sealed := func(n int64, ctx context.Context) *error {
			txn := begin(t, s, n)
			put(t, txn.Lane(0, 0), "k", fmt.Sprint(n))
			_, err := txn.Sum(t.Context())
			must(t, err)
			out := new(error)
			*out = errors.New("waits")
			go func() { *out = s.Seal(ctx, txn) }()
			synctest.Wait()
			return out
		}
		for n := range int64(2) {
			if err := *sealed(n, t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		third := sealed(2, ctx)
		if *third == nil || (*third).Error() != "waits" {
			t.Fatalf("the backlog is full: %v", *third)
		}
		cancel()
		synctest.Wait()
		if !errors.Is(*third, context.Canceled) {
			t.Fatalf("cancelled: %v", *third)
		}
		third = sealed(2, t.Context())
		if st := s.Stats(); st.BacklogBatches != 2 || st.Last != 1 || st.Applied != -1 || st.BacklogBytes == 0 {
			t.Errorf("%+v", st)
		}
		g.set(false)
		synctest.Wait()
		if *third != nil || s.Applied() != 2 || s.Durable() != 2 {
			t.Errorf("%v, applied %d, durable %d", *third, s.Applied(), s.Durable())
		}
		must(t, s.Close())
	})
}

// A single batch larger than the bound of bytes is taken when nothing waits.
func TestBacklogTakesOneLargeBatch(t *testing.T) {
	cfg := config(faulty.New().Process(), mem.New().Open)
	cfg.BacklogBytes = 10
	s := openWith(t, cfg)
	for n := range int64(3) {
		batch(t, s, statestore.BatchInfo{Batch: n}, func(l *statestore.Lane) { put(t, l, "k", strings.Repeat("x", 1000)) })
	}
}

// An apply that fails ends the job: the next Seal, Begin and Load say why.
func TestFailedApplyEndsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		s, err := statestore.Open(t.Context(), config(faulty.New().Process(), c.opener(mem.New())))
		must(t, err)
		broken := error(syscall.EIO)
		c.fail.Store(&broken)
		batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) { put(t, l, "k", "v") })
		synctest.Wait()
		_, err = s.Begin(t.Context(), statestore.BatchInfo{Batch: 1, Lanes: 1, Stages: oneStage})
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "apply batch 0") {
			t.Errorf("begin: %v", err)
		}
		if err := s.Load(t.Context(), 1, "", ""); !errors.Is(err, syscall.EIO) {
			t.Errorf("load: %v", err)
		}
		if s.Applied() != -1 || s.Last() != 0 || s.Durable() != -1 {
			t.Errorf("applied %d, last %d, durable %d", s.Applied(), s.Last(), s.Durable())
		}
		must(t, s.Close())
	})
}

// Trouble of the backend is trouble of the read, not an absent entry.
func TestFailedReads(t *testing.T) {
	c := &counted{}
	s := openWith(t, config(faulty.New().Process(), c.opener(mem.New())))
	batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) { put(t, l, "k", "v") })
	for s.Applied() < 0 { // applied in the background
		_ = s.Stats()
	}
	l := begin(t, s, 1).Lane(0, 0)
	broken := error(syscall.EIO)
	c.fail.Store(&broken)
	if _, found, err := l.Get(entry("other", "")); found || !errors.Is(err, syscall.EIO) {
		t.Errorf("get: %v %v", found, err)
	}
	c.fail.Store(nil)
	if v, found, err := l.Get(entry("k", "")); string(v) != "v" || !found || err != nil {
		t.Errorf("get: %q %v %v", v, found, err)
	}
}

func TestLimitsAndMistakes(t *testing.T) {
	s := open(t, faulty.New().Process(), mem.New())
	txn, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: 5, Lanes: 4, Stages: oneStage})
	must(t, err)
	l := txn.Lane(0, 1) // groups 16 to 31
	ok := statestore.Entry{Group: 16}
	must(t, l.Put(ok, make([]byte, statestore.MaxValue), 0))
	must(t, l.Put(statestore.Entry{Group: 31, Key: make([]byte, statestore.MaxKey)}, nil, 0))
	for what, err := range map[string]error{
		"group below": l.Delete(statestore.Entry{Group: 15}),
		"group above": l.Put(statestore.Entry{Group: 32}, nil, 0),
		"table":       l.Put(statestore.Entry{Group: 16, Table: 2}, nil, 0),
		"domain":      l.SetTimer(statestore.Timer{Domain: 2, Group: 16}),
		"timer group": l.DeleteTimer(statestore.Timer{Group: 1}),
		"key":         l.Delete(statestore.Entry{Group: 16, Key: make([]byte, statestore.MaxKey), Sub: []byte("x")}),
		"value":       l.Put(ok, make([]byte, statestore.MaxValue+1), 0),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if err := s.Seal(t.Context(), txn); err == nil {
		t.Error("sealed without a sum")
	}
	if err := txn.Write(t.Context(), "aa"); err == nil {
		t.Error("written without a sum")
	}
	sum, err := txn.Sum(t.Context())
	must(t, err)
	again, err := txn.Sum(t.Context())
	if err != nil || again.Digest != sum.Digest || sum.Entries != 2 {
		t.Errorf("%+v, again %+v, %v", sum, again, err)
	}
	must(t, s.Seal(t.Context(), txn))
	if err := s.Seal(t.Context(), txn); err == nil {
		t.Error("sealed twice")
	}
	txn.Close()
	txn.Close()
	if _, _, err := l.Get(ok); !errors.Is(err, statestore.ErrClosed) {
		t.Errorf("get after close: %v", err)
	}
	for _, info := range []statestore.BatchInfo{
		{Batch: 5, Lanes: 1},
		{Batch: 6},
		{Batch: 6, Lanes: 65},
		{Batch: 6, Lanes: 1, Stages: append(oneStage, oneStage...)},
		{Batch: 6, Lanes: 1, Stages: []statestore.Stage{{Name: "a", Tables: []string{"t", "t"}}}},
		{Batch: 6, Lanes: 1, Stages: []statestore.Stage{{Name: "a", Tables: make([]string, 65)}}},
	} {
		if _, err := s.Begin(t.Context(), info); err == nil {
			t.Errorf("%+v: no error", info)
		}
	}
	late, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: 6, Lanes: 4, Stages: oneStage})
	must(t, err)
	view, err := s.At(t.Context(), 5)
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())
	late.Close()
	view.Close()
	if _, err := s.At(t.Context(), 5); !errors.Is(err, statestore.ErrClosed) {
		t.Errorf("at: %v", err)
	}
	if _, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: 7, Lanes: 1}); !errors.Is(err, statestore.ErrClosed) {
		t.Errorf("begin: %v", err)
	}
}

// Ten thousand timers at one instant fire in the order of key and sub, in portions; a batch without any asks the backend
// for nothing.
func TestManyTimersAtOneInstant(t *testing.T) {
	const timers = 10_000
	c := &counted{}
	s := openWith(t, config(faulty.New().Process(), c.opener(mem.New())))
	batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) {
		for i := range timers {
			i = i * 7919 % timers
			must(t, l.SetTimer(statestore.Timer{AtMS: 100, Group: uint8(i % 64), Key: fmt.Append(nil, "key", i), Sub: []byte("s")}))
		}
		must(t, l.SetTimer(statestore.Timer{AtMS: 200, Group: 9}))
	})
	for s.Applied() < 0 {
		_ = s.Stats()
	}
	c.reset()
	batch(t, s, statestore.BatchInfo{Batch: 1, WatermarkMS: 99, TimeMS: 1 << 40}, func(l *statestore.Lane) {
		more, err := l.Due(timers, func(*statestore.Timer) error { return errors.New("not due") })
		if more || err != nil {
			t.Error(more, err)
		}
	})
	if due, err := s.Due(1<<40, everywhere(99)); due || err != nil {
		t.Errorf("due %v %v", due, err)
	}
	if n := c.visited(); n != 0 {
		t.Errorf("%d questions to the backend for no timer", n)
	}
	if at, ok := s.NextTimer(statestore.DomainEvent); at != 100 || !ok {
		t.Errorf("next %d %v", at, ok)
	}
	if _, ok := s.NextTimer(statestore.DomainProcessing); ok {
		t.Error("a processing timer")
	}
	var got, want []string
	for i := range timers {
		want = append(want, fmt.Sprint("key", i))
	}
	slices.Sort(want)
	for n, most := range []int{1, 3000, 6999, 5} {
		batch(t, s, statestore.BatchInfo{Batch: int64(n + 2), WatermarkMS: 150}, func(l *statestore.Lane) {
			fired := 0
			more, err := l.Due(most, func(tm *statestore.Timer) error {
				fired++
				got = append(got, string(tm.Key))
				return nil
			})
			if left := timers - len(got); err != nil || fired != min(most, timers-len(got)+fired) || more != (left > 0) {
				t.Errorf("batch %d: fired %d, more %v, %v", n+2, fired, more, err)
			}
		})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d timers, %v ..", len(got), got[:5])
	}
	if at, ok := s.NextTimer(statestore.DomainEvent); at != 200 || !ok {
		t.Errorf("next %d %v", at, ok)
	}
}

// The bounds of timers are found again after a restart, with few questions, and then kept.
func TestTimersAfterRestart(t *testing.T) {
	disk, fs := mem.New(), faulty.New()
	s := open(t, fs.Process(), disk)
	batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) {
		for i := range 1000 {
			must(t, l.SetTimer(statestore.Timer{Domain: uint8(i % 2), AtMS: int64(500 + i), Group: uint8(i % 64), Key: []byte("k")}))
		}
	})
	for s.Applied() < 0 {
		_ = s.Stats()
	}
	must(t, s.Close())
	c := &counted{}
	s = openWith(t, config(fs.Process(), c.opener(disk)))
	if due, err := s.Due(499, everywhere(499)); due || err != nil {
		t.Error(due, err)
	}
	if n := c.visited(); n > 3*64*2 {
		t.Errorf("%d questions", n)
	}
	c.reset()
	for range 10 {
		if due, err := s.Due(499, everywhere(499)); due || err != nil {
			t.Error(due, err)
		}
	}
	if due, err := s.Due(499, everywhere(500)); !due || err != nil {
		t.Error(due, err)
	}
	if n := c.visited(); n > 2 {
		t.Errorf("%d questions", n)
	}
	if at, ok := s.NextTimer(statestore.DomainProcessing); at != 501 || !ok {
		t.Errorf("next %d %v", at, ok)
	}
}

// After a restart nobody knows which key groups have timers. To find that none has any, the backend is not asked for each of
// them: it would walk over everything that was deleted behind it each time.
func TestNoTimersAfterRestart(t *testing.T) {
	disk, fs := mem.New(), faulty.New()
	s := open(t, fs.Process(), disk)
	batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) {
		for i := range 1000 {
			must(t, l.SetTimer(statestore.Timer{Domain: uint8(i % 2), AtMS: int64(500 + i), Group: uint8(i % 64), Key: []byte("k")}))
		}
		must(t, l.Put(statestore.Entry{Group: 40, Key: []byte("k")}, []byte("v"), 0))
	})
	fired := 0
	batch(t, s, statestore.BatchInfo{Batch: 1, TimeMS: 5000, WatermarkMS: 5000}, func(l *statestore.Lane) {
		_, err := l.Due(2000, func(*statestore.Timer) error { fired++; return nil })
		must(t, err)
	})
	wait(t, s, 1)
	must(t, s.Close())
	c := &counted{}
	s = openWith(t, config(fs.Process(), c.opener(disk)))
	c.reset()
	if due, err := s.Due(6000, everywhere(6000)); due || err != nil || fired != 1000 {
		t.Error(due, err, fired)
	}
	looked := c.seeks.Load()
	c.reset()
	txn, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: 2, TimeMS: 6000, WatermarkMS: 6000, Lanes: 1, Stages: oneStage})
	must(t, err)
	defer txn.Close()
	more, err := txn.Lane(0, 0).Due(2000, func(*statestore.Timer) error { return errors.New("a timer fired again") })
	must(t, err)
	if n := c.seeks.Load(); more || n > 8 || looked > 8 {
		t.Errorf("the store looked %d times, the lane %d times", looked, n)
	}
}

// Without an expiry nobody asks for what has expired; with some, each batch removes ten thousand in their order.
func TestExpiryInPortions(t *testing.T) {
	c := &counted{}
	s := openWith(t, config(faulty.New().Process(), c.opener(mem.New())))
	const entries = 25_000
	key := func(i int) statestore.Entry {
		return statestore.Entry{Group: uint8(i % 64), Table: 1, Key: binary.BigEndian.AppendUint32(nil, uint32(i))}
	}
	batch(t, s, statestore.BatchInfo{Batch: 0, TimeMS: 1}, func(l *statestore.Lane) { put(t, l, "plain", "v") })
	c.reset()
	for n := range int64(5) {
		batch(t, s, statestore.BatchInfo{Batch: n + 1, TimeMS: 2}, func(*statestore.Lane) {})
	}
	if n := c.visited(); n > 0 {
		t.Errorf("%d questions without an expiry", n)
	}
	batch(t, s, statestore.BatchInfo{Batch: 6, TimeMS: 10}, func(l *statestore.Lane) {
		for i := range entries {
			must(t, l.Put(key(i), []byte("v"), int64(100+i)))
		}
	})
	batch(t, s, statestore.BatchInfo{Batch: 7, TimeMS: 11}, func(l *statestore.Lane) {
		must(t, l.Put(key(0), []byte("v"), 1_000_000)) // refreshed, without reading it
		_, _, err := l.Get(key(1))
		must(t, err)
		must(t, l.Put(key(1), []byte("v"), 0)) // for ever
		must(t, l.Delete(key(2)))
	})
	wait(t, s, 7)
	c.reset()
	batch(t, s, statestore.BatchInfo{Batch: 8, TimeMS: 102}, func(*statestore.Lane) {})
	if n := c.visited(); n > 3 {
		t.Errorf("%d questions although nothing has expired", n)
	}
	left := entries - 3
	for n := int64(9); left > 0; n++ {
		gone := min(left, 10_000)
		sum := batch(t, s, statestore.BatchInfo{Batch: n, TimeMS: 100 + entries}, func(l *statestore.Lane) {
			if _, found, err := l.Get(key(entries - 1)); found || err != nil {
				t.Errorf("the last one is seen: %v", err)
			}
			if _, found, err := l.Get(key(0)); !found || err != nil {
				t.Errorf("the refreshed one is not seen: %v", err)
			}
		})
		if sum.Entries != int64(gone) || sum.Stages[0].Removed != int64(gone) {
			t.Errorf("batch %d: %+v, want %d", n, sum, gone)
		}
		left -= gone
		wait(t, s, n)
		if got := indexed(t, c, n); got != left+1 {
			t.Errorf("batch %d: %d entries in the index, want %d", n, got, left+1)
		}
	}
	if got := indexed(t, c, 6); got != entries {
		t.Errorf("as of batch 6: %d entries in the index", got)
	}
	if got := indexed(t, c, 7); got != entries-2 {
		t.Errorf("as of batch 7: %d entries in the index", got)
	}
}

func wait(t *testing.T, s *statestore.Store, n int64) {
	t.Helper()
	for s.Applied() < n {
		if t.Context().Err() != nil {
			t.Fatal("not applied")
		}
	}
}

// indexed counts the index by expiry as of a batch.
func indexed(t *testing.T, b statestore.Backend, asOf int64) (n int) {
	t.Helper()
	c, err := b.Cursor(asOf, statestore.Range{Lower: []byte{0x11}, Upper: []byte{0x12}}, false)
	must(t, err)
	for c.Seek([]byte{0x11}); c.Valid(); c.Next() {
		n++
	}
	must(t, c.Close())
	return n
}

// A table that is no longer declared is emptied in portions, and its id never comes back.
func TestRetiredTables(t *testing.T) {
	c := &counted{}
	s := openWith(t, config(faulty.New().Process(), c.opener(mem.New())))
	two := []statestore.Stage{{Name: "a", Tables: []string{"t", "u"}}, {Name: "b", Tables: []string{"t"}}}
	run := func(n int64, stages []statestore.Stage, do func(txn *statestore.Txn)) statestore.Summary {
		txn, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: n, TimeMS: n, Lanes: 2, Stages: stages})
		must(t, err)
		defer txn.Close()
		do(txn)
		sum, err := txn.Sum(t.Context())
		must(t, err)
		must(t, txn.Write(t.Context(), "00000001"))
		must(t, s.Seal(t.Context(), txn))
		return sum
	}
	run(0, two, func(txn *statestore.Txn) {
		for i := range 12_000 {
			g := uint8(i % 64)
			must(t, txn.Lane(0, int(g/32)).Put(statestore.Entry{Group: g, Table: 1, Key: fmt.Append(nil, i)}, []byte("u"), int64(i%2)*1_000_000))
			must(t, txn.Lane(1, int(g/32)).Put(statestore.Entry{Group: g, Key: fmt.Append(nil, i)}, []byte("b"), 0))
			must(t, txn.Lane(1, int(g/32)).SetTimer(statestore.Timer{Group: g, AtMS: 5, Key: fmt.Append(nil, i)}))
		}
		must(t, txn.Lane(0, 0).Put(statestore.Entry{Key: []byte("kept")}, []byte("a"), 0))
	})
	one := []statestore.Stage{{Name: "a", Tables: []string{"t"}}}
	nothing := func(*statestore.Txn) {}
	total, n := int64(0), int64(1)
	for ; total < 36_000; n++ {
		sum := run(n, one, nothing)
		if sum.Entries != min(10_000, 36_000-total) {
			t.Fatalf("batch %d: %d entries after %d", n, sum.Entries, total)
		}
		total += sum.Entries
		if due, err := s.Due(5, everywhere(5)); due || err != nil {
			t.Errorf("a timer of a retired stage is due: %v", err)
		}
	}
	if sum := run(n, one, nothing); sum.Entries != 0 || sum.Digest != "" {
		t.Errorf("nothing is left: %+v", sum)
	}
	wait(t, s, n)
	if got := indexed(t, c, n); got != 0 {
		t.Errorf("%d entries are in the index", got)
	}
	c.reset()
	run(n+1, one, nothing)
	if c.visited() > 0 {
		t.Errorf("%d questions for tables that are empty", c.visited())
	}
	run(n+2, two, func(txn *statestore.Txn) {
		v, found, err := txn.Lane(0, 0).Get(statestore.Entry{Key: []byte("kept")})
		if string(v) != "a" || !found || err != nil {
			t.Errorf("kept: %q %v", v, err)
		}
		must(t, txn.Lane(1, 0).Put(statestore.Entry{Key: []byte("new")}, []byte("b"), 0))
		must(t, txn.Lane(0, 0).Put(statestore.Entry{Table: 1, Key: []byte("new")}, []byte("u"), 0))
	})
	view, err := s.At(t.Context(), n+2)
	must(t, err)
	defer view.Close()
	rows := 0
	for _, table := range view.Tables() {
		must(t, view.Export(t.Context(), table, func(*statestore.Row) bool { rows++; return true }))
	}
	if rows != 3 {
		t.Errorf("%d rows", rows)
	}
}

// A scan of a key with very many entries takes as many steps as it visits, and holds none of them.
func TestOneKeyWithManyEntries(t *testing.T) {
	const entries = 200_000
	c := &counted{}
	s := openWith(t, config(faulty.New().Process(), c.opener(mem.New())))
	sub := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	for n := range 4 {
		batch(t, s, statestore.BatchInfo{Batch: int64(n)}, func(l *statestore.Lane) {
			for i := range entries / 4 {
				must(t, l.Put(statestore.Entry{Group: 3, Key: []byte("hot"), Sub: sub(n*entries/4 + i)}, sub(i), 0))
			}
		})
	}
	wait(t, s, 3)
	txn := begin(t, s, 4)
	l := txn.Lane(0, 0)
	hot := statestore.Entry{Group: 3, Key: []byte("hot")}
	c.reset()
	for range 10 { // the first scan looks whether the list is short
		n := 0
		must(t, l.Scan(hot, sub(100_000), false, func(s, _ []byte) bool {
			if n++; binary.BigEndian.Uint32(s) != uint32(100_000+n) {
				t.Fatalf("entry %x", s)
			}
			return n < 10
		}))
	}
	if got := c.visited(); got > 10*10+65+2 {
		t.Errorf("%d steps for ten scans of ten", got)
	}
	held := l.Held()
	seen := 0
	must(t, l.Scan(hot, nil, true, func(s, _ []byte) bool { seen++; return true }))
	if seen != entries || l.Held() != held {
		t.Errorf("%d entries, held %d after %d", seen, l.Held(), held)
	}
	n, err := l.DeletePrefix(hot, sub(150_000))
	if n != 150_000 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	seen = 0
	must(t, l.Scan(hot, nil, false, func([]byte, []byte) bool { seen++; return true }))
	if seen != 50_000 || l.Passed() != 150_000 {
		t.Errorf("%d entries left, %d passed", seen, l.Passed())
	}
	if n, err = l.DeletePrefix(hot, nil); n != entries || err != nil {
		t.Errorf("deleted or passed %d, %v", n, err)
	}
}

// Lanes work at the same time.
func TestLanesAtOnce(t *testing.T) {
	s := open(t, faulty.New().Process(), mem.New())
	digests := map[string]bool{}
	for round := range 2 {
		for n := range int64(5) {
			txn, err := s.Begin(t.Context(), statestore.BatchInfo{Batch: n + int64(round)*5, TimeMS: n, WatermarkMS: n, Lanes: 8, Stages: []statestore.Stage{{Name: fmt.Sprint("s", round), Tables: []string{"t"}}}})
			must(t, err)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() { busy(t, txn.Lane(0, i), uint8(i*8), n) })
			}
			wg.Wait()
			sum, err := txn.Sum(t.Context())
			must(t, err)
			must(t, s.Seal(t.Context(), txn))
			txn.Close()
			if sum.Entries < 8*100 {
				t.Errorf("%d entries", sum.Entries)
			}
			digests[sum.Digest] = true
		}
	}
	if len(digests) != 10 {
		t.Errorf("%d digests", len(digests))
	}
}

func busy(t *testing.T, l *statestore.Lane, group uint8, n int64) {
	for i := range 200 {
		e := statestore.Entry{Group: group + uint8(i%8), Key: fmt.Append(nil, i)}
		if _, found, err := l.Get(e); err != nil || found != (n > 0) {
			t.Errorf("batch %d: %v %v", n, found, err)
			return
		}
		if err := errors.Join(l.Put(e, fmt.Append(nil, n), 0), l.SetTimer(statestore.Timer{Group: e.Group, AtMS: n + 1, Key: e.Key})); err != nil {
			t.Error(err)
		}
	}
	fired := 0
	if _, err := l.Due(1000, func(*statestore.Timer) error { fired++; return nil }); err != nil || n > 0 && fired != 200 {
		t.Errorf("batch %d: %d fired, %v", n, fired, err)
	}
}

// What is wrong with the changelog of a decided batch is said with its name.
func TestLoadNamesTheFile(t *testing.T) {
	fs := faulty.New()
	p := fs.Process()
	s := open(t, p, mem.New())
	sum := batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) { put(t, l, "k", "v") })
	other := batch(t, s, statestore.BatchInfo{Batch: 1}, func(l *statestore.Lane) { put(t, l, "k", "w") })
	must(t, s.Close())
	const dir = "/c/state/changelog/"
	must(t, p.Link(dir+"1-00000001", dir+"0-0000000b"))
	must(t, durable.WriteFile(p, dir+"0-0000000c", []byte("WMC1")))
	must(t, durable.WriteFile(p, dir+"0-0000000d", nil))
	cfg := config(p, mem.Open)
	cfg.Query = "another"
	foreign := openWith(t, cfg)
	s = open(t, p, mem.New())
	for _, c := range []struct {
		s               *statestore.Store
		attempt, digest string
		want            error
	}{
		{s, "0000000a", sum.Digest, statestore.ErrMissing},
		{s, "0000000b", other.Digest, statestore.ErrCorrupt}, // it is that of another batch
		{s, "0000000c", sum.Digest, statestore.ErrCorrupt},
		{s, "0000000d", sum.Digest, statestore.ErrCorrupt},
		{s, "00000000", other.Digest, statestore.ErrCorrupt},
		{foreign, "00000000", sum.Digest, statestore.ErrCorrupt},
	} {
		err := c.s.Load(t.Context(), 0, c.attempt, c.digest)
		var file *statestore.FileError
		if !errors.Is(err, c.want) || !errors.As(err, &file) || file.File != dir+"0-"+c.attempt || file.Batch != 0 {
			t.Errorf("%s: %v", c.attempt, err)
		}
		if c.s.Last() != -1 {
			t.Errorf("%s: last %d", c.attempt, c.s.Last())
		}
	}
	must(t, s.Load(t.Context(), 0, "00000000", sum.Digest))
	must(t, s.Load(t.Context(), 1, "00000001", other.Digest))
	must(t, s.Load(t.Context(), 0, "00000000", sum.Digest))
}

// Retain removes what nobody needs, and not what waits to be applied or is looked at.
func TestRetain(t *testing.T) {
	g := newGate()
	fs := faulty.New()
	cfg := config(fs.Process(), mem.New().Open)
	cfg.Events.Point = g.pass
	cfg.SnapshotBatches = -1
	s := openWith(t, cfg)
	t.Cleanup(func() { g.set(false) })
	names := func() (out []string) {
		list, err := fs.Process().List("/c/state/changelog")
		must(t, err)
		for _, i := range list {
			out = append(out, i.Name)
		}
		return out
	}
	for n := range int64(6) {
		if n == 4 {
			wait(t, s, 3)
			g.set(true)
		}
		batch(t, s, statestore.BatchInfo{Batch: n}, func(l *statestore.Lane) { put(t, l, "k", fmt.Sprint(n)) })
	}
	must(t, durable.WriteFile(fs.Process(), "/c/state/changelog/.0-0000000f.corrupt", nil))
	must(t, durable.WriteFile(fs.Process(), "/c/state/changelog/notes", nil))
	view, err := s.At(t.Context(), 1)
	must(t, err)
	must(t, s.Retain(t.Context(), 6))
	if got := fmt.Sprint(names()); got != "[2-00000002 3-00000003 4-00000004 5-00000005 notes]" {
		t.Errorf("left: %s", got)
	}
	if st := s.Stats(); st.Oldest != 1 {
		t.Errorf("oldest %d while batch 1 is looked at", st.Oldest)
	}
	tab, ok := view.Table("hourly", "counts")
	v, _, found, err := view.Get(tab, 3, []byte("k"), nil)
	if !ok || string(v) != "1" || !found || err != nil {
		t.Errorf("view: %q %v", v, err)
	}
	view.Close()
	must(t, s.Retain(t.Context(), 6))
	if _, err := s.At(t.Context(), 2); !errors.Is(err, statestore.ErrCompacted) {
		t.Errorf("at 2: %v", err)
	}
	if _, err := s.At(t.Context(), 6); !errors.Is(err, statestore.ErrFuture) {
		t.Errorf("at 6: %v", err)
	}
	for n := int64(3); n < 6; n++ {
		view, err := s.At(t.Context(), n)
		must(t, err)
		if v, _, _, err := view.Get(tab, 3, []byte("k"), nil); string(v) != fmt.Sprint(n) || err != nil {
			t.Errorf("at %d: %q %v", n, v, err)
		}
		view.Close()
	}
	g.set(false)
	wait(t, s, 5)
	must(t, s.Retain(t.Context(), 6))
	if got := fmt.Sprint(names()); got != "[notes]" {
		t.Errorf("left: %s", got)
	}
}

// Batches that change nothing leave no marker in the backend: what is discarded goes no further than the last one.
func TestRetainAfterBatchesWithoutChanges(t *testing.T) {
	for name, opener := range map[string]statestore.Opener{"mem": mem.Open, "badger": badger.Open} {
		t.Run(name, func(t *testing.T) {
			cfg := config(durable.OS(), opener)
			cfg.Dir = t.TempDir()
			s := openWith(t, cfg)
			batch(t, s, statestore.BatchInfo{Batch: 0}, func(l *statestore.Lane) { put(t, l, "k", "0") })
			for n := range int64(5) {
				if sum := batch(t, s, statestore.BatchInfo{Batch: n + 1}, func(*statestore.Lane) {}); sum.Digest != "" {
					t.Errorf("batch %d: %+v", n+1, sum)
				}
			}
			wait(t, s, 5)
			must(t, s.Retain(t.Context(), 5))
			view, err := s.At(t.Context(), 4)
			must(t, err)
			defer view.Close()
			tab, _ := view.Table("hourly", "counts")
			if v, _, _, err := view.Get(tab, 3, []byte("k"), nil); string(v) != "0" || err != nil {
				t.Errorf("%q %v", v, err)
			}
			if s.Durable() < 5 && name == "mem" {
				t.Errorf("durable %d", s.Durable())
			}
		})
	}
}
