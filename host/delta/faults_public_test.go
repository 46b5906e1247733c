package delta_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
)

// The tests of this file are of faults that other programs were reported for: see FAULTS.md.

// TestCheckpointsOfManyKinds: one version has a checkpoint in one file, one in parts and one of the kind v2. Any of them may be
// torn, and the hint may be about any: the table is read as long as one is whole.
func TestCheckpointsOfManyKinds(t *testing.T) {
	l, _ := golden(t, "d-delta")
	at10, err := l.SnapshotAt(ctx, 10)
	must(t, err)
	actions, want := delta.CheckpointActions(at10), delta.CheckpointActions(snapshot(t, l))
	const one, two = "00000000000000000010.checkpoint.0000000001.0000000002.parquet", "00000000000000000010.checkpoint.0000000002.0000000002.parquet"
	classic := filepath.Base(checkpointFile(10))
	for _, hint := range []string{`{"version":10,"size":%d}`, `{"version":10,"size":%d,"parts":2}`, `{"version":10,"size":%d,"v2Checkpoint":{"path":"x"}}`, `{"version":7,"size":%d}`} {
		for _, torn := range [][]string{nil, {classic}, {one}, {two}, {classic, two}} {
			_, dir := golden(t, "d-delta")
			log := filepath.Join(dir, "_delta_log")
			for v := range int64(10) {
				must(t, os.Remove(filepath.Join(dir, entryFile(v))))
			}
			must(t, os.Remove(filepath.Join(dir, checkpointFile(5))))
			for name, some := range map[string][]delta.Action{classic: actions, one: actions[:3], two: actions[3:]} {
				content, err := delta.EncodeCheckpoint(some)
				must(t, err)
				if slices.Contains(torn, name) {
					content = content[:len(content)/2]
				}
				must(t, os.WriteFile(filepath.Join(log, name), content, 0o600))
			}
			must(t, os.WriteFile(filepath.Join(log, "00000000000000000010.checkpoint.0c0ffee0-1111-4222-8333-444455556666.parquet"), []byte("PAR1"), 0o600))
			must(t, os.WriteFile(filepath.Join(log, "_last_checkpoint"), fmt.Appendf(nil, hint, len(actions)), 0o600))
			s, err := delta.OpenLog(durable.OS(), dir, clock).Snapshot(ctx)
			if len(torn) == 2 {
				wantFault(t, err, delta.CodeDamaged, "checkpoint")
				continue
			}
			must(t, err)
			if diff := cmp.Diff(want, delta.CheckpointActions(s)); diff != "" {
				t.Errorf("%s, torn %v: %s", hint, torn, diff)
			}
		}
	}
}

// TestReadErrorsShortenNothing: whatever operation fails while a log is read, there is an error or the whole table, never a
// part of it; and what is then written as a checkpoint is whole too.
func TestReadErrorsShortenNothing(t *testing.T) {
	_, dir := golden(t, "d-delta")
	want := delta.CheckpointActions(snapshot(t, delta.OpenLog(durable.OS(), dir, clock)))
	must(t, os.Remove(filepath.Join(dir, checkpointFile(10)))) // the one of version 5 and the entries after it are read
	failed, n := 0, 1
	for done := false; !done; n++ {
		at := 0
		done = true
		files := durable.Tap(durable.OS(), func(string, string) error {
			if at++; at == n {
				done = false
				return &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}
			}
			return nil
		})
		l := delta.OpenLog(files, dir, clock)
		s, err := l.Snapshot(ctx)
		if err != nil {
			failed++
			if !errors.Is(err, syscall.EIO) {
				t.Fatalf("operation %d: %v", n, err)
			}
			s, err = l.Snapshot(ctx) // by the same log
			must(t, err)
		}
		if diff := cmp.Diff(want, delta.CheckpointActions(s)); diff != "" {
			t.Fatalf("operation %d: %s", n, diff)
		}
	}
	if failed < 10 || n < 50 {
		t.Errorf("%d of %d operations failed the reading", failed, n)
	}
	for n, done := 1, false; !done; n++ {
		_, dir := golden(t, "d-delta")
		s, err := delta.OpenLog(durable.OS(), dir, clock).SnapshotAt(ctx, 12)
		must(t, err)
		at := 0
		done = true
		files := durable.Tap(durable.OS(), func(string, string) error {
			if at++; at == n {
				done = false
				return &fs.PathError{Op: "write", Path: "x", Err: syscall.EIO}
			}
			return nil
		})
		err = delta.OpenLog(files, dir, clock).WriteCheckpoint(ctx, s)
		if err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d: %v", n, err)
		}
		content, rerr := os.ReadFile(filepath.Join(dir, checkpointFile(12)))
		if errors.Is(rerr, fs.ErrNotExist) && err != nil {
			continue
		}
		must(t, rerr)
		got, err := delta.ParseCheckpoint(content)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("operation %d: a checkpoint that is short: %s", n, diff)
		}
	}
}

// TestRacingCheckpointers: several writers make checkpoints of the same and of different versions while others read. Each that
// is seen is whole, as is the hint, and the last one alone makes the table.
func TestRacingCheckpointers(t *testing.T) {
	dir := t.TempDir()
	l := delta.OpenLog(durable.OS(), dir, clock)
	s := create(t, l)
	const versions = 12
	for v := range versions {
		actions := []delta.Action{info(fmt.Sprint(v)), txn("q", int64(v))}
		for i := range 200 {
			actions = append(actions, add(fmt.Sprintf("f-%d-%d", v, i)))
		}
		_, err := l.Commit(ctx, s, actions)
		must(t, err)
		s = snapshot(t, l)
	}
	var writers, readers sync.WaitGroup
	ended := make(chan struct{})
	for i := range int64(3) {
		writers.Go(func() {
			own := delta.OpenLog(durable.OS(), dir, clock)
			for v := versions - i*3; v <= versions; v++ {
				s, err := own.SnapshotAt(ctx, v)
				if err == nil {
					err = own.WriteCheckpoint(ctx, s)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Go(func() {
		for {
			for v := range int64(versions + 1) {
				content, err := os.ReadFile(filepath.Join(dir, checkpointFile(v)))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err == nil {
					_, err = delta.ParseCheckpoint(content)
				}
				if err != nil {
					t.Errorf("checkpoint %d: %v", v, err)
				}
			}
			if text, err := os.ReadFile(filepath.Join(dir, "_delta_log", "_last_checkpoint")); err == nil {
				if _, ok := delta.ParseHint(text); !ok {
					t.Errorf("the hint is torn: %q", text)
				}
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	writers.Wait()
	close(ended)
	readers.Wait()
	want := delta.CheckpointActions(s)
	for v := range s.Version + 1 {
		must(t, os.Remove(filepath.Join(dir, entryFile(v))))
	}
	if diff := cmp.Diff(want, delta.CheckpointActions(snapshot(t, delta.OpenLog(durable.OS(), dir, clock)))); diff != "" {
		t.Error(diff)
	}
}

// TestTenThousandCommits: the ten thousandth commit costs as many operations of the disk as the tenth, with what comes before
// it, and a start reads what came after the last checkpoint.
func TestTenThousandCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand commits")
	}
	ops := map[string]int{}
	files := durable.Tap(faulty.New().Process(), func(op, _ string) error { ops[op]++; return nil })
	count := func() (n int) {
		for op, k := range ops {
			if strings.HasSuffix(op, ":before") {
				n += k
			}
		}
		clear(ops)
		return n
	}
	l := delta.OpenLog(files, "/table", clock)
	create(t, l)
	const commits, interval = 10_000, 100
	most, tenth := 0, 0
	for v := range commits {
		count()
		s := snapshot(t, l)
		_, err := l.Commit(ctx, s, []delta.Action{info(fmt.Sprint(v)), txn("q", int64(v)), add(fmt.Sprintf("f%05d", v))})
		must(t, err)
		if most = max(most, count()); v == 10 {
			tenth = most
		}
		if (s.Version+1)%interval == 0 {
			s = snapshot(t, l)
			count()
			if v+1 < commits-interval && v > interval { // the first and the last tell enough
				continue
			}
			must(t, l.WriteCheckpoint(ctx, s))
			if n := count(); n > 40 {
				t.Errorf("%d operations for the checkpoint of version %d", n, s.Version)
			}
		}
	}
	if most != tenth || most > 20 {
		t.Errorf("a commit takes %d operations, the tenth took %d", most, tenth)
	}
	fresh := delta.OpenLog(files, "/table", clock)
	s := snapshot(t, fresh)
	if s.NumFiles() != commits || s.Version != commits {
		t.Errorf("version %d with %d files", s.Version, s.NumFiles())
	}
	if n := ops["open:before"]; n > interval+10 {
		t.Errorf("%d files are opened to read the newest version", n)
	}
	if n := len(delta.CheckpointActions(s)); n != commits+3 {
		t.Errorf("a checkpoint of %d actions for %d files, a txn, the protocol and the metaData", n, commits)
	}
}

// TestOldTombstonesAreForgotten: a log that is followed while files are replaced for long keeps in memory those that were
// removed lately, and few others; what a checkpoint holds is the same as of one that was read anew.
func TestOldTombstonesAreForgotten(t *testing.T) {
	disk := faulty.New()
	l := delta.OpenLog(disk.Process(), "/table", clock)
	s := create(t, l, "delta.deletedFileRetentionDuration", "interval 5 hours")
	const commits, files, hour = 200, 100, 3600 * 1000
	for v := range int64(commits) {
		at := epoch.UnixMilli() + v*hour
		actions := []delta.Action{info(fmt.Sprint(v))}
		actions[0].CommitInfo.Timestamp = at
		for i := range files {
			if v > 0 {
				actions = append(actions, delta.Action{Remove: &delta.Remove{Path: fmt.Sprintf("f-%d-%d", v-1, i), DeletionTimestamp: &at, DataChange: true}})
			}
			actions = append(actions, add(fmt.Sprintf("f-%d-%d", v, i)))
		}
		_, err := l.Commit(ctx, s, actions)
		must(t, err)
		s = snapshot(t, l)
		all, young := 0, 0
		for r := range s.Tombstones() {
			if all++; *r.DeletionTimestamp > at-5*hour {
				young++
			}
		}
		if want := int(min(v, 5)) * files; young != want || s.NumFiles() != files {
			t.Fatalf("version %d: %d young tombstones of %d, %d files", s.Version, young, want, s.NumFiles())
		}
		if all > 3*10*files+1000 {
			t.Fatalf("version %d: %d tombstones are kept", s.Version, all)
		}
	}
	fresh := snapshot(t, delta.OpenLog(disk.Process(), "/table", clock))
	if diff := cmp.Diff(delta.CheckpointActions(fresh), delta.CheckpointActions(s)); diff != "" {
		t.Error(diff)
	}
	must(t, l.WriteCheckpoint(ctx, s))
	for v := range s.Version {
		must(t, disk.Process().Remove("/table/"+entryFile(v)))
	}
	fresh = snapshot(t, delta.OpenLog(disk.Process(), "/table", clock))
	if diff := cmp.Diff(delta.CheckpointActions(s), delta.CheckpointActions(fresh)); diff != "" {
		t.Error(diff)
	}
}

// TestLargeCheckpoint is of more actions than a row group takes.
func TestLargeCheckpoint(t *testing.T) {
	const n = 70_000
	want := []delta.Action{{Protocol: protocol()}, {Metadata: metadata()}}
	for i := range n {
		a := add(fmt.Sprintf("f%06d", i))
		a.Add.Stats, a.Add.ModificationTime = `{"numRecords":1}`, int64(i)
		want = append(want, a)
	}
	content, err := delta.EncodeCheckpoint(want)
	must(t, err)
	if groups := footer(t, content).RowGroups; len(groups) != 2 || groups[0].NumRows+groups[1].NumRows != n+2 {
		t.Errorf("%d row groups", len(groups))
	}
	got, err := delta.ParseCheckpoint(content)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d actions, or others", len(got))
	}
}

// TestCheckpointsLookAsSparks: the columns of a checkpoint are as Spark writes them, and its pages have the oldest forms.
func TestCheckpointsLookAsSparks(t *testing.T) {
	theirs, err := os.ReadFile(filepath.Join("testdata", "spark", "d-delta", checkpointFile(10)))
	must(t, err)
	l, _ := golden(t, "d-delta")
	ours, err := delta.EncodeCheckpoint(delta.CheckpointActions(snapshot(t, l)))
	must(t, err)
	known := columnsOf(t, theirs)
	same, got := 0, columnsOf(t, ours)
	for path, form := range got {
		want, ok := known[path]
		if ok && form != want {
			t.Errorf("%s is %s, Spark's is %s", path, form, want)
		}
		if ok {
			same++
		}
	}
	if same < 30 {
		t.Errorf("only %d columns of %d have a like in Spark's %d", same, len(got), len(known))
	}
	for _, g := range footer(t, ours).RowGroups {
		for _, c := range g.Columns {
			for _, e := range c.MetaData.EncodingStats {
				if e.PageType != format.DataPage && e.PageType != format.DictionaryPage {
					t.Errorf("%v has a page of the kind %s", c.MetaData.PathInSchema, e.PageType)
				}
			}
			for _, e := range c.MetaData.Encoding {
				if e != format.Plain && e != format.RLE && e != format.RLEDictionary {
					t.Errorf("%v has encoding %s", c.MetaData.PathInSchema, e)
				}
			}
		}
	}
}

func footer(t *testing.T, file []byte) *format.FileMetaData {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	return f.Metadata()
}

// columnsOf tells of each node of a file's schema what it is, by its path.
func columnsOf(t *testing.T, file []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	elements := footer(t, file).Schema
	var walk func(at int, path string) int
	walk = func(at int, path string) int {
		e := elements[at]
		if at > 0 {
			path += "/" + e.Name
			form := e.RepetitionType.V.String()
			if e.Type.Valid {
				form += " " + e.Type.V.String()
			}
			if l := e.LogicalType.String(); e.LogicalType.Value != nil && l != "INT(64,true)" && l != "INT(32,true)" { // these say nothing new
				form += " " + l
			}
			out[path] = form
		}
		next := at + 1
		for range e.NumChildren.V {
			next = walk(next, path)
		}
		return next
	}
	walk(0, "")
	return out
}

// TestZerosStayInCheckpoints: zero, false and the empty text are values, and absent is absent.
func TestZerosStayInCheckpoints(t *testing.T) {
	zero, no := int64(0), false
	empty := ""
	want := []delta.Action{
		{Protocol: protocol()},
		{Metadata: metadata()},
		{Txn: &delta.Txn{AppID: "a", Version: 0, LastUpdated: &zero}},
		{Txn: &delta.Txn{AppID: "b", Version: 0}},
		{Domain: &delta.DomainMetadata{Domain: "d", Configuration: ""}},
		{Remove: &delta.Remove{Path: "r", DeletionTimestamp: &zero, ExtendedFileMetadata: &no, Size: &zero, PartitionValues: map[string]*string{"p": nil, "q": &empty}}},
		{Remove: &delta.Remove{Path: "s"}},
		{Add: &delta.Add{Path: "f", PartitionValues: map[string]*string{}, BaseRowID: &zero, Tags: map[string]*string{"t": &empty}}},
		{Add: &delta.Add{Path: "g", PartitionValues: map[string]*string{"p": nil}, DeletionVector: &delta.DeletionVector{StorageType: "u", PathOrInlineDV: "x", MaxRowIndex: &zero}}},
	}
	want[1].Metadata.CreatedTime = &zero
	content, err := delta.EncodeCheckpoint(want)
	must(t, err)
	got, err := delta.ParseCheckpoint(content)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
