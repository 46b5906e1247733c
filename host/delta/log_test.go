package delta_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
)

func TestNoTable(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "nowhere")} {
		l := delta.OpenLog(durable.OS(), dir, clock)
		_, err := l.Snapshot(ctx)
		wantFault(t, err, delta.CodeNoTable, dir)
		if !errors.Is(err, delta.ErrNoTable) {
			t.Errorf("got %v", err)
		}
		if _, err := l.Latest(ctx, -1); !errors.Is(err, delta.ErrNoTable) {
			t.Errorf("latest: %v", err)
		}
		_, err = l.Entry(ctx, 0)
		if !errors.Is(err, delta.ErrNoVersion) {
			t.Errorf("entry: %v", err)
		}
	}
}

// A log that another writer goes on with is read on from where it was, and each version can be had.
func TestSnapshotsFollowTheLog(t *testing.T) {
	l, disk := memory(t)
	other := delta.OpenLog(disk.Process(), "/table", clock)
	s := create(t, other)
	for i, path := range []string{"a", "b", "c", "d"} {
		if got := snapshot(t, l); got.Version != int64(i) || got.NumFiles() != i {
			t.Errorf("version %d with %d files before commit %d", got.Version, got.NumFiles(), i)
		}
		_, err := other.Commit(ctx, s, []delta.Action{info(path), add(path)})
		must(t, err)
		s = snapshot(t, other)
	}
	at := []string{"", "a", "a b", "a b c", "a b c d"}
	for v, want := range at {
		for _, log := range []*delta.Log{l, delta.OpenLog(disk.Process(), "/table", clock)} {
			got, err := log.SnapshotAt(ctx, int64(v))
			must(t, err)
			if strings.Join(paths(got), " ") != want || got.Version != int64(v) {
				t.Errorf("version %d: %v", v, paths(got))
			}
		}
	}
	_, err := l.SnapshotAt(ctx, 5)
	wantFault(t, err, delta.CodeNoVersion)
	for from := int64(-1); from < 5; from++ {
		if v, err := l.Latest(ctx, from); v != 4 || err != nil {
			t.Errorf("latest from %d: %d, %v", from, v, err)
		}
	}
}

// A newest version is found although the folder's list was old, and an entry that is lost is missed wherever it was.
func TestMissingEntries(t *testing.T) {
	for missing := range int64(4) {
		l, dir := golden(t, "f-delta-rs")
		must(t, os.Remove(filepath.Join(dir, checkpointFile(2))))
		must(t, os.Remove(filepath.Join(dir, entryFile(missing))))
		s, err := l.Snapshot(ctx)
		switch missing {
		case 3: // the end of the log: nobody can know
			must(t, err)
			if s.Version != 2 {
				t.Errorf("version %d", s.Version)
			}
		case 0:
			wantFault(t, err, delta.CodeNoVersion, entryFile(0))
		default:
			wantFault(t, err, delta.CodeDamaged, entryFile(missing), "missing")
		}
	}
	t.Run("with a checkpoint", func(t *testing.T) {
		l, dir := golden(t, "d-delta")
		must(t, os.Remove(filepath.Join(dir, entryFile(11))))
		_, err := l.Snapshot(ctx)
		wantFault(t, err, delta.CodeDamaged, entryFile(11))
		if s, err := l.SnapshotAt(ctx, 10); err != nil || s.NumFiles() != 9 {
			t.Errorf("version 10: %v", err)
		}
		_, err = l.SnapshotAt(ctx, 12)
		wantFault(t, err, delta.CodeDamaged, entryFile(11))
	})
	t.Run("behind the reader", func(t *testing.T) {
		l, _ := golden(t, "d-delta")
		_, err := l.SnapshotAt(ctx, 10)
		must(t, err)
		var dir string
		l, dir = golden(t, "d-delta")
		for _, v := range []int64{11, 12} {
			must(t, os.Rename(filepath.Join(dir, entryFile(v)), filepath.Join(dir, entryFile(v)+".x")))
		}
		if s := snapshot(t, l); s.Version != 10 {
			t.Fatalf("version %d", s.Version)
		}
		must(t, os.Rename(filepath.Join(dir, entryFile(12)+".x"), filepath.Join(dir, entryFile(12))))
		_, err = l.Snapshot(ctx)
		wantFault(t, err, delta.CodeDamaged, entryFile(11), "missing")
		must(t, os.Rename(filepath.Join(dir, entryFile(11)+".x"), filepath.Join(dir, entryFile(11))))
		if s := snapshot(t, l); s.Version != 12 {
			t.Errorf("version %d", s.Version)
		}
	})
	t.Run("cleaned", func(t *testing.T) {
		l, dir := golden(t, "d-delta")
		for v := range int64(5) {
			must(t, os.Remove(filepath.Join(dir, entryFile(v))))
		}
		if s := snapshot(t, l); s.NumFiles() != 11 {
			t.Errorf("%d files", s.NumFiles())
		}
		_, err := l.SnapshotAt(ctx, 3)
		wantFault(t, err, delta.CodeNoVersion, "no such version")
		_, err = l.Entry(ctx, 3)
		wantFault(t, err, delta.CodeNoVersion, entryFile(3))
	})
}

func TestTornEntries(t *testing.T) {
	whole := delta.EncodeEntry(t, &delta.Entry{Version: 1, Actions: []delta.Action{info("x"), txn("a", 1), add("f")}})
	for _, c := range []struct{ name, content, says string }{
		{"empty", "", "no action"},
		{"blank", "\n\n", "no action"},
		{"zeros", strings.Repeat("\x00", 100), "line 1"},
		{"half", whole[:len(whole)/2], "line 2"},
		{"cut at the end", whole[:len(whole)-3], "line 3"},
		{"not JSON", "{}\nhello\n", "line 2"},
		{"two documents in a line", `{"txn":{"appId":"a","version":1}} {}` + "\n", "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, disk := memory(t)
			create(t, l)
			write(t, disk.Process(), "/table/"+entryFile(1), c.content)
			_, err := l.Snapshot(ctx)
			wantFault(t, err, delta.CodeDamaged, entryFile(1), c.says)
			_, err = delta.OpenLog(disk.Process(), "/table", clock).Snapshot(ctx)
			wantFault(t, err, delta.CodeDamaged, entryFile(1), c.says)
		})
	}
}

// However _last_checkpoint and the checkpoints lie, the table is read right as long as there are entries, and never wrong.
func TestLyingCheckpoints(t *testing.T) {
	l, _ := golden(t, "d-delta")
	want := delta.CheckpointActions(snapshot(t, l))
	other, dir := golden(t, "f-delta-rs")
	snapshot(t, other)
	foreign, err := os.ReadFile(filepath.Join(dir, checkpointFile(2)))
	must(t, err)
	sound, err := os.ReadFile(filepath.Join("testdata/spark/d-delta", checkpointFile(10)))
	must(t, err)
	older, err := os.ReadFile(filepath.Join("testdata/spark/d-delta", checkpointFile(5)))
	must(t, err)
	flipped := append([]byte(nil), sound...)
	for i := 4; i < len(flipped)/2; i += 97 {
		flipped[i] ^= 0x55
	}
	const last = "_delta_log/_last_checkpoint"
	for _, c := range []struct {
		name, file string
		content    []byte // nil: gone
		lost       bool   // without the entries before it the table cannot be read
	}{
		{"hint gone", last, nil, false},
		{"hint empty", last, []byte{}, false},
		{"hint torn", last, []byte(`{"version":10,"si`), false},
		{"hint stale", last, []byte(`{"version":5,"size":7}`), false},
		{"hint points nowhere", last, []byte(`{"version":11,"size":7}`), false},
		{"hint of many parts", last, []byte(`{"version":10,"size":7,"parts":3}`), false},
		{"hint beyond all", last, []byte(`{"version":9223372036854775807,"size":7}`), false},
		{"hint negative", last, []byte(`{"version":-1,"size":7}`), false},
		{"short", checkpointFile(10), older, true},
		{"of another table", checkpointFile(10), foreign, true},
		{"empty", checkpointFile(10), []byte{}, true},
		{"truncated", checkpointFile(10), sound[:len(sound)-20], true},
		{"head cut off", checkpointFile(10), sound[100:], true},
		{"flipped bits", checkpointFile(10), flipped, true},
		{"not parquet", checkpointFile(10), []byte("PAR1 hello PAR1"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, cleaned := range []bool{false, true} {
				_, dir := golden(t, "d-delta")
				must(t, os.Remove(filepath.Join(dir, c.file)))
				if c.content != nil {
					must(t, os.WriteFile(filepath.Join(dir, c.file), c.content, 0o600))
				}
				if cleaned {
					must(t, os.Remove(filepath.Join(dir, checkpointFile(5))))
					for v := range int64(10) {
						must(t, os.Remove(filepath.Join(dir, entryFile(v))))
					}
				}
				s, err := delta.OpenLog(durable.OS(), dir, clock).Snapshot(ctx)
				if cleaned && c.lost {
					wantFault(t, err, delta.CodeDamaged, checkpointFile(10), "checkpoint")
					continue
				}
				must(t, err)
				if diff := cmp.Diff(want, delta.CheckpointActions(s)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// A checkpoint in several files counts when all of them are there.
func TestCheckpointInParts(t *testing.T) {
	_, dir := golden(t, "d-delta")
	l := delta.OpenLog(durable.OS(), dir, clock)
	want := snapshot(t, l)
	log := filepath.Join(dir, "_delta_log")
	must(t, os.RemoveAll(filepath.Join(dir, checkpointFile(10))))
	must(t, os.RemoveAll(filepath.Join(dir, checkpointFile(5))))
	at12 := delta.CheckpointActions(want)
	parts := []string{"00000000000000000012.checkpoint.0000000001.0000000002.parquet", "00000000000000000012.checkpoint.0000000002.0000000002.parquet"}
	for i, actions := range [][]delta.Action{at12[:4], at12[4:]} {
		content, err := delta.EncodeCheckpoint(actions)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(log, parts[i]), content, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(log, "00000000000000000012.checkpoint.0000000001.0000000003.parquet"), []byte("x"), 0o600))
	for v := range int64(12) {
		must(t, os.Remove(filepath.Join(dir, entryFile(v))))
	}
	got := snapshot(t, delta.OpenLog(durable.OS(), dir, clock))
	if diff := cmp.Diff(at12, delta.CheckpointActions(got)); diff != "" {
		t.Error(diff)
	}
	must(t, os.Remove(filepath.Join(log, parts[1])))
	_, err := delta.OpenLog(durable.OS(), dir, clock).Snapshot(ctx)
	wantFault(t, err, delta.CodeNoVersion)
}

// A table whose log was cleaned and that has none but checkpoints of the kind v2 is refused by the feature's name.
func TestSecondKindOfCheckpoint(t *testing.T) {
	l, dir := golden(t, "e-v2-checkpoint")
	if s := snapshot(t, l); s.NumFiles() != 3 {
		t.Errorf("%d files", s.NumFiles())
	}
	for v := range int64(2) {
		must(t, os.Remove(filepath.Join(dir, entryFile(v))))
	}
	_, err := delta.OpenLog(durable.OS(), dir, clock).Snapshot(ctx)
	wantFault(t, err, delta.CodeFeature, "v2Checkpoint", entryFile(0))
}

func TestOtherFilesDoNotMatter(t *testing.T) {
	l, dir := golden(t, "f-delta-rs")
	for _, name := range []string{
		".00000000000000000003.json.crc", "00000000000000000003.crc", "00000000000000000004.json.tmp", ".00000000000000000004.json.0badcafe.tmp",
		"00000000000000000001.00000000000000000003.compacted.json", "99999999999999999999.json", "4.json", "_commits",
	} {
		must(t, os.WriteFile(filepath.Join(dir, "_delta_log", name), []byte("x"), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "_delta_log", "_staged_commits"), 0o700))
	if s := snapshot(t, l); s.Version != 3 || s.NumFiles() != 23 {
		t.Errorf("version %d with %d files", s.Version, s.NumFiles())
	}
}

// Another engine cleans the log between the list and the reading: what is left is read anew.
func TestLogIsCleanedMeanwhile(t *testing.T) {
	_, dir := golden(t, "d-delta")
	want := delta.CheckpointActions(snapshot(t, delta.OpenLog(durable.OS(), dir, clock)))
	cleaned := false
	files := durable.Tap(durable.OS(), func(op, _ string) error {
		if op != "list:after" || cleaned {
			return nil
		}
		cleaned = true
		return errors.Join(os.Remove(filepath.Join(dir, checkpointFile(10))), os.Remove(filepath.Join(dir, entryFile(0))))
	})
	got := snapshot(t, delta.OpenLog(files, dir, clock))
	if diff := cmp.Diff(want, delta.CheckpointActions(got)); diff != "" || !cleaned {
		t.Error(diff)
	}
}
