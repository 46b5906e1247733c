package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
)

// told is what a process was told to be durable before it died.
type told struct {
	id             string
	plan, decision BatchID
}

var crashRevision = []byte(`{"transforms":[{"module":"` + shaOf([]byte("\x00asm")) + `"}]}`)

func crashDecision(id BatchID) Decision {
	d := decision(id)
	d.Revision = shaOf(crashRevision)
	return d
}

// work opens a checkpoint and takes it to batch last, as the engine does. It returns at the first error.
func work(ctx context.Context, files durable.Files, opts Options, last BatchID, done *told) error {
	l, err := Open(ctx, files, "d/c", opts)
	if err != nil {
		return err
	}
	done.id = l.QueryID()
	p, d, err := l.Tail(ctx)
	if err != nil {
		return err
	}
	next := BatchID(0)
	if p != nil { // what Tail returns is durable
		next, done.plan, done.decision = p.Batch+1, p.Batch, p.Batch-1
	}
	if d != nil {
		done.decision = d.Batch
	}
	if err := errors.Join(l.PutModule(ctx, shaOf([]byte("\x00asm")), []byte("\x00asm")), l.PutRevision(ctx, shaOf(crashRevision), crashRevision)); err != nil {
		return err
	}
	if _, err := l.SourceDir("flights"); err != nil {
		return err
	}
	if p != nil && d == nil {
		next = p.Batch
	}
	for id := next; id <= last; id++ {
		if p == nil || p.Batch != id {
			if err := l.WritePlan(ctx, plan(id)); err != nil {
				return err
			}
		}
		done.plan = id
		if err := l.WriteDecision(ctx, crashDecision(id)); err != nil {
			return err
		}
		done.decision = id
		if err := l.NotePublished(ctx, map[string]PublishedMark{"lake": {Batch: id}}); err != nil {
			return err
		}
	}
	if err := l.Retain(ctx, last, Policy{Keep: 2, Max: 2}); err != nil {
		return err
	}
	return l.Close()
}

// check opens what a crash has left and compares it with what was told.
func check(t *testing.T, f *faulty.FS, opts Options, done told) {
	t.Helper()
	files := f.Process()
	l, err := Open(t.Context(), files, "d/c", opts)
	must(t, err)
	if done.id != "" && l.QueryID() != done.id {
		t.Fatalf("query id %s, and %s was told", l.QueryID(), done.id)
	}
	p, d, err := l.Tail(t.Context())
	must(t, err)
	last, decided := NoBatch, NoBatch
	if p != nil {
		last, decided = p.Batch, p.Batch-1
		if diff := cmp.Diff(ptr(plan(last)), p); diff != "" {
			t.Fatalf("plan: %s", diff)
		}
	}
	if d != nil {
		decided = d.Batch
		if diff := cmp.Diff(ptr(crashDecision(decided)), d); diff != "" {
			t.Fatalf("decision: %s", diff)
		}
	}
	if last < done.plan || decided < done.decision {
		t.Fatalf("plan %d and decision %d are left, %d and %d were told", last, decided, done.plan, done.decision)
	}
	if decided >= 0 {
		if _, err := l.Revision(t.Context(), shaOf(crashRevision)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Module(t.Context(), shaOf([]byte("\x00asm"))); err != nil {
			t.Fatal(err)
		}
	}
	must(t, l.Close())
	r, err := Verify(t.Context(), files, "d/c")
	must(t, err)
	if len(r.Findings) > 0 {
		t.Fatalf("findings: %+v", r.Findings)
	}
}

func crashOptions() Options {
	opts := options()
	opts.Unique = counting()
	return opts
}

// The power is cut in every operation of three batches, before, in and after it, with little, some or all of the cache
// written back; then once more somewhere in the recovery. What was told is there, ids have no gaps, nothing torn passes.
func TestPowerCutInEveryOperation(t *testing.T) {
	keeps := []float64{0, 0.3, 0.7, 1}
	crashes := 0
	for n := 1; ; n++ {
		complete := false
		for when := faulty.Before; when <= faulty.After; when++ {
			for i, keep := range keeps {
				r := rand.New(rand.NewPCG(uint64(n), uint64(int(when)*len(keeps)+i)))
				f, opts := faulty.New(), crashOptions()
				f.StopAt(n, when)
				done := told{plan: NoBatch, decision: NoBatch}
				err := work(t.Context(), f.Process(), opts, 2, &done)
				complete = err == nil
				left := f.Crash(r, keep)
				crashes++

				second := left.Crash(r, 1)
				second.StopAt(1+r.IntN(60), when)
				_ = work(t.Context(), second.Process(), opts, 2, &done)
				check(t, second.Crash(r, keep), opts, done)
				if t.Failed() {
					t.Fatalf("stopped at operation %d (%d), keep %g: %v", n, when, keep, err)
				}
			}
		}
		if complete {
			break
		}
	}
	t.Logf("%d crashes", 2*crashes)
	if crashes < 500 {
		t.Errorf("only %d crashes", crashes)
	}
}

// Every operation fails, once or for ever, in each way. A failed sync ends the process. What was told stays true, and
// when the disk works again the job goes on.
func TestEveryOperationFails(t *testing.T) {
	for _, forever := range []bool{false, true} {
		for n := 1; ; n++ {
			hit := false
			for when := faulty.Before; when <= faulty.After; when++ {
				for _, errno := range []error{syscall.EIO, syscall.ENOSPC} {
					name := fmt.Sprintf("operation %d (%d), %v, for ever %v", n, when, errno, forever)
					f, opts := faulty.New(), crashOptions()
					files := f.Process()
					f.FailNth(n, func(faulty.Op) bool { return true }, faulty.Fault{Err: errno, When: when}, forever)
					done := told{plan: NoBatch, decision: NoBatch}
					err := work(t.Context(), files, opts, 2, &done)
					if err == nil {
						continue
					}
					hit = true
					if coded := (*Error)(nil); !errors.As(err, &coded) {
						t.Fatalf("%s: %v has no code", name, err)
					}
					f.SetFaults(nil)
					files.Kill()
					must(t, work(t.Context(), f.Process(), opts, 2, &done))
					check(t, f.Crash(nil, 0), opts, done)
					if t.Failed() {
						t.Fatal(name)
					}
				}
			}
			if !hit {
				break
			}
		}
	}
}

// Retention in the middle of a power cut never leaves what looks like a gap.
func TestPowerCutInRetention(t *testing.T) {
	base := faulty.New()
	opts := crashOptions()
	files := base.Process()
	l, err := Open(t.Context(), files, "d/c", opts)
	must(t, err)
	must(t, l.PutModule(t.Context(), shaOf([]byte("\x00asm")), []byte("\x00asm")))
	must(t, l.PutRevision(t.Context(), shaOf(crashRevision), crashRevision))
	for id := range BatchID(30) {
		must(t, l.WritePlan(t.Context(), plan(id)))
		must(t, l.WriteDecision(t.Context(), crashDecision(id)))
	}
	must(t, l.Close())
	done := told{id: testID, plan: 29, decision: 29}
	for n := 1; ; n++ {
		complete := false
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(uint64(n), seed))
			f := base.Clone()
			l, err := Open(t.Context(), f.Process(), "d/c", opts)
			must(t, err)
			f.StopAt(n, faulty.Moment(seed%3))
			complete = l.Retain(t.Context(), 29, Policy{Keep: 5, Max: 5}) == nil
			check(t, f.Crash(r, []float64{0, 0.2, 0.8}[seed/2]), opts, done)
			if t.Failed() {
				t.Fatalf("operation %d, seed %d", n, seed)
			}
		}
		if complete {
			return
		}
	}
}

// Random faults over many batches: whatever fails, each restart goes on from what was told.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 9))
		f := faulty.New()
		done := told{plan: NoBatch, decision: NoBatch}
		opts := crashOptions()
		for restart := 0; done.decision < 40 && restart < 3000; restart++ {
			files := f.Process()
			f.FailAtRandom(r, 0.02)
			_ = work(t.Context(), files, opts, 40, &done)
			f.SetFaults(nil)
			files.Kill()
			if r.IntN(3) == 0 {
				f = f.Crash(r, r.Float64())
			}
		}
		if done.decision < 40 {
			t.Fatalf("seed %d: came to batch %d only", seed, done.decision)
		}
		check(t, f.Crash(r, 0.5), opts, done)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
