package delta_test

import (
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
)

// A txn that has expired is not there, as for Spark, which also drops one without a time.
func TestTxnRetention(t *testing.T) {
	for _, c := range []struct {
		property    string
		idle        time.Duration
		withoutTime bool
		expired     bool
	}{
		{"", 1000 * time.Hour, false, false},
		{"", 1000 * time.Hour, true, false},
		{"interval 1 hour", time.Hour - time.Millisecond, false, false},
		{"interval 1 hour", time.Hour, false, true},
		{"interval 1 hour", 0, true, true},
		{"1 month", 1000 * time.Hour, false, false},
	} {
		disk := faulty.New()
		now := epoch
		l := delta.OpenLog(disk.Process(), "/table", func() time.Time { return now })
		var properties []string
		if c.property != "" {
			properties = []string{"delta.setTransactionRetentionDuration", c.property}
		}
		s := create(t, l, properties...)
		done := txn("q", 7)
		if c.withoutTime {
			done.Txn.LastUpdated = nil
		}
		_, err := l.Commit(ctx, s, []delta.Action{info("x"), done})
		must(t, err)
		now = now.Add(c.idle)
		s = snapshot(t, l)
		live, isLive := s.Txn("q")
		dead, isDead := s.ExpiredTxn("q")
		if isLive == c.expired || isDead != c.expired || live.Version+dead.Version != 7 {
			t.Errorf("%+v: live %v, expired %v", c, isLive, isDead)
		}
		if _, ok := s.Txn("r"); ok {
			t.Error("an application that was never there")
		}
		if _, ok := s.ExpiredTxn("r"); ok {
			t.Error("an expired application that was never there")
		}
	}
}

func TestParseInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"interval 1 week": 7 * 24 * time.Hour, "INTERVAL 2 DAYS 3 hours": 51 * time.Hour, "30 minutes": 30 * time.Minute,
		"interval 1 second 5 milliseconds 7 microseconds": time.Second + 5*time.Millisecond + 7*time.Microsecond, "interval 0 days": 0,
	} {
		if got, err := delta.ParseInterval(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "interval", "1", "1 month", "one day", "1.5 days", "days 1", "interval 999999999999 weeks", "1 day 2"} {
		if got, err := delta.ParseInterval(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Removed files and txns leave a checkpoint when they are too old by the time of the version, whenever it is written.
func TestCheckpointsForget(t *testing.T) {
	const day = 24 * 3600 * 1000
	at := epoch.UnixMilli()
	l, _ := memory(t)
	s := create(t, l, "delta.setTransactionRetentionDuration", "interval 2 days", "delta.deletedFileRetentionDuration", "interval 3 days")
	gone := func(path string, when int64) delta.Action {
		return delta.Action{Remove: &delta.Remove{Path: path, DataChange: true, DeletionTimestamp: &when}}
	}
	mark := func(app string, when int64) delta.Action {
		return delta.Action{Txn: &delta.Txn{AppID: app, Version: 1, LastUpdated: &when}}
	}
	late := info("x")
	late.CommitInfo.Timestamp = at
	_, err := l.Commit(ctx, s, []delta.Action{
		late, gone("old", at-3*day), gone("young", at-3*day+1),
		{Remove: &delta.Remove{Path: "undated", DataChange: true}},
		mark("old", at-2*day), mark("young", at-2*day+1),
		{Domain: &delta.DomainMetadata{Domain: "d", Configuration: "c"}},
	})
	must(t, err)
	s = snapshot(t, l)
	var got []string
	for _, a := range delta.CheckpointActions(s) {
		switch {
		case a.Remove != nil:
			got = append(got, "remove "+a.Remove.Path)
		case a.Txn != nil:
			got = append(got, "txn "+a.Txn.AppID)
		}
	}
	if len(got) != 2 || got[0] != "txn young" || got[1] != "remove young" {
		t.Errorf("kept %v", got)
	}
	if c, ok := s.Domain("d"); !ok || c != "c" {
		t.Errorf("domain: %q, %v", c, ok)
	}
}

func TestCheckpointInterval(t *testing.T) {
	for text, want := range map[string]int{"": 100, "7": 7, "0": 100, "x": 100, "-1": 100} {
		l, _ := memory(t)
		if got := create(t, l, "delta.checkpointInterval", text).CheckpointInterval(100); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// A checkpoint is the same bytes whoever writes it; one that is there stays, one that lies is replaced, and _last_checkpoint
// does not go back.
func TestCheckpointsAreTheSame(t *testing.T) {
	l, disk := memory(t)
	s := create(t, l)
	_, err := l.Commit(ctx, s, []delta.Action{info("x"), add("b"), add("a"), txn("q", 1), txn("p", 1)})
	must(t, err)
	first := s
	s = snapshot(t, l)
	must(t, l.WriteCheckpoint(ctx, s))
	p := disk.Process()
	want := read(t, p, checkpointFile(1))
	for _, content := range []string{"", want[:100], want} {
		must(t, p.Remove("/table/"+checkpointFile(1)))
		write(t, p, "/table/"+checkpointFile(1), content)
		other := delta.OpenLog(p, "/table", func() time.Time { return epoch.Add(time.Hour) })
		must(t, other.WriteCheckpoint(ctx, snapshot(t, other)))
		if got := read(t, p, checkpointFile(1)); got != want {
			t.Errorf("%d bytes were replaced by %d, want %d", len(content), len(got), len(want))
		}
	}
	hint := read(t, p, "_delta_log/_last_checkpoint")
	must(t, l.WriteCheckpoint(ctx, first))
	if got := read(t, p, "_delta_log/_last_checkpoint"); got != hint {
		t.Errorf("the hint went back to %s", got)
	}
}
