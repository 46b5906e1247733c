package files_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/files"
	"github.com/wasmill/wasmill/host/sink/sinktest"
)

// disk is the target as the suites of sinktest see it; batches hold gaps, compactions, empty ones and a late start.
func disk() sinktest.Disk {
	cfg := files.Config{Sink: "lake", Dir: "/data/out", Format: files.JSONL, MaxPartRows: 2, Grace: time.Minute}
	return sinktest.Disk{
		Sink: "lake", Batches: []checkpoint.BatchID{3, 4, 8, 9, 10, 19, 31, 32, 39}, Want: want,
		New: func(fs durable.Files, clock func() time.Time) (sink.Target, error) {
			cfg := cfg
			cfg.Files, cfg.Clock = fs, clock
			return files.New(cfg)
		},
		Records: func(n checkpoint.BatchID) (out []*abi.Record) {
			for _, v := range values(n) {
				out = append(out, &abi.Record{Value: []byte(v)})
			}
			return out
		},
		Visible: func(tb testing.TB, fs durable.Files) []string { return visible(tb, fs, "/data/out") },
		Orphans: orphans,
		Reruns:  true,
	}
}

// TestPowerCuts stops the machine in every operation of a whole life, loses any part of what was not durable, and goes on.
func TestPowerCuts(t *testing.T) { sinktest.PowerCuts(t, disk()) }

// TestEveryOperationFails lets each operation fail once, as a full or broken disk does.
func TestEveryOperationFails(t *testing.T) { sinktest.EveryOperationFails(t, disk(), 100) }

// values are a batch's: every fourth one is empty.
func values(n checkpoint.BatchID) []string {
	var v []string
	for i := range int(n) % 4 {
		v = append(v, fmt.Sprintf(`{"batch":%d,"row":%d}`, n, i))
	}
	return v
}

func want(batches []checkpoint.BatchID) []string {
	var all []string
	for _, n := range batches {
		all = append(all, values(n)...)
	}
	return all
}

// orphans are data files that the manifest does not list, and what is left of stages.
func orphans(tb testing.TB, fs durable.Files) (out []string) {
	tb.Helper()
	listed := map[string]bool{}
	for _, e := range sparkEntries(tb, fs, "/data/out") {
		listed[path.Base(e.Path)] = true
	}
	infos, err := fs.List("/data/out")
	if err != nil {
		tb.Fatal(err)
	}
	for _, i := range infos {
		if strings.HasPrefix(i.Name, "part-") && !listed[i.Name] {
			out = append(out, i.Name)
		}
	}
	staged, err := fs.List("/data/out/_wasmill")
	if err != nil {
		tb.Fatal(err)
	}
	for _, i := range staged {
		if i.Dir {
			out = append(out, i.Name)
		}
	}
	return out
}
