package delta_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// TestSweep removes what no entry names, of this query, of sealed batches, older than the grace time and young enough to be
// told from what was in the table once.
func TestSweep(t *testing.T) {
	disk, c := faulty.New(), &clock{start}
	disk.SetClock(c.now)
	cfg := target.Config{
		Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64", "p", "string"), Files: disk.Process(), Clock: c.now, Grace: time.Hour,
		Key: []string{"id"}, PartitionBy: []string{"p"},
	}
	tt := opened(t, cfg)
	mustBatch(t, tt, 0, `{"id":1,"p":"x"}`, `{"id":2,"p":"x"}`)
	lost := opened(t, cfg) // a process that stages and dies
	if _, err := stageRecords(lost, 1, "00000001", valuesOf([]string{`{"id":1,"p":"x"}`, `{"id":3,"p":"y"}`})); err != nil {
		t.Fatal(err)
	}
	foreign := strings.Replace(dataFiles(t, disk.Process(), "/t", "")[0], query[:8], "99999999", 1)
	put(t, disk, "/t/"+foreign, "x")
	tt = opened(t, cfg)
	mustBatch(t, tt, 1, `{"id":1,"p":"x"}`)
	mustBatch(t, tt, 2, `{"id":5,"p":"z"}`)
	have := func() int { return len(dataFiles(t, disk.Process(), "/t", "")) }
	const live, replaced, orphans, others = 2, 1, 2, 1
	sweep := func(after time.Duration, sealed checkpoint.BatchID, want int) {
		t.Helper()
		c.t = c.t.Add(after)
		if err := tt.Sealed(context.Background(), sealed); err != nil {
			t.Fatal(err)
		}
		if got := have(); got != want {
			t.Errorf("%v later, batch %d sealed: %d data files, want %d: %v", c.t.Sub(start), sealed, got, want, dataFiles(t, disk.Process(), "/t", ""))
		}
	}
	sweep(0, 2, live+replaced+orphans+others)
	sweep(61*time.Minute, 1, live+replaced+orphans+others) // of a batch that is not below the sealed one
	sweep(61*time.Minute, 2, live+replaced+others)
	sweep(100*24*time.Hour, 2, live+replaced+others)
	if got := rowsOf(t, disk.Process(), "/t"); len(got) != 3 {
		t.Errorf("rows are %v", got)
	}
}

// TestAbortIsItsOwn: abort drops what this process has staged, and nothing that an earlier one may still publish.
func TestAbortIsItsOwn(t *testing.T) {
	disk := faulty.New()
	cfg := target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64"), Files: disk.Process()}
	old := opened(t, cfg)
	s, err := stageRecords(old, 0, "00000001", valuesOf([]string{`{"id":1}`}))
	if err != nil {
		t.Fatal(err)
	}
	tt := opened(t, cfg)
	if err := tt.Abort(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if err := publishStaged(old, 0, s); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, disk.Process(), "/t"); len(got) != 1 {
		t.Errorf("rows are %v", got)
	}
	if err := publishStaged(tt, 0, s); err != nil {
		t.Errorf("what the earlier process has published, again: %v", err)
	}
}

// TestCheckpoints writes one whenever the versions pass a multiple of the interval; one that fails fails no batch.
func TestCheckpoints(t *testing.T) {
	disk := faulty.New()
	tt := opened(t, target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64"), Files: disk.Process(), CheckpointInterval: 4})
	broken := errors.New("input/output error")
	for n := range checkpoint.BatchID(14) {
		s, err := stageRecords(tt, n, "0a0b0c0d", valuesOf([]string{fmt.Sprintf(`{"id":%d}`, n)}))
		if err == nil {
			err = publishStaged(tt, n, s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 8 {
			disk.FailNth(1, func(o faulty.Op) bool { return strings.Contains(o.Path, "checkpoint") }, faulty.Fault{Err: broken, When: faulty.Before}, true)
		}
		if err := tt.Sealed(context.Background(), n); (n == 8) != errors.Is(err, broken) {
			t.Errorf("batch %d: sealed: %v", n, err)
		}
		disk.SetFaults(nil)
	}
	infos, err := disk.Process().List("/t/_delta_log")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range infos {
		if strings.HasSuffix(i.Name, ".checkpoint.parquet") && !strings.HasPrefix(i.Name, ".") {
			got = append(got, strings.TrimLeft(strings.TrimSuffix(i.Name, ".checkpoint.parquet"), "0"))
		}
	}
	if !slices.Equal(got, []string{"4", "12"}) {
		t.Errorf("checkpoints are at %v", got)
	}
	if got := rowsOf(t, disk.Process(), "/t"); len(got) != 14 {
		t.Errorf("%d rows", len(got))
	}
}

// TestUpsertZombie lets a process go on after it was replaced: its upsert comes to nothing.
func TestUpsertZombie(t *testing.T) {
	disk := faulty.New()
	cfg := target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64", "v", "string"), Files: disk.Process(), Key: []string{"id"}}
	old := opened(t, cfg)
	mustBatch(t, old, 0, `{"id":1,"v":"0"}`)
	s, err := stageRecords(old, 1, "00000001", valuesOf([]string{`{"id":1,"v":"1"}`}))
	if err != nil {
		t.Fatal(err)
	}
	tt := opened(t, cfg)
	mustBatch(t, tt, 1, `{"id":1,"v":"1"}`)
	if err := publishStaged(old, 1, s); err != nil {
		t.Errorf("the same batch, late: %v", err)
	}
	mustBatch(t, tt, 2, `{"id":1,"v":"2"}`)
	wantFault(t, publishStaged(old, 1, s), target.CodeConflict)
	s, err = stageRecords(old, 2, "00000002", valuesOf([]string{`{"id":1,"v":"zombie"}`}))
	if err != nil {
		t.Fatal(err)
	}
	mustBatch(t, tt, 3, `{"id":1,"v":"3"}`)
	wantFault(t, old.Publish(context.Background(), &checkpoint.Decision{Batch: 4, Digest: digestOf(4)}, s), target.CodeConflict)
	if err := errors.Join(old.Abort(context.Background(), 2), old.Sealed(context.Background(), 1)); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, disk.Process(), "/t"); !slices.Equal(got, []string{`{"id":1,"v":"3"}`}) {
		t.Errorf("rows are %v", got)
	}
	var p sink.Published
	if p, err = tt.Inspect(context.Background(), owner(4)); err != nil || p.Batch != 3 {
		t.Errorf("published is %+v, %v", p, err)
	}
}
