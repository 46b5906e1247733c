package statestore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

const query = "6f2ad1b0-0000-4000-8000-000000000001"

var oneStage = []statestore.Stage{{Name: "hourly", Tables: []string{"counts", "seen"}}}

func open(t *testing.T, files durable.Files, disk *mem.Disk) *statestore.Store {
	t.Helper()
	s, err := statestore.Open(t.Context(), statestore.Config{Files: files, Dir: "/c/state", Query: query, Backend: disk.Open, BackendName: "mem", ApplyBatches: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entry(key, sub string) statestore.Entry {
	return statestore.Entry{Group: 3, Key: []byte(key), Sub: []byte(sub)}
}

// batch runs a batch of one stage and one lane.
func batch(t *testing.T, s *statestore.Store, info statestore.BatchInfo, run func(l *statestore.Lane)) statestore.Summary {
	t.Helper()
	if info.Lanes == 0 {
		info.Lanes = 1
	}
	if info.Stages == nil {
		info.Stages = oneStage
	}
	txn, err := s.Begin(t.Context(), info)
	must(t, err)
	defer txn.Close()
	run(txn.Lane(0, 0))
	sum, err := txn.Sum(t.Context())
	must(t, err)
	must(t, txn.Write(t.Context(), fmt.Sprintf("%08x", info.Batch)))
	must(t, s.Seal(t.Context(), txn))
	return sum
}

func TestStateSurvives(t *testing.T) {
	fs, disk := faulty.New(), mem.New()
	s := open(t, fs.Process(), disk)
	sum := batch(t, s, statestore.BatchInfo{Batch: 0, TimeMS: 1000}, func(l *statestore.Lane) {
		must(t, l.Put(entry("a", "1"), []byte("one"), 0))
		must(t, l.Put(entry("a", "2"), []byte("two"), 2000))
		must(t, l.SetTimer(statestore.Timer{AtMS: 5, Group: 3, Key: []byte("a"), Sub: []byte("x")}))
		v, ok, err := l.Get(entry("a", "1"))
		if string(v) != "one" || !ok || err != nil {
			t.Errorf("own write: %q %v %v", v, ok, err)
		}
	})
	if sum.Entries != 3 || len(sum.Digest) != 32 {
		t.Errorf("summary %+v", sum)
	}
	must(t, s.Close())
	s = open(t, fs.Process(), mem.New())
	must(t, s.Load(context.Background(), 0, "00000000", sum.Digest))
	if s.Last() != 0 {
		t.Errorf("last %d", s.Last())
	}
	due, err := s.Due(0, everywhere(5))
	if !due || err != nil {
		t.Errorf("due: %v %v", due, err)
	}
	batch(t, s, statestore.BatchInfo{Batch: 1, TimeMS: 1500, WatermarkMS: 7}, func(l *statestore.Lane) {
		got := ""
		must(t, l.Scan(entry("a", ""), nil, true, func(sub, value []byte) bool {
			got += fmt.Sprintf("%s=%s ", sub, value)
			return true
		}))
		if got != "2=two 1=one " {
			t.Errorf("scan: %s", got)
		}
		n := 0
		more, err := l.Due(10, func(tm *statestore.Timer) error {
			n++
			if tm.AtMS != 5 || string(tm.Key) != "a" || string(tm.Sub) != "x" {
				t.Errorf("timer %+v", tm)
			}
			return nil
		})
		if n != 1 || more || err != nil {
			t.Errorf("fired %d, %v %v", n, more, err)
		}
	})
	sum = batch(t, s, statestore.BatchInfo{Batch: 2, TimeMS: 2000, WatermarkMS: 8}, func(l *statestore.Lane) {
		if _, ok, _ := l.Get(entry("a", "2")); ok {
			t.Error("an expired entry is seen")
		}
		_, err := l.Due(10, func(*statestore.Timer) error { t.Error("fired twice"); return nil })
		must(t, err)
	})
	if sum.Entries != 1 || sum.Stages[0].Removed != 1 {
		t.Errorf("expiry: %+v", sum)
	}
	v, err := s.At(t.Context(), 1)
	must(t, err)
	defer v.Close()
	tab, _ := v.Table("hourly", "counts")
	n := 0
	must(t, v.Export(t.Context(), tab, func(r *statestore.Row) bool { n++; return true }))
	if n != 2 {
		t.Errorf("%d rows", n)
	}
}

// everywhere is one watermark for all stages.
func everywhere(ms int64) func(string) int64 { return func(string) int64 { return ms } }

// TestHeldWatermark: timers of a lane whose watermark is held back are due by that one, and the store knows for which stages
// any is due.
func TestHeldWatermark(t *testing.T) {
	s := open(t, faulty.New().Process(), mem.New())
	set := func(l *statestore.Lane) {
		must(t, l.SetTimer(statestore.Timer{AtMS: 50, Group: 3, Key: []byte("a"), Sub: []byte("x")}))
	}
	batch(t, s, statestore.BatchInfo{Batch: 0, TimeMS: 1}, set)
	for _, c := range []struct {
		watermark int64
		want      bool
	}{{0, false}, {49, false}, {50, true}} {
		due, err := s.Due(1, func(stage string) int64 {
			if stage == "hourly" {
				return c.watermark
			}
			return 1 << 40
		})
		if due != c.want || err != nil {
			t.Errorf("due under %d: %v, %v", c.watermark, due, err)
		}
	}
	for i, c := range []struct{ held, fired int64 }{{0, 0}, {49, 0}, {50, 1}} {
		fired := int64(0)
		batch(t, s, statestore.BatchInfo{Batch: int64(i + 1), TimeMS: 1, WatermarkMS: 99}, func(l *statestore.Lane) {
			l.HoldWatermark(c.held)
			_, err := l.Due(10, func(*statestore.Timer) error { fired++; return nil })
			must(t, err)
		})
		if fired != c.fired {
			t.Errorf("held at %d: %d timers fire, want %d", c.held, fired, c.fired)
		}
	}
}
