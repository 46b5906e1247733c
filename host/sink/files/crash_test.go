package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/files"
)

// life plays the engine over a disk that stops: the checkpoint is kept in memory and is always durable.
type life struct {
	disk      *faulty.FS
	target    *files.Target
	cfg       files.Config
	batches   []checkpoint.BatchID // those in which the sink has records, and empty ones
	next      int                  // index of the first batch that is not sealed
	decided   map[checkpoint.BatchID]sink.Staged
	clock     clock
	attempts  int
	published int // batches found published after a crash
	completed int // batches whose staged files were published after a crash
	rerun     int
}

// crashBatches hold gaps, compactions, empty batches and a late start.
var crashBatches = []checkpoint.BatchID{3, 4, 8, 9, 10, 19, 31, 32, 39}

func newLife() *life {
	l := &life{disk: faulty.New(), batches: crashBatches, decided: map[checkpoint.BatchID]sink.Staged{}}
	l.clock.t = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	l.cfg = files.Config{
		Sink: "lake", Dir: "/data/out", Format: files.JSONL, Schema: nil, MaxPartRows: 2, Grace: time.Minute,
		Clock: func() time.Time { l.clock.t = l.clock.t.Add(20 * time.Second); return l.clock.t },
	}
	return l
}

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

func (l *life) boot() (sink.Published, error) {
	l.disk.SetClock(func() time.Time { return l.clock.t })
	cfg := l.cfg
	cfg.Files = l.disk.Process()
	var err error
	if l.target, err = files.New(cfg); err != nil {
		return sink.Published{}, err
	}
	return l.target.Open(context.Background(), sink.Owner{Query: query, Job: "test", Next: l.batches[min(l.next, len(l.batches)-1)]})
}

func (l *life) stage(n checkpoint.BatchID) (sink.Staged, error) {
	l.attempts++
	lane, err := l.target.NewLane("lake")
	if err != nil {
		return nil, err
	}
	for _, v := range values(n) {
		if err := lane.Append(&abi.Record{Value: []byte(v)}); err != nil {
			return nil, err
		}
	}
	return l.target.Stage(context.Background(), sink.Output{
		Batch: n, Digest: digestOf(n), Attempt: fmt.Sprintf("%08x", l.attempts), Sinks: []sink.SinkOutput{{Name: "lake", Lanes: []sink.Lane{lane}}},
	})
}

func (l *life) publish(n checkpoint.BatchID) error {
	return l.target.Publish(context.Background(), &checkpoint.Decision{Batch: n, Digest: digestOf(n)}, l.decided[n])
}

// run recovers and goes on to the last batch.
func (l *life) run() error {
	p, err := l.boot()
	if err != nil {
		return err
	}
	if err := l.recover(p); err != nil {
		return err
	}
	for l.next < len(l.batches) {
		n := l.batches[l.next]
		s, err := l.stage(n)
		if err != nil {
			return err
		}
		l.decided[n] = s
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
	n := l.batches[l.next]
	l.next++
	return l.target.Sealed(context.Background(), n)
}

// recover is the ladder as far as a files target can see it.
func (l *life) recover(p sink.Published) error {
	before := sink.Published{Batch: checkpoint.NoBatch}
	if l.next > 0 {
		before = sink.Published{Batch: l.batches[l.next-1], Digest: digestOf(l.batches[l.next-1])}
	}
	if l.next == len(l.batches) {
		return expect(p, before)
	}
	n := l.batches[l.next]
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
	if errors.Is(err, sink.ErrLost) {
		l.rerun++
		s, err := l.stage(n)
		if err != nil {
			return err
		}
		l.decided[n] = s
		if err := l.publish(n); err != nil {
			return err
		}
		return l.seal()
	}
	if err != nil {
		return err
	}
	l.completed++
	return l.seal()
}

func expect(got, want sink.Published) error {
	if got != want {
		return fmt.Errorf("the target says that %+v is published, the checkpoint %+v", got, want)
	}
	return nil
}

// check reads the directory as Spark does.
func (l *life) check(t *testing.T, when string) {
	t.Helper()
	got := slices.Sorted(slices.Values(visible(t, l.disk.Process(), "/data/out")))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want(l.batches[:l.next]))), got); diff != "" {
		t.Fatalf("%s, a reader sees (-want +got):\n%s", when, diff)
	}
}

// TestPowerCuts stops the machine in every operation of a whole life, loses any part of what was not durable, and goes on.
func TestPowerCuts(t *testing.T) {
	whole := newLife()
	if err := whole.run(); err != nil {
		t.Fatal(err)
	}
	whole.check(t, "without a fault")
	ops := whole.disk.Ops()
	var cuts, published, completed, rerun int
	for op := 1; op <= ops; op++ {
		for i, when := range []faulty.Moment{faulty.Before, faulty.Half, faulty.After} {
			keep := []float64{0, 0.5, 1}[(op+i)%3]
			name := fmt.Sprintf("stopped at operation %d of %d, moment %d, keep %v", op, ops, when, keep)
			r := rand.New(rand.NewPCG(uint64(op), uint64(when)))
			l := newLife()
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
	if published == 0 || completed == 0 || rerun == 0 {
		t.Error("a way of recovery was never taken")
	}
}

// TestEveryOperationFails lets each operation fail once, as a full or broken disk does; a new process then goes on, and no
// file is left that the manifest does not list, once the grace time is over.
func TestEveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		l := newLife()
		failure := errors.New("input/output error")
		l.disk.FailNth(n, func(o faulty.Op) bool { return o.Kind != "read" && o.Kind != "close" }, faulty.Fault{Err: failure, When: faulty.Half}, false)
		err := l.run()
		if err == nil && n > 100 {
			return
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
		l.check(t, fmt.Sprintf("operation %d", n))
		l.clock.t = l.clock.t.Add(time.Hour)
		if err := l.target.Sealed(context.Background(), 40); err != nil {
			t.Fatal(err)
		}
		l.checkNoOrphans(t, n)
	}
}

func (l *life) checkNoOrphans(t *testing.T, n int) {
	t.Helper()
	listed := 0
	for range sparkEntries(t, l.disk.Process(), "/data/out") {
		listed++
	}
	infos, err := l.disk.Process().List("/data/out")
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, i := range infos {
		if strings.HasPrefix(i.Name, "part-") {
			parts++
		}
	}
	if parts != listed {
		t.Fatalf("operation %d: %d data files, %d listed", n, parts, listed)
	}
	staged, err := l.disk.Process().List("/data/out/_wasmill")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range staged {
		if i.Dir {
			t.Fatalf("operation %d: %s is left", n, i.Name)
		}
	}
}
