package delta_test

import (
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

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// life plays the engine over a disk that stops: the checkpoint is kept in memory and is always durable.
type life struct {
	disk      *faulty.FS
	target    *target.Target
	cfg       target.Config
	records   func(checkpoint.BatchID) []record
	want      func([]checkpoint.BatchID) []string
	next      int // index of the first batch that is not sealed
	decided   map[checkpoint.BatchID]sink.Staged
	clock     clock
	attempts  int
	published int // batches found published after a crash
	completed int // batches whose staged files were published after a crash
	rerun     int
}

// crashBatches hold gaps, empty batches and a late start.
var crashBatches = []checkpoint.BatchID{3, 4, 9, 19}

func newLife(tb testing.TB, upsert bool) *life {
	l := &life{disk: faulty.New(), decided: map[checkpoint.BatchID]sink.Staged{}, records: appended, want: wantAppended}
	l.clock.t = start
	l.cfg = target.Config{
		Sink: "lake", Dir: "/data/out", MaxPartRows: 2, Grace: time.Minute, CheckpointInterval: 2,
		Schema: schemaOf(tb, "batch", "int64", "row", "int64", "place", "string"), PartitionBy: []string{"place"},
		Clock: func() time.Time { l.clock.t = l.clock.t.Add(20 * time.Second); return l.clock.t },
	}
	if upsert {
		l.cfg.Key, l.records, l.want = []string{"row"}, upserted, wantUpserted
	}
	return l
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

func (l *life) boot() (sink.Published, error) {
	l.disk.SetClock(func() time.Time { return l.clock.t })
	cfg := l.cfg
	cfg.Files = l.disk.Process()
	var err error
	if l.target, err = target.New(cfg); err != nil {
		return sink.Published{}, err
	}
	return l.target.Open(context.Background(), owner(crashBatches[min(l.next, len(crashBatches)-1)]))
}

func (l *life) stage(n checkpoint.BatchID) (sink.Staged, error) {
	l.attempts++
	return stageRecords(l.target, n, fmt.Sprintf("%08x", l.attempts), l.records(n))
}

func (l *life) publish(n checkpoint.BatchID) error { return publishStaged(l.target, n, l.decided[n]) }

// run recovers and goes on to the last batch.
func (l *life) run() error {
	p, err := l.boot()
	if err != nil {
		return err
	}
	if err := l.recover(p); err != nil {
		return err
	}
	for l.next < len(crashBatches) {
		n := crashBatches[l.next]
		if l.decided[n], err = l.stage(n); err != nil {
			delete(l.decided, n)
			return err
		}
		if err := l.publish(n); err != nil {
			return err
		}
		if err := l.seal(); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) seal() error {
	n := crashBatches[l.next]
	l.next++
	return l.target.Sealed(context.Background(), n)
}

// recover is the ladder as far as a durable target can see it.
func (l *life) recover(p sink.Published) error {
	before := sink.Published{Batch: checkpoint.NoBatch}
	if l.next > 0 {
		before = sink.Published{Batch: crashBatches[l.next-1], Digest: digestOf(crashBatches[l.next-1])}
	}
	if l.next == len(crashBatches) {
		return expect(p, before)
	}
	n := crashBatches[l.next]
	if _, decided := l.decided[n]; !decided {
		if err := expect(p, before); err != nil {
			return err
		}
		return l.target.Abort(context.Background(), n)
	}
	if p.Batch == n {
		l.published++
		if err := expect(p, sink.Published{Batch: n, Digest: digestOf(n)}); err != nil {
			return err
		}
		return l.seal()
	}
	if err := expect(p, before); err != nil {
		return err
	}
	err := l.publish(n)
	switch {
	case errors.Is(err, sink.ErrLost):
		l.rerun++
		if l.decided[n], err = l.stage(n); err != nil {
			return err
		}
		err = l.publish(n)
	case err == nil:
		l.completed++
	}
	if err != nil {
		return err
	}
	return l.seal()
}

func expect(got, want sink.Published) error {
	if got != want {
		return fmt.Errorf("the target says that %+v is published, the checkpoint %+v", got, want)
	}
	return nil
}

func (l *life) check(t *testing.T, when string) {
	t.Helper()
	got := slices.Sorted(slices.Values(rowsOf(t, l.disk.Process(), "/data/out")))
	if diff := cmp.Diff(slices.Sorted(slices.Values(l.want(crashBatches[:l.next]))), got); diff != "" {
		t.Fatalf("%s, a reader sees (-want +got):\n%s", when, diff)
	}
}

// TestPowerCuts stops the machine in every operation of a whole life, loses any part of what was not durable, and goes on.
func TestPowerCuts(t *testing.T) {
	for name, upsert := range map[string]bool{"append": false, "upsert": true} {
		t.Run(name, func(t *testing.T) { powerCuts(t, upsert) })
	}
}

func powerCuts(t *testing.T, upsert bool) {
	whole := newLife(t, upsert)
	if err := whole.run(); err != nil {
		t.Fatal(err)
	}
	whole.check(t, "without a fault")
	ops := whole.disk.Ops()
	var cuts, published, completed, rerun int
	moments := []faulty.Moment{faulty.Before, faulty.Half, faulty.After}
	for op := 1; op <= ops; op++ {
		for i, when := range moments {
			if testing.Short() && i != op%len(moments) {
				continue
			}
			keep := []float64{0, 0.5, 1}[(op+2*i)%3]
			name := fmt.Sprintf("stopped at operation %d of %d, moment %d, keep %v", op, ops, when, keep)
			r := rand.New(rand.NewPCG(uint64(op), uint64(when)))
			l := newLife(t, upsert)
			for again := 0; ; again++ {
				switch again {
				case 0:
					l.disk.StopAt(op, when)
				case 1: // somewhere in the recovery
					l.disk.StopAt(1+r.IntN(60), when)
				default:
					l.disk.SetFaults(nil)
				}
				err := l.run()
				if err == nil {
					break
				}
				if !errors.Is(err, faulty.ErrStopped) {
					t.Fatalf("%s: start %d: %v", name, again, err)
				}
				l.disk = l.disk.Crash(r, keep)
				cuts++
			}
			l.disk.SetFaults(nil)
			l.check(t, name)
			published, completed, rerun = published+l.published, completed+l.completed, rerun+l.rerun
		}
	}
	t.Logf("%d power cuts over %d operations: %d batches found published, %d published from the stage, %d run again", cuts, ops, published, completed, rerun)
	if published == 0 || completed == 0 {
		t.Error("a way of recovery was never taken")
	}
}

// TestEveryOperationFails lets each operation fail once, as a full or broken disk does; a new process then goes on, and no
// data file is left that the log does not name, once the grace time is over.
func TestEveryOperationFails(t *testing.T) {
	for name, upsert := range map[string]bool{"append": false, "upsert": true} {
		t.Run(name, func(t *testing.T) {
			for n := 1; everyOperation(t, upsert, n); n++ {
			}
		})
	}
}

func everyOperation(t *testing.T, upsert bool, n int) (more bool) {
	l := newLife(t, upsert)
	failure := errors.New("input/output error")
	l.disk.FailNth(n, func(o faulty.Op) bool { return o.Kind != "read" && o.Kind != "close" }, faulty.Fault{Err: failure, When: faulty.Half}, false)
	err := l.run()
	if err == nil && n > 250 {
		return false
	}
	for tries := 0; err != nil; tries++ {
		if !errors.Is(err, failure) || tries > 2 {
			t.Fatalf("operation %d: %v", n, err)
		}
		if cerr := l.target.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		err = l.run()
	}
	l.disk.SetFaults(nil)
	l.check(t, fmt.Sprintf("operation %d", n))
	l.clock.t = l.clock.t.Add(time.Hour)
	if err := l.target.Sealed(context.Background(), 40); err != nil {
		t.Fatal(err)
	}
	l.checkNoOrphans(t, n)
	return true
}

func (l *life) checkNoOrphans(t *testing.T, n int) {
	t.Helper()
	named := map[string]bool{}
	s := snapshot(t, l.disk.Process(), "/data/out")
	for a := range s.Files() {
		name, err := a.File()
		if err != nil {
			t.Fatal(err)
		}
		named[name] = true
	}
	for r := range s.Tombstones() {
		name, err := delta.FilePath(r.Path)
		if err != nil {
			t.Fatal(err)
		}
		named[name] = true
	}
	for _, name := range dataFiles(t, l.disk.Process(), "/data/out", "") {
		if !named[name] {
			t.Fatalf("operation %d: %s is left, and the log does not name it", n, name)
		}
	}
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
