package sinktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/sink"
)

// Disk is a target that keeps what it stages in files, for the suites that stop the machine and break its operations.
type Disk struct {
	// Sink is the name of the target's sink.
	Sink string
	// Batches are those that run, in order, with gaps.
	Batches []checkpoint.BatchID
	// New makes the target as a new process does. Its clock moves with each call.
	New func(files durable.Files, clock func() time.Time) (sink.Target, error)
	// Records are what a batch brings to the sink: nothing, for some.
	Records func(checkpoint.BatchID) []*abi.Record
	// Want is what a reader sees when these batches are published, in any order.
	Want func([]checkpoint.BatchID) []string
	// Visible is what a reader sees, in any order.
	Visible func(tb testing.TB, files durable.Files) []string
	// Orphans are files of the target that no reader would ever look for.
	Orphans func(tb testing.TB, files durable.Files) []string
	// Reruns: some crash loses what was staged, so that a batch runs again. A target that has it durable before Stage returns never needs that.
	Reruns bool
}

// life plays the engine over a disk that stops: the checkpoint is kept in memory and is always durable.
type life struct {
	Disk
	disk      *faulty.FS
	target    sink.Target
	next      int // index of the first batch that is not sealed
	decided   map[checkpoint.BatchID]sink.Staged
	now       time.Time
	attempts  int
	published int // batches found published after a crash
	completed int // batches whose staged files were published after a crash
	rerun     int
}

func newLife(d Disk) *life {
	return &life{
		Disk: d, disk: faulty.New(), decided: map[checkpoint.BatchID]sink.Staged{},
		now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC),
	}
}

func (l *life) boot() (sink.Published, error) {
	l.disk.SetClock(func() time.Time { return l.now })
	var err error
	if l.target, err = l.New(l.disk.Process(), l.tick); err != nil {
		return sink.Published{}, err
	}
	next := l.Batches[min(l.next, len(l.Batches)-1)]
	return l.target.Open(context.Background(), sink.Owner{Query: query, Job: "test", Next: next})
}

func (l *life) tick() time.Time {
	l.now = l.now.Add(20 * time.Second)
	return l.now
}

func (l *life) stage(n checkpoint.BatchID) (sink.Staged, error) {
	l.attempts++
	out := sink.SinkOutput{Name: l.Sink}
	records := l.Records(n)
	half := len(records) / 2
	for _, some := range [][]*abi.Record{records[:half], records[half:]} {
		lane, err := l.target.NewLane(l.Sink)
		if err != nil {
			return nil, err
		}
		for _, r := range some {
			if err := lane.Append(r); err != nil {
				return nil, err
			}
		}
		if lane.Rows() > 0 {
			out.Lanes = append(out.Lanes, lane)
		}
	}
	return l.target.Stage(context.Background(), sink.Output{
		Batch: n, Digest: digest(int(n)), Attempt: fmt.Sprintf("%08x", l.attempts), Sinks: []sink.SinkOutput{out},
	})
}

func (l *life) publish(n checkpoint.BatchID) error {
	return l.target.Publish(context.Background(), &checkpoint.Decision{Batch: n, Digest: digest(int(n))}, l.decided[n])
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
	for l.next < len(l.Batches) {
		if err := l.decide(l.Batches[l.next]); err != nil {
			return err
		}
		if err := l.publish(l.Batches[l.next]); err != nil {
			return err
		}
		if err := l.seal(); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) decide(n checkpoint.BatchID) error {
	staged, err := l.stage(n)
	if err == nil {
		l.decided[n] = staged
	}
	return err
}

func (l *life) seal() error {
	n := l.Batches[l.next]
	l.next++
	return l.target.Sealed(context.Background(), n)
}

// recover is the ladder as far as a durable target can see it.
func (l *life) recover(p sink.Published) error {
	before := sink.Published{Batch: checkpoint.NoBatch}
	if l.next > 0 {
		last := l.Batches[l.next-1]
		before = sink.Published{Batch: last, Digest: digest(int(last))}
	}
	if l.next == len(l.Batches) {
		return expect(p, before)
	}
	n := l.Batches[l.next]
	if _, decided := l.decided[n]; !decided {
		if err := expect(p, before); err != nil {
			return err
		}
		return l.target.Abort(context.Background(), n)
	}
	if p.Batch == n {
		l.published++
		if err := expect(p, sink.Published{Batch: n, Digest: digest(int(n))}); err != nil {
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
		if err = l.decide(n); err == nil {
			err = l.publish(n)
		}
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
	l.disk.SetFaults(nil)
	got := slices.Sorted(slices.Values(l.Visible(t, l.disk.Process())))
	if diff := cmp.Diff(slices.Sorted(slices.Values(l.Want(l.Batches[:l.next]))), got); diff != "" {
		t.Fatalf("%s, a reader sees (-want +got):\n%s", when, diff)
	}
}

// PowerCuts stops the machine in every operation of a whole life, loses any part of what was not durable, and goes on.
func PowerCuts(t *testing.T, d Disk) {
	whole := newLife(d)
	if err := whole.run(); err != nil {
		t.Fatal(err)
	}
	whole.check(t, "without a fault")
	var sum life
	cuts, ops := 0, whole.disk.Ops()
	moments := []faulty.Moment{faulty.Before, faulty.Half, faulty.After}
	for op := 1; op <= ops; op++ {
		for i, when := range moments {
			if testing.Short() && i != op%len(moments) {
				continue
			}
			l := newLife(d)
			cuts += l.cut(t, op, when, []float64{0, 0.5, 1}[(op+2*i)%3])
			sum.published, sum.completed, sum.rerun = sum.published+l.published, sum.completed+l.completed, sum.rerun+l.rerun
		}
	}
	t.Logf("%d power cuts over %d operations: %d batches found published, %d published from the stage, %d run again",
		cuts, ops, sum.published, sum.completed, sum.rerun)
	if sum.published == 0 || sum.completed == 0 || d.Reruns && sum.rerun == 0 {
		t.Error("a way of recovery was never taken")
	}
}

// cut lives on through a power cut at an operation and one more in what follows it; keep is the share of what was not durable that stays. It
// returns how many there were.
func (l *life) cut(t *testing.T, op int, when faulty.Moment, keep float64) (cuts int) {
	t.Helper()
	name := fmt.Sprintf("stopped at operation %d, moment %d, keep %v", op, when, keep)
	r := rand.New(rand.NewPCG(uint64(op), uint64(when)))
	l.disk.StopAt(op, when)
	for err := l.run(); err != nil; err = l.run() {
		if !errors.Is(err, faulty.ErrStopped) {
			t.Fatalf("%s: start %d: %v", name, cuts, err)
		}
		l.disk = l.disk.Crash(r, keep)
		cuts++
		if cuts == 1 { // somewhere in the recovery
			l.disk.StopAt(1+r.IntN(60), when)
		}
	}
	l.check(t, name)
	return cuts
}

// EveryOperationFails lets each operation fail once, as a full or broken disk does; a new process then goes on, and no orphan is left once the
// grace time is over. A life must have at least so many operations that write.
func EveryOperationFails(t *testing.T, d Disk, least int) {
	for n := 1; ; n++ {
		l := newLife(d)
		failure := errors.New("input/output error")
		l.disk.FailNth(n, func(o faulty.Op) bool { return o.Kind != "read" && o.Kind != "close" }, faulty.Fault{Err: failure, When: faulty.Half}, false)
		err := l.run()
		if err == nil && n > least {
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
		l.now = l.now.Add(time.Hour)
		if err := l.target.Sealed(context.Background(), l.Batches[len(l.Batches)-1]+1); err != nil {
			t.Fatal(err)
		}
		if left := l.Orphans(t, l.disk.Process()); len(left) > 0 {
			t.Fatalf("operation %d: %q are left, and no reader looks for them", n, left)
		}
	}
}
