package delta_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// The tests of this file are of faults that other programs were reported for: see FAULTS.md of host/delta.

// TestAnswerLost: the disk fails around the making of an entry, and nobody is told whether it is there. The same process, and
// another one, find out from the log; the batch is there once, also when the power fails right after it was found.
func TestAnswerLost(t *testing.T) {
	broken := errors.New("input/output error")
	for _, c := range []struct {
		kind string
		when faulty.Moment
		made bool // the entry, before the error
	}{
		{"link", faulty.Before, false},
		{"link", faulty.After, true},
		{"syncdir", faulty.Before, true},
		{"syncdir", faulty.After, true},
		{"remove", faulty.Before, true},
		{"remove", faulty.After, true},
	} {
		for _, again := range []string{"same process", "another process"} {
			t.Run(fmt.Sprint(c.kind, c.when, again), func(t *testing.T) {
				disk := faulty.New()
				cfg := target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "n", "int64"), Files: disk.Process()}
				tt := opened(t, cfg)
				mustBatch(t, tt, 0, `{"n":0}`)
				s, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{`{"n":1}`}))
				if err != nil {
					t.Fatal(err)
				}
				disk.FailNth(1, func(o faulty.Op) bool { return o.Kind == c.kind && strings.Contains(o.Path, "_delta_log") }, faulty.Fault{Err: broken, When: c.when}, false)
				if err := publishStaged(tt, 1, s); !errors.Is(err, broken) {
					t.Fatalf("publish: %v", err)
				}
				if got := snapshot(t, disk.Process(), "/t").Version == 1; got != c.made {
					t.Fatalf("the entry is there: %v", got)
				}
				if again == "another process" {
					tt = newTarget(t, cfg)
					p, err := tt.Open(context.Background(), owner(1))
					if err != nil || (p.Batch == 1) != c.made {
						t.Fatalf("published is %+v, %v", p, err)
					}
				}
				if again == "same process" || !c.made {
					if err := publishStaged(tt, 1, s); err != nil {
						t.Fatal(err)
					}
				}
				disk = disk.Crash(rand.New(rand.NewPCG(1, 2)), 0)
				if diff := cmp.Diff([]string{`{"n":0}`, `{"n":1}`}, rowsOf(t, disk.Process(), "/t"), sortLines); diff != "" {
					t.Error(diff)
				}
				if v := snapshot(t, disk.Process(), "/t").Version; v != 1 {
					t.Errorf("version %d", v)
				}
			})
		}
	}
}

// touch commits an entry of a program that only says so.
func touch(tb testing.TB, log *delta.Log) {
	tb.Helper()
	s, err := log.Snapshot(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	commitAs(tb, log, s)
}

// TestWinnersAreRead: a race is lost in the very moment of the commit, after all checks; whatever the winner did is seen
// before the next try.
func TestWinnersAreRead(t *testing.T) {
	const old, ours = `{"id":1,"v":"old"}`, `{"id":1,"v":"ours"}`
	for _, c := range []struct {
		name  string
		key   []string
		add   bool // a column
		other func(t *testing.T, w *winner)
		fails string // a code, or "lost"
		want  []string
	}{
		{"many entries at once", nil, false, func(t *testing.T, w *winner) {
			log := delta.OpenLog(w.files, "/t", (&clock{start}).now)
			for range 40 {
				touch(t, log)
			}
		}, "", []string{old, ours}},
		{"the same batch by another self", nil, false, func(t *testing.T, w *winner) { w.self(t, 1) }, "", []string{old, ours}},
		{"the same upsert by another self", []string{"id"}, false, func(t *testing.T, w *winner) { w.self(t, 1) }, "", []string{ours}},
		{"another self that is ahead", nil, false, func(t *testing.T, w *winner) { w.self(t, 1); w.self(t, 2) }, target.CodeConflict, []string{old, ours, ours}},
		{"files rearranged", nil, false, func(t *testing.T, w *winner) { w.compact(t) }, "", []string{old, ours}},
		{"our file rearranged", []string{"id"}, false, func(t *testing.T, w *winner) { w.compact(t) }, "lost", []string{old}},
		{"a column dropped", nil, false, func(t *testing.T, w *winner) {
			alter(t, w.files, "/t", func(m *delta.Metadata) { m.SchemaString = delta.SchemaString(rowstest.SchemaOf(t, "id", "int64")) })
		}, "lost", []string{`{"id":1}`}},
		{"a rule", nil, false, func(t *testing.T, w *winner) {
			alter(t, w.files, "/t", func(m *delta.Metadata) {
				m.SchemaString = strings.Replace(m.SchemaString, `"metadata":{}`, `"metadata":{"delta.invariants":"id > 0"}`, 1)
			})
		}, "lost", []string{old}},
		{"our column added", nil, true, func(t *testing.T, w *winner) {
			alter(t, w.files, "/t", func(m *delta.Metadata) {
				m.SchemaString = delta.SchemaString(rowstest.SchemaOf(t, "id", "int64", "v", "string", "w", "date"))
			})
		}, "", []string{`{"id":1,"v":"old","w":null}`, `{"id":1,"v":"ours","w":null}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := faulty.New()
			race := &racing{Files: disk.Process()}
			cfg := target.Config{Dir: "/t", Files: disk.Process(), Schema: rowstest.SchemaOf(t, "id", "int64", "v", "string"), Key: c.key}
			w := &winner{files: cfg.Files, cfg: cfg}
			mustBatch(t, opened(t, cfg), 0, old)
			cfg.Files = race
			if c.add {
				cfg.AddColumns, cfg.Schema = true, rowstest.SchemaOf(t, "id", "int64", "v", "string", "w", "date")
			}
			tt := opened(t, cfg)
			s, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{ours}))
			if err != nil {
				t.Fatal(err)
			}
			var after int64
			race.before = func() {
				race.before = nil
				c.other(t, w)
				after = snapshot(t, w.files, "/t").Version
			}
			err = publishStaged(tt, 1, s)
			switch {
			case c.fails == "lost":
				if !errors.Is(err, sink.ErrLost) {
					t.Fatalf("publish: %v", err)
				}
			case c.fails != "":
				wantFault(t, err, c.fails)
			case err != nil:
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rowsOf(t, w.files, "/t"), sortLines); diff != "" {
				t.Error(diff)
			}
			now := snapshot(t, w.files, "/t").Version
			if entries := now - after; entries > 1 || entries == 1 && (c.fails != "" || w.selves > 0) {
				t.Errorf("%d entries after the winner's", entries)
			}
			e, err := delta.OpenLog(w.files, "/t", (&clock{start}).now).Entry(context.Background(), now)
			if err != nil || now > after && (e.Metadata() != nil || e.Protocol() != nil) {
				t.Errorf("the entry says what the table is, which it was already: %v", err)
			}
		})
	}
}

// winner is who was faster.
type winner struct {
	files  durable.Files
	cfg    target.Config
	selves int
}

// self publishes a batch as another process of the same query.
func (w *winner) self(t *testing.T, n checkpoint.BatchID) {
	t.Helper()
	w.selves++
	mustBatch(t, opened(t, w.cfg), n, `{"id":1,"v":"ours"}`)
}

// compact writes the table's first file anew.
func (w *winner) compact(t *testing.T) {
	t.Helper()
	log := delta.OpenLog(w.files, "/t", (&clock{start}).now)
	s, err := log.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for a := range s.Files() {
		name, err := a.File()
		var content []byte
		if err == nil {
			content, err = durable.ReadFile(w.files, path.Join("/t", name), 1<<20)
		}
		if err == nil {
			err = writeFile(w.files, "/t/compacted.parquet", string(content))
		}
		if err != nil {
			t.Fatal(err)
		}
		whole := *a
		whole.Path, whole.DataChange = "compacted.parquet", false
		commitAs(t, log, s, delta.Action{Remove: a.Remove(start.UnixMilli(), false)}, delta.Action{Add: &whole})
		return
	}
}

// TestManyLosses: a race that is lost again and again is gone on with, at waits that differ from writer to writer, and ends in
// words when there is no end. The next try succeeds.
func TestManyLosses(t *testing.T) {
	var waits [2][]time.Duration
	for i := range waits {
		disk := faulty.New()
		race := &racing{Files: disk.Process()}
		tt := newTarget(t, target.Config{
			Dir: "/t", Files: race, Schema: rowstest.SchemaOf(t, "n", "int64"),
			Wait: func(_ context.Context, d time.Duration) error { waits[i] = append(waits[i], d); return nil },
		})
		o := owner(0)
		o.Query = []string{query, otherQuery}[i]
		if _, err := tt.Open(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		mustBatch(t, tt, 0, `{"n":0}`)
		losses, lost, log := 40, 0, delta.OpenLog(disk.Process(), "/t", (&clock{start}).now)
		race.before = func() {
			if lost < losses {
				lost++
				touch(t, log)
			}
		}
		mustBatch(t, tt, 1, `{"n":1}`)
		if v := snapshot(t, disk.Process(), "/t").Version; v != 41 || len(waits[i]) != 39 {
			t.Errorf("version %d after %d waits", v, len(waits[i]))
		}
		if i == 0 {
			continue
		}
		losses = 1 << 20
		err := batch(tt, 2, valuesOf([]string{`{"n":2}`}))
		wantFault(t, err, target.CodeBusy)
		if lost < 200 {
			t.Errorf("given up after %d losses", lost)
		}
		race.before = nil
		mustBatch(t, tt, 2, `{"n":2}`)
		if got := rowsOf(t, disk.Process(), "/t"); len(got) != 3 {
			t.Errorf("rows are %v", got)
		}
	}
	if slices.Equal(waits[0], waits[1][:len(waits[0])]) {
		t.Errorf("two writers wait alike: %v", waits[0])
	}
}

// TestTheLogIsNeverCleaned: nothing of the log is removed or written over, however old it gets, so that each version can be
// made from the first entry on.
func TestTheLogIsNeverCleaned(t *testing.T) {
	disk, c := faulty.New(), &clock{start}
	disk.SetClock(c.now)
	var gone []string
	files := durable.Tap(disk.Process(), func(op, name string) error {
		hidden := strings.HasPrefix(path.Base(name), ".")
		if strings.Contains(name, "_delta_log") && !hidden && (op == "remove:before" || op == "rename:before" && strings.HasSuffix(name, ".json")) {
			gone = append(gone, op+" "+name)
		}
		return nil
	})
	tt := opened(t, target.Config{
		Dir: "/t", Files: files, Clock: c.now, Schema: rowstest.SchemaOf(t, "id", "int64"), Key: []string{"id"}, CheckpointInterval: 3, Grace: time.Hour,
	})
	const batches = 20
	for n := range checkpoint.BatchID(batches) {
		c.t = c.t.Add(100 * 24 * time.Hour)
		mustBatch(t, tt, n, fmt.Sprintf(`{"id":%d}`, n%4))
	}
	if len(gone) > 0 {
		t.Errorf("%v", gone)
	}
	log := delta.OpenLog(disk.Process(), "/t", c.now)
	for v := range int64(batches) {
		if _, err := log.Entry(context.Background(), v); err != nil {
			t.Error(err)
		}
		if s, err := log.SnapshotAt(context.Background(), v); err != nil || s.NumFiles() == 0 {
			t.Errorf("version %d: %v", v, err)
		}
	}
}

// TestRowGroupsEnd: what the library keeps in memory ends with a row group, and that ends within a file.
func TestRowGroupsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("more than a million rows")
	}
	const most, n = 1 << 20, 1<<20 + 1000
	disk := faulty.New()
	tt := opened(t, target.Config{Dir: "/t", Files: disk.Process(), Schema: rowstest.SchemaOf(t, "b", "boolean")})
	lane, err := tt.NewLane("lake")
	if err != nil {
		t.Fatal(err)
	}
	row := &abi.Record{Value: []byte(`{"b":true}`)}
	for range n {
		if err := lane.Append(row); err != nil {
			t.Fatal(err)
		}
	}
	out := sink.Output{Batch: 0, Digest: digestOf(0), Attempt: "0a0b0c0d", Sinks: []sink.SinkOutput{{Name: "lake", Lanes: []sink.Lane{lane}}}}
	if _, err := tt.Stage(context.Background(), out); err != nil {
		t.Fatal(err)
	}
	names := dataFiles(t, disk.Process(), "/t", "")
	if len(names) != 1 {
		t.Fatalf("%d files", len(names))
	}
	content, err := durable.ReadFile(disk.Process(), path.Join("/t", names[0]), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if g := f.RowGroups(); len(g) != 2 || g[0].NumRows() != most || g[1].NumRows() != n-most {
		t.Errorf("%d row groups", len(g))
	}
}
