package delta_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
	"github.com/wasmill/wasmill/host/sink/sinktest"
)

// disk is the target as the suites of sinktest see it; batches hold gaps, empty ones and a late start.
func disk(tb testing.TB, upsert bool) sinktest.Disk {
	cfg := target.Config{
		Sink: "lake", Dir: "/data/out", MaxPartRows: 2, Grace: time.Minute, CheckpointInterval: 2,
		Schema: rowstest.SchemaOf(tb, "batch", "int64", "row", "int64", "place", "string"), PartitionBy: []string{"place"},
	}
	records, want := appended, wantAppended
	if upsert {
		cfg.Key, records, want = []string{"row"}, upserted, wantUpserted
	}
	return sinktest.Disk{
		Sink: "lake", Batches: []checkpoint.BatchID{3, 4, 9, 19}, Want: want,
		New: func(files durable.Files, clock func() time.Time) (sink.Target, error) {
			cfg := cfg
			cfg.Files, cfg.Clock = files, clock
			return target.New(cfg)
		},
		Records: func(n checkpoint.BatchID) (out []*abi.Record) {
			for _, r := range records(n) {
				out = append(out, r.abi())
			}
			return out
		},
		Visible: func(tb testing.TB, files durable.Files) []string { return rowsOf(tb, files, "/data/out") },
		Orphans: orphans,
	}
}

// TestPowerCuts stops the machine in every operation of a whole life, loses any part of what was not durable, and goes on.
func TestPowerCuts(t *testing.T) {
	t.Run("append", func(t *testing.T) { sinktest.PowerCuts(t, disk(t, false)) })
	t.Run("upsert", func(t *testing.T) { sinktest.PowerCuts(t, disk(t, true)) })
}

// TestEveryOperationFails lets each operation fail once, as a full or broken disk does.
func TestEveryOperationFails(t *testing.T) {
	t.Run("append", func(t *testing.T) { sinktest.EveryOperationFails(t, disk(t, false), 250) })
	t.Run("upsert", func(t *testing.T) { sinktest.EveryOperationFails(t, disk(t, true), 250) })
}

func row(n checkpoint.BatchID, i int) string {
	return fmt.Sprintf(`{"batch":%d,"row":%d,"place":"p%d"}`, n, i, i%2)
}

// appended are a batch's rows: every fourth batch has none.
func appended(n checkpoint.BatchID) (out []record) {
	for i := range int(n) % 4 {
		out = append(out, record{value: row(n, i)})
	}
	return out
}

func wantAppended(batches []checkpoint.BatchID) (all []string) {
	for _, n := range batches {
		for _, r := range appended(n) {
			all = append(all, r.value)
		}
	}
	return all
}

// upserted are a batch's changes: each replaces the first rows of those before and deletes one.
func upserted(n checkpoint.BatchID) (out []record) {
	for i := range int(n)%4 + 2 {
		out = append(out, record{value: row(n, i)})
	}
	return append(out, record{key: fmt.Sprint(int(n) % 3)})
}

func wantUpserted(batches []checkpoint.BatchID) (all []string) {
	last := map[int]string{}
	for _, n := range batches {
		for i := range int(n)%4 + 2 {
			last[i] = row(n, i)
		}
		delete(last, int(n)%3)
	}
	for _, v := range last {
		all = append(all, v)
	}
	return all
}

// orphans are data files that the log does not name.
func orphans(tb testing.TB, files durable.Files) (out []string) {
	tb.Helper()
	named := map[string]bool{}
	s := snapshot(tb, files, "/data/out")
	for a := range s.Files() {
		name, err := a.File()
		if err != nil {
			tb.Fatal(err)
		}
		named[name] = true
	}
	for r := range s.Tombstones() {
		name, err := delta.FilePath(r.Path)
		if err != nil {
			tb.Fatal(err)
		}
		named[name] = true
	}
	for _, name := range dataFiles(tb, files, "/data/out", "") {
		if !named[name] {
			out = append(out, name)
		}
	}
	return out
}

// dataFiles lists the data files of a table, in its folders too.
func dataFiles(tb testing.TB, files durable.Files, root, dir string) (out []string) {
	tb.Helper()
	infos, err := files.List(path.Join(root, dir))
	if err != nil {
		tb.Fatal(err)
	}
	for _, i := range infos {
		name := path.Join(dir, i.Name)
		switch {
		case i.Dir && strings.Contains(i.Name, "="):
			out = append(out, dataFiles(tb, files, root, name)...)
		case strings.HasPrefix(i.Name, "part-"):
			out = append(out, name)
		}
	}
	return out
}
