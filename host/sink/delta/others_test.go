package delta_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

var sortLines = cmpopts.SortSlices(strings.Compare)

// neighbour is another query that writes to the same table.
type neighbour struct {
	t *target.Target
	n checkpoint.BatchID
}

func newNeighbour(tb testing.TB, cfg target.Config) *neighbour {
	cfg.Sink = "neighbour"
	t := newTarget(tb, cfg)
	if _, err := t.Open(context.Background(), sink.Owner{Query: otherQuery, Job: "other"}); err != nil {
		tb.Fatal(err)
	}
	return &neighbour{t: t}
}

func (o *neighbour) write(tb testing.TB, records ...record) {
	tb.Helper()
	if err := batch(o.t, o.n, records); err != nil {
		tb.Fatal(err)
	}
	o.n++
}

// TestAppendsBesideOthers publishes what was staged before others came in between.
func TestAppendsBesideOthers(t *testing.T) {
	files := faulty.New().Process()
	cfg := target.Config{Dir: "/t", Files: files, Schema: rowstest.SchemaOf(t, "who", "string", "n", "int64")}
	tt, other := opened(t, cfg), newNeighbour(t, cfg)
	var want []string
	for n := range checkpoint.BatchID(5) {
		ours, theirs := fmt.Sprintf(`{"who":"us","n":%d}`, n), fmt.Sprintf(`{"who":"them","n":%d}`, n)
		s, err := stageRecords(tt, n, "0a0b0c0d", valuesOf([]string{ours}))
		if err != nil {
			t.Fatal(err)
		}
		other.write(t, record{value: theirs})
		if err := publishStaged(tt, n, s); err != nil {
			t.Fatal(err)
		}
		want = append(want, ours, theirs)
	}
	if diff := cmp.Diff(want, rowsOf(t, files, "/t"), sortLines); diff != "" {
		t.Error(diff)
	}
}

// racing commits an entry of another writer whenever an entry is about to be linked, some times.
type racing struct {
	durable.Files
	before func()
}

func (r *racing) Link(from, to string) error {
	if strings.HasSuffix(to, ".json") && r.before != nil {
		r.before()
	}
	return r.Files.Link(from, to)
}

// TestVacuumedMeanwhile: a file that somebody removes before its entry is there (VACUUM does, when a batch waits for longer than it
// keeps files) makes no entry that names it, at whatever moment of a race: the batch runs again.
func TestVacuumedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		first int  // races that are lost before somebody removes the file
		later bool // another process publishes than the one that staged
		harm  func(name string) error
	}{
		{"removed while it waits", 0, false, os.Remove},
		{"cut short while it waits", 0, false, func(name string) error { return os.Truncate(name, 10) }},
		{"removed after a lost race", 1, false, os.Remove},
		{"removed after lost races", 4, false, os.Remove},
		{"removed while nothing runs", 0, true, os.Remove},
		{"removed after races that recovery lost", 4, true, os.Remove},
	} {
		dir := filepath.Join(t.TempDir(), "t")
		race := &racing{Files: osFiles}
		cfg := target.Config{Dir: dir, Files: race, Schema: rowstest.SchemaOf(t, "n", "int64")}
		tt := opened(t, cfg)
		mustBatch(t, tt, 0, `{"n":0}`)
		cfg.Files = osFiles
		other := newNeighbour(t, cfg)
		published := dataFiles(t, osFiles, dir, "")
		s, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{`{"n":1}`}))
		if err != nil {
			t.Fatal(err)
		}
		if c.later {
			cfg.Files = race
			tt = opened(t, cfg)
		}
		staged := slices.DeleteFunc(dataFiles(t, osFiles, dir, ""), func(name string) bool { return slices.Contains(published, name) })
		lost, harmed := 0, false
		harm := func() {
			harmed = true
			for _, name := range staged {
				if err := c.harm(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		race.before = func() {
			if lost++; lost <= c.first {
				other.write(t, record{value: `{"n":7}`})
			}
			if lost == c.first {
				harm()
			}
		}
		if c.first == 0 {
			harm()
		}
		if err := publishStaged(tt, 1, s); !errors.Is(err, sink.ErrLost) || !harmed {
			t.Errorf("%s: publish: %v, want ErrLost", c.name, err)
		}
		race.before = nil
		if got := snapshot(t, osFiles, dir); got.Version != int64(c.first) {
			t.Errorf("%s: version %d, want %d", c.name, got.Version, c.first)
		}
	}
}

// TestLostRaces lets another writer be first again and again: the batch comes after, once, and the waits grow.
func TestLostRaces(t *testing.T) {
	disk := faulty.New()
	race := &racing{Files: disk.Process()}
	var waits []time.Duration
	cfg := target.Config{
		Dir: "/t", Files: race, Schema: rowstest.SchemaOf(t, "n", "int64"),
		Wait: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
	}
	tt := opened(t, cfg)
	cfg.Files = disk.Process()
	other := newNeighbour(t, cfg)
	losses := 8
	race.before = func() {
		if losses > 0 {
			losses--
			other.write(t, record{value: fmt.Sprintf(`{"n":%d}`, 100+losses)})
		}
	}
	mustBatch(t, tt, 0, `{"n":1}`)
	if got := rowsOf(t, disk.Process(), "/t"); len(got) != 9 {
		t.Errorf("%v", got)
	}
	if len(waits) != 7 || slices.Max(waits) < 10*time.Millisecond || slices.Max(waits) > 2*time.Second {
		t.Errorf("waits are %v", waits)
	}
	race.before = func() { other.write(t, record{value: `{"n":7}`}) }
	s, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{`{"n":2}`}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg.Files, cfg.Sink = race, "lake"
	cfg.Wait = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	again := opened(t, cfg)
	err = again.Publish(ctx, &checkpoint.Decision{Batch: 1, Digest: digestOf(1)}, s)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("publish of a job that is told to stop: %v", err)
	}
}

// TestUpsertConflicts: what others do between stage and publish loses an upsert exactly when it has to do with it.
func TestUpsertConflicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		ours  []record
		other func(t *testing.T, o *neighbour, files durable.Files)
		lost  bool
	}{
		{"nothing", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(*testing.T, *neighbour, durable.Files) {}, false},
		{"rows that cannot be ours", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(t *testing.T, o *neighbour, _ durable.Files) {
			o.write(t, record{value: `{"p":"a","id":50,"v":"theirs"}`}, record{value: `{"p":"b","id":1,"v":"theirs"}`})
		}, false},
		{"a row of our key", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(t *testing.T, o *neighbour, _ durable.Files) {
			o.write(t, record{value: `{"p":"a","id":1,"v":"theirs"}`})
		}, true},
		{"a row of a new key", []record{{value: `{"p":"a","id":9,"v":"new"}`}}, func(t *testing.T, o *neighbour, _ durable.Files) {
			o.write(t, record{value: `{"p":"a","id":9,"v":"theirs"}`})
		}, true},
		{"our file written anew", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(t *testing.T, o *neighbour, _ durable.Files) {
			o.write(t, record{value: `{"p":"a","id":2,"v":"theirs"}`})
		}, true},
		{"a deletion in our file", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(t *testing.T, o *neighbour, _ durable.Files) {
			o.write(t, record{key: `["a",3]`})
		}, true},
		{"a property", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(t *testing.T, _ *neighbour, files durable.Files) {
			alter(t, files, "/t", func(m *delta.Metadata) {
				m.Configuration = map[string]string{"delta.logRetentionDuration": "interval 9 days"}
			})
		}, false},
		{"a column", []record{{value: `{"p":"a","id":1,"v":"new"}`}}, func(t *testing.T, _ *neighbour, files durable.Files) {
			alter(t, files, "/t", func(m *delta.Metadata) {
				m.SchemaString = delta.SchemaString(rowstest.SchemaOf(t, "p", "string", "id", "int64", "v", "string", "w", "string"))
			})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := faulty.New().Process()
			cfg := target.Config{Dir: "/t", Files: files, Schema: rowstest.SchemaOf(t, "p", "string", "id", "int64", "v", "string"), Key: []string{"p", "id"}, PartitionBy: []string{"p"}}
			tt := opened(t, cfg)
			mustBatch(t, tt, 0, `{"p":"a","id":1,"v":"old"}`, `{"p":"a","id":2,"v":"old"}`, `{"p":"a","id":3,"v":"old"}`, `{"p":"b","id":40,"v":"old"}`)
			s, err := stageRecords(tt, 1, "0a0b0c0d", c.ours)
			if err != nil {
				t.Fatal(err)
			}
			c.other(t, newNeighbour(t, cfg), files)
			err = publishStaged(tt, 1, s)
			if c.lost != errors.Is(err, sink.ErrLost) || !c.lost && err != nil {
				t.Fatalf("publish: %v; lost should be %v", err, c.lost)
			}
			if !c.lost {
				return
			}
			if err := batch(tt, 1, c.ours); err != nil { // rung (c)
				t.Fatal(err)
			}
			last := c.ours[len(c.ours)-1].value
			if n := strings.Count(strings.Join(rowsOf(t, files, "/t"), "\n"), strings.TrimSuffix(last, "}")); n != 1 {
				t.Errorf("%s is there %d times in %v", last, n, rowsOf(t, files, "/t"))
			}
		})
	}
}

// TestUpsertAfterARestart: a later process does not know what was read, and takes any new rows for a reason to run again.
func TestUpsertAfterARestart(t *testing.T) {
	files := faulty.New().Process()
	cfg := target.Config{Dir: "/t", Files: files, Schema: rowstest.SchemaOf(t, "id", "int64", "v", "string"), Key: []string{"id"}}
	tt := opened(t, cfg)
	mustBatch(t, tt, 0, `{"id":1,"v":"old"}`)
	for n, lost := range []bool{false, true} {
		n := checkpoint.BatchID(n + 1)
		s, err := stageRecords(tt, n, fmt.Sprintf("%08x", n), valuesOf([]string{fmt.Sprintf(`{"id":1,"v":"new %d"}`, n)}))
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			newNeighbour(t, cfg).write(t, record{value: `{"id":700,"v":"theirs"}`})
		}
		tt = opened(t, cfg)
		if err := publishStaged(tt, n, s); lost != errors.Is(err, sink.ErrLost) || !lost && err != nil {
			t.Fatalf("publish: %v; lost should be %v", err, lost)
		}
	}
}
