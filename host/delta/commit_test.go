package delta_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
)

func TestCommitMakesATable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "table")
	l := delta.OpenLog(durable.OS(), dir, clock)
	s := create(t, l)
	if s.Version != 0 || s.Metadata.ID != "table-1" || s.Protocol.MinWriter != 2 || s.TimestampMS != 1000 || s.NumFiles() != 0 {
		t.Errorf("got %+v", s)
	}
	text, err := os.ReadFile(filepath.Join(dir, entryFile(0)))
	must(t, err)
	want := `{"commitInfo":{"timestamp":1000,"operation":"WRITE","operationParameters":{},"txnId":"create"}}
{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"table-1","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{}}}
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	left, err := os.ReadDir(filepath.Join(dir, "_delta_log"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// What a lost race leaves is what the winner wrote.
func TestLostRace(t *testing.T) {
	l, disk := memory(t)
	other := delta.OpenLog(disk.Process(), "/table", clock)
	s := create(t, l)
	_, err := other.Commit(ctx, nil, []delta.Action{info("again"), {Protocol: protocol()}, {Metadata: metadata()}})
	wantFault(t, err, delta.CodeExists, entryFile(0))
	_, err = other.Commit(ctx, s, []delta.Action{info("theirs"), add("theirs")})
	must(t, err)
	_, err = l.Commit(ctx, s, []delta.Action{info("ours"), add("ours")})
	if !errors.Is(err, delta.ErrExists) {
		t.Fatalf("got %v", err)
	}
	s = snapshot(t, l)
	if diff := cmp.Diff([]string{"theirs"}, paths(s)); diff != "" {
		t.Fatal(diff)
	}
	_, err = l.Commit(ctx, s, []delta.Action{info("ours"), add("ours")})
	must(t, err)
	if diff := cmp.Diff([]string{"ours", "theirs"}, paths(snapshot(t, other))); diff != "" {
		t.Error(diff)
	}
}

func TestCommitRefusesWhatIsNoEntry(t *testing.T) {
	l, _ := memory(t)
	vector := &delta.DeletionVector{StorageType: "u", PathOrInlineDV: "x", Cardinality: 1}
	masked := add("f")
	masked.Add.DeletionVector = vector
	s := create(t, l)
	for name, c := range map[string]struct {
		base    *delta.Snapshot
		actions []delta.Action
		says    string
	}{
		"nothing":               {s, nil, "no action"},
		"no protocol":           {nil, []delta.Action{info("x"), {Metadata: metadata()}}, "version 0"},
		"two metaDatas":         {s, []delta.Action{{Metadata: metadata()}, {Metadata: metadata()}}, "more than one"},
		"two txns":              {s, []delta.Action{txn("a", 1), txn("a", 2)}, "txn of a"},
		"a file twice":          {s, []delta.Action{add("a%20b"), add("a b")}, "add of a b"},
		"a file removed twice":  {s, []delta.Action{remove("f"), remove("f")}, "remove of f"},
		"no path":               {s, []delta.Action{add("")}, "path"},
		"a bad path":            {s, []delta.Action{add("%zz")}, "path"},
		"invalid text":          {s, []delta.Action{txn("\xff", 1)}, "UTF-8"},
		"an empty action":       {s, []delta.Action{{}}, "no action"},
		"two in one":            {s, []delta.Action{{Add: add("a").Add, Txn: txn("a", 1).Txn}}, "several"},
		"no app":                {s, []delta.Action{txn("", 1)}, "appId"},
		"features of version 3": {s, []delta.Action{{Protocol: &delta.Protocol{MinReader: 2, MinWriter: 7, ReaderFeatures: []string{"x"}, WriterFeatures: []string{}}}}, "readerFeatures"},
		"avro":                  {s, []delta.Action{{Metadata: &delta.Metadata{ID: "x", SchemaString: "x", Format: delta.Format{Provider: "avro"}}}}, "avro"},
	} {
		_, err := l.Commit(ctx, c.base, c.actions)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantFault(t, err, delta.CodeInvalid, c.says)
	}
	_, err := l.Commit(ctx, s, []delta.Action{remove("f"), masked, add("g")}) // a file anew with a vector: another file
	must(t, err)
}

// In-commit timestamps never go back, however the clock goes, and commitInfo is the first line.
func TestInCommitTimestamps(t *testing.T) {
	disk := faulty.New()
	now := epoch
	l := delta.OpenLog(disk.Process(), "/table", func() time.Time { return now })
	s := create(t, l, "delta.enableInCommitTimestamps", "true")
	want := []int64{epoch.UnixMilli()}
	for i, step := range []time.Duration{time.Second, -time.Hour, 0, 2 * time.Hour} {
		now = now.Add(step)
		_, err := l.Commit(ctx, s, []delta.Action{add(fmt.Sprint(i)), info(fmt.Sprint(i))})
		must(t, err)
		s = snapshot(t, l)
		want = append(want, max(now.UnixMilli(), want[i]+1))
	}
	for v, at := range want {
		for _, log := range []*delta.Log{l, delta.OpenLog(disk.Process(), "/table", clock)} {
			s, err := log.SnapshotAt(ctx, int64(v))
			must(t, err)
			e, err := log.Entry(ctx, int64(v))
			must(t, err)
			if s.TimestampMS != at || *e.CommitInfo().InCommitTimestamp != at {
				t.Errorf("version %d has time %d, want %d", v, s.TimestampMS, at)
			}
			if e.Actions[0].CommitInfo == nil {
				t.Errorf("version %d does not begin with commitInfo", v)
			}
		}
	}
	_, err := l.Commit(ctx, s, []delta.Action{add("x")})
	wantFault(t, err, delta.CodeInvalid, "commitInfo")
	must(t, l.WriteCheckpoint(ctx, s))
	for v := range s.Version {
		must(t, disk.Process().Remove("/table/"+entryFile(v)))
	}
	if got := snapshot(t, delta.OpenLog(disk.Process(), "/table", clock)); got.TimestampMS != s.TimestampMS {
		t.Errorf("time %d after a checkpoint, want %d", got.TimestampMS, s.TimestampMS)
	}
}

// wantBatches checks that a table has each batch of each application once, and every entry.
func wantBatches(t *testing.T, l *delta.Log, apps []string, n int64) {
	t.Helper()
	s := snapshot(t, l)
	if s.Version != int64(len(apps))*n || int64(s.NumFiles()) != s.Version {
		t.Errorf("version %d with %d files, want %d", s.Version, s.NumFiles(), int64(len(apps))*n)
	}
	for _, app := range apps {
		if got, ok := s.Txn(app); !ok || got.Version != n-1 {
			t.Errorf("%s has come to %d, %v", app, got.Version, ok)
		}
		for batch := range n {
			if _, ok := s.File(fmt.Sprintf("%s-%d", app, batch)); !ok {
				t.Errorf("batch %d of %s is lost", batch, app)
			}
		}
	}
}

// Writers in one process, some with a log of their own and some sharing one, and a checkpointer beside them.
func TestRacingCommitters(t *testing.T) {
	dir := t.TempDir()
	shared := delta.OpenLog(durable.OS(), dir, clock)
	create(t, shared)
	apps := []string{"a", "b", "c", "d", "e", "f"}
	var wg sync.WaitGroup
	for i, app := range apps {
		l := shared
		if i%2 == 0 {
			l = delta.OpenLog(durable.OS(), dir, clock)
		}
		wg.Go(func() {
			if err := commitAll(l, app, 20); err != nil {
				t.Errorf("%s: %v", app, err)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			s, err := shared.Snapshot(ctx)
			if err == nil {
				err = shared.WriteCheckpoint(ctx, s)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	wantBatches(t, shared, apps, 20)
	wantBatches(t, delta.OpenLog(durable.OS(), dir, clock), apps, 20)
}

// Two instances of one application: each batch is there once.
func TestRacingTwins(t *testing.T) {
	dir := t.TempDir()
	create(t, delta.OpenLog(durable.OS(), dir, clock))
	var wg sync.WaitGroup
	for range 3 {
		l := delta.OpenLog(durable.OS(), dir, clock)
		wg.Go(func() {
			for batch := range int64(20) {
				if err := commitBatch(l, "q", batch); err != nil && !strings.Contains(err.Error(), delta.Fenced.String()) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantBatches(t, delta.OpenLog(durable.OS(), dir, clock), []string{"q"}, 20)
}

func TestRacingProcesses(t *testing.T) {
	dir := t.TempDir()
	l := delta.OpenLog(durable.OS(), dir, clock)
	create(t, l)
	apps := []string{"p", "q", "r"}
	var children []*exec.Cmd
	for _, app := range apps {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childDir+"="+dir, "WASMILL_DELTA_APP="+app)
		c.Stderr = os.Stderr
		must(t, c.Start())
		children = append(children, c)
	}
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	wantBatches(t, l, apps, childCommits)
}

// The machine stops in every durable call of a writer's life, between and in the middle of them; afterwards the log is whole,
// what was committed is there, and the writer goes on to the same end.
func TestCrashAtEachCall(t *testing.T) {
	const batches = 2
	life := func(disk *faulty.FS) (sealed int64, err error) {
		l := delta.OpenLog(disk.Process(), "/data/table", clock)
		_, err = l.Snapshot(ctx)
		if errors.Is(err, delta.ErrNoTable) {
			_, err = l.Commit(ctx, nil, []delta.Action{info("create"), {Protocol: protocol()}, {Metadata: metadata()}})
			if err == nil {
				_, err = l.Snapshot(ctx)
			}
		}
		if err != nil {
			return -1, err
		}
		for batch := range int64(batches) {
			if err := commitBatch(l, "q", batch); err != nil {
				return batch, err
			}
			if batch%2 == 1 {
				var s *delta.Snapshot
				if s, err = l.Snapshot(ctx); err == nil {
					err = l.WriteCheckpoint(ctx, s)
				}
				if err != nil {
					return batch + 1, err
				}
			}
		}
		return batches, nil
	}
	count := faulty.New()
	_, err := life(count)
	must(t, err)
	crashes := 0
	for n := 1; n <= count.Ops(); n++ {
		for _, when := range []faulty.Moment{faulty.Before, faulty.Half, faulty.After} {
			for seed, keep := range []float64{0, 0.5, 1} {
				disk := faulty.New()
				disk.StopAt(n, when)
				sealed, err := life(disk)
				if err == nil {
					continue
				}
				crashes++
				disk = disk.Crash(rand.New(rand.NewPCG(uint64(n), uint64(seed))), keep)
				s, err := delta.OpenLog(disk.Process(), "/data/table", clock).Snapshot(ctx)
				if err != nil && (sealed >= 0 || !errors.Is(err, delta.ErrNoTable)) {
					t.Fatalf("operation %d: %v", n, err)
				}
				if sealed > 0 && s.Version < sealed {
					t.Fatalf("operation %d: batches up to %d were committed, and the log ends at %d", n, sealed, s.Version)
				}
				if _, err := life(disk); err != nil {
					t.Fatalf("operation %d: go on: %v", n, err)
				}
				l := delta.OpenLog(disk.Process(), "/data/table", clock)
				wantBatches(t, l, []string{"q"}, batches)
			}
		}
	}
	if crashes < 9*count.Ops() {
		t.Errorf("only %d crashes of %d operations", crashes, count.Ops())
	}
}

// A disk that is full or read only is a fault of its own, and the table goes on afterwards.
func TestDiskFaults(t *testing.T) {
	l, disk := memory(t)
	s := create(t, l)
	disk.SetSpace(10)
	_, err := l.Commit(ctx, s, []delta.Action{info("x"), add("f")})
	wantFault(t, err, delta.CodeNoSpace)
	wantFault(t, l.WriteCheckpoint(ctx, s), delta.CodeNoSpace)
	disk.SetSpace(-1)
	_, err = l.Commit(ctx, s, []delta.Action{info("x"), add("f")})
	must(t, err)
	if os.Geteuid() != 0 {
		_, dir := golden(t, "f-delta-rs")
		must(t, os.Chmod(filepath.Join(dir, "_delta_log"), 0o500))
		real := delta.OpenLog(durable.OS(), dir, clock)
		_, err = real.Commit(ctx, snapshot(t, real), []delta.Action{info("x"), add("f")})
		wantFault(t, err, delta.CodePermission)
	}
	s = snapshot(t, l)
	if !slices.Equal(paths(s), []string{"f"}) {
		t.Errorf("files %v", paths(s))
	}
}
