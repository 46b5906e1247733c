// Package sinktest is the suite that every target passes.
//
// It drives a target through the seam alone, as the engine does, with the decision as the only memory between processes,
// and knows nothing of any driver. It must not ask for more than host/sink promises.
package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/sink"
)

// Place is one place that a target publishes to.
type Place struct {
	// Sink is the name of the target's sink.
	Sink string
	// Open returns a target that knows nothing but what is durable, as in a new process after the one before has ended.
	// The suite closes it.
	Open func(t *testing.T) sink.Target
	// Usurp does the same while the process before goes on and does not know. nil: this cannot be arranged.
	Usurp func(t *testing.T) sink.Target
	// Value returns a value that fits the sink, another one for each i.
	Value func(i int) string
	// Misfit is a value that does not fit.
	Misfit string
	// TakesEmpty: an empty value and none fit.
	TakesEmpty bool
	// Shared: several queries may publish to the place, each with marks of its own.
	Shared bool
	// Alias opens a target of other names that publishes to this place. nil: a target's names say where it publishes.
	Alias func(t *testing.T) sink.Target
	// Elsewhere opens a target of the same name that publishes to another place beside this one. nil: there is none.
	Elsewhere func(t *testing.T) sink.Target
	// Visible returns what a reader of the place sees, as the values that went in, in any order.
	Visible func(t *testing.T) []string
}

// Factory makes a fresh place for one test.
type Factory func(t *testing.T) Place

const (
	query      = "6f1e9f0a-0000-4000-8000-000000000001"
	otherQuery = "6f1e9f0b-0000-4000-8000-000000000002"
)

// Run runs the suite.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	defer goleak.VerifyNone(t)
	tests := []struct {
		name  string
		exact bool // asks for what only an exactly-once target promises
		run   func(*testing.T, *driver)
	}{
		{"lanes", false, lanes},
		{"publish", false, publishes},
		{"abort", false, aborts},
		{"lost", false, lost},
		{"nothing to publish", true, nothing},
		{"publish twice", true, twice},
		{"resume", true, resume},
		{"gaps", true, gaps},
		{"other query", true, others},
		{"other digest", true, otherDigest},
		{"old batch", true, oldBatch},
		{"zombie", true, zombie},
		{"inspect", true, inspect},
		{"heir", true, heir},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &driver{t: t, place: factory(t)}
			d.reopen()
			defer func() { d.must(d.target.Close()) }()
			if test.exact && d.target.Traits().Guarantee != sink.ExactlyOnce {
				t.Skip("the target is not exactly once")
			}
			test.run(t, d)
		})
	}
}

// driver plays the engine.
type driver struct {
	t      *testing.T
	place  Place
	target sink.Target
	next   checkpoint.BatchID // the first that is not sealed
	values int
	want   []string
}

func (d *driver) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// reopen ends the process and starts another; it returns what the target says is published.
func (d *driver) reopen() sink.Published {
	d.t.Helper()
	if d.target != nil {
		d.must(d.target.Close())
	}
	d.target = d.place.Open(d.t)
	return d.open(query)
}

func (d *driver) open(query string) sink.Published {
	d.t.Helper()
	p, err := d.target.Open(context.Background(), sink.Owner{Query: query, Job: "test", Next: d.next})
	d.must(err)
	return p
}

// batch is a batch on its way.
type batch struct {
	id     checkpoint.BatchID
	digest string
	values []string
	staged sink.Staged
}

func digest(n int) string { return fmt.Sprintf("%032x", n+1) }

// stage stages a batch of count new values in three lanes, of which the middle one is empty.
func (d *driver) stage(id checkpoint.BatchID, attempt string, count int) batch {
	d.t.Helper()
	b := batch{id: id, digest: digest(int(id))}
	for range count {
		b.values = append(b.values, d.place.Value(d.values))
		d.values++
	}
	d.restage(&b, attempt)
	return b
}

func (d *driver) restage(b *batch, attempt string) {
	d.t.Helper()
	out := sink.Output{Batch: b.id, TimeMS: 1_700_000_000_000, Digest: b.digest, Attempt: attempt}
	so := sink.SinkOutput{Name: d.place.Sink}
	half := len(b.values) / 2
	for _, values := range [][]string{b.values[:half], b.values[half:]} {
		l := d.lane(values)
		if l.Rows() > 0 {
			so.Lanes = append(so.Lanes, l)
		}
	}
	out.Sinks = append(out.Sinks, so)
	var err error
	b.staged, err = d.target.Stage(context.Background(), out)
	d.must(err)
}

func (d *driver) lane(values []string) sink.Lane {
	d.t.Helper()
	l, err := d.target.NewLane(d.place.Sink)
	d.must(err)
	for _, v := range values {
		d.must(l.Append(&abi.Record{Value: []byte(v)}))
	}
	return l
}

func (d *driver) publish(b batch) error {
	return d.target.Publish(context.Background(), &checkpoint.Decision{Batch: b.id, Digest: b.digest}, b.staged)
}

// isLost asserts that a batch whose process has ended cannot be published.
func (d *driver) isLost(b batch) {
	d.t.Helper()
	if err := d.publish(b); !errors.Is(err, sink.ErrLost) {
		d.t.Fatalf("publish of what died with its process: %v, want ErrLost", err)
	}
	d.check("after a lost publish")
}

// finish publishes and seals a batch, which then counts as wanted.
func (d *driver) finish(b batch) {
	d.t.Helper()
	d.must(d.publish(b))
	d.must(d.target.Sealed(context.Background(), b.id))
	d.next = b.id + 1
	d.want = append(d.want, b.values...)
}

// check compares what is visible with what was finished.
func (d *driver) check(when string) {
	d.t.Helper()
	got, want := slices.Sorted(slices.Values(d.place.Visible(d.t))), slices.Sorted(slices.Values(d.want))
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Fatalf("%s, a reader sees (-want +got):\n%s", when, diff)
	}
}

func (d *driver) published(p sink.Published, b batch) {
	d.t.Helper()
	if want := (sink.Published{Batch: b.id, Digest: b.digest}); p != want {
		d.t.Fatalf("published is %+v, want %+v", p, want)
	}
}

const (
	first  = "00000001"
	second = "00000002"
)

func lanes(t *testing.T, d *driver) {
	l := d.lane([]string{d.place.Value(0), d.place.Value(1)})
	size := l.Bytes()
	if l.Rows() != 2 || size <= 0 {
		t.Fatalf("%d rows of %d bytes, want 2", l.Rows(), size)
	}
	misfits := [][]byte{[]byte(d.place.Misfit), []byte(d.place.Misfit + "\xff")}
	if !d.place.TakesEmpty {
		misfits = append(misfits, []byte{}, nil)
	}
	for _, bad := range misfits {
		var m *sink.Misfit
		if err := l.Append(&abi.Record{Value: bad}); !errors.As(err, &m) || m.Code == "" || m.Reason == "" {
			t.Errorf("%q: %v, want a misfit with code and reason", bad, err)
		}
	}
	if l.Rows() != 2 || l.Bytes() != size {
		t.Errorf("misfits left the lane with %d rows of %d bytes", l.Rows(), l.Bytes())
	}
	if l.Reset(); l.Rows() != 0 || l.Bytes() != 0 {
		t.Errorf("after Reset there are %d rows of %d bytes", l.Rows(), l.Bytes())
	}
	if _, err := d.target.NewLane(d.place.Sink + "-other"); err == nil {
		t.Error("a lane of a sink that does not exist")
	}
}

func publishes(_ *testing.T, d *driver) {
	for n := range checkpoint.BatchID(3) {
		b := d.stage(n, first, 5)
		d.check("after staging")
		d.finish(b)
		d.check("after publishing")
	}
}

func aborts(t *testing.T, d *driver) {
	d.must(d.target.Abort(context.Background(), 0))
	b := d.stage(0, first, 3)
	d.must(d.target.Abort(context.Background(), 0))
	d.check("after abort")
	if err := d.publish(b); !errors.Is(err, sink.ErrLost) {
		t.Fatalf("publish after abort: %v, want ErrLost", err)
	}
	d.check("after a lost publish")
	d.restage(&b, second)
	d.finish(b)
	d.check("after the second attempt")
}

// lost is rung (c): the same batch and attempt staged once more.
func lost(_ *testing.T, d *driver) {
	b := d.stage(0, first, 4)
	d.must(d.target.Abort(context.Background(), 0))
	d.restage(&b, first)
	d.restage(&b, first)
	d.finish(b)
	d.check("after staging twice")
}

func nothing(_ *testing.T, d *driver) {
	d.finish(d.stage(0, first, 2))
	b := d.stage(1, first, 0)
	d.finish(b)
	d.published(d.reopen(), b)
	d.check("after an empty batch")
}

func twice(_ *testing.T, d *driver) {
	b := d.stage(0, first, 3)
	d.must(d.publish(b))
	d.must(d.publish(b))
	d.finish(b)
	d.check("after publishing thrice")
	d.published(d.reopen(), b)
	d.must(d.publish(b))
	d.check("after publishing in a new process")
}

func resume(t *testing.T, d *driver) {
	if p := d.reopen(); p.Batch != checkpoint.NoBatch {
		t.Fatalf("published is %+v before the first batch", p)
	}
	var last batch
	for n := range checkpoint.BatchID(25) {
		b := d.stage(n, first, int(n%4))
		if p := d.reopen(); n > 0 {
			d.published(p, last)
		}
		d.check("after staging and a restart")
		if d.target.Traits().Volatile {
			d.isLost(b)
			d.restage(&b, second)
		}
		d.finish(b)
		d.published(d.reopen(), b)
		d.check("after publishing and a restart")
		last = b
	}
}

func gaps(_ *testing.T, d *driver) {
	for _, n := range []checkpoint.BatchID{4, 5, 9, 12, 19, 45, 46, 49, 90, 239, 240, 262} {
		b := d.stage(n, first, 2)
		d.finish(b)
		d.published(d.reopen(), b)
		d.check(fmt.Sprintf("after batch %d", n))
	}
}

func others(t *testing.T, d *driver) {
	if d.place.Shared {
		t.Skip("the place is open to several queries")
	}
	d.finish(d.stage(0, first, 2))
	d.must(d.target.Close())
	d.target = d.place.Open(t)
	_, err := d.target.Open(context.Background(), sink.Owner{Query: otherQuery, Job: "other"})
	var f interface {
		error
		Code() string
		Hint() string
	}
	if !errors.As(err, &f) || f.Code() == "" || f.Hint() == "" {
		t.Fatalf("another query opened the target: %v, want a fault with code and way out", err)
	}
	d.check("after another query was refused")
	d.reopen()
	d.finish(d.stage(1, first, 2))
	d.check("after the right one came back")
}

func otherDigest(t *testing.T, d *driver) {
	b := d.stage(0, first, 2)
	d.finish(b)
	b.digest = digest(77)
	if err := d.publish(b); err == nil || errors.Is(err, sink.ErrLost) {
		t.Fatalf("publish with another digest: %v, want a refusal", err)
	}
	d.check("after another digest was refused")
}

func oldBatch(t *testing.T, d *driver) {
	old := d.stage(0, first, 2)
	d.finish(old)
	d.finish(d.stage(1, first, 2))
	forged := d.stage(0, second, 1)
	forged.digest = digest(5)
	if err := d.publish(forged); err == nil || errors.Is(err, sink.ErrLost) {
		t.Fatalf("publish below the newest batch: %v, want a refusal", err)
	}
	d.check("after an old batch was refused")
}

// zombie lets a process go on that was replaced: what it does late must be harmless.
func zombie(t *testing.T, d *driver) {
	if d.place.Usurp == nil {
		t.Skip("one process cannot replace another here")
	}
	old := d.stage(0, first, 3)
	slow := d.target
	d.target = d.place.Usurp(t)
	d.open(query)
	again := old
	d.restage(&again, second)
	d.finish(again)
	d.check("after the new process published")
	publish := func() error {
		return slow.Publish(context.Background(), &checkpoint.Decision{Batch: old.id, Digest: old.digest}, old.staged)
	}
	t.Logf("the zombie's publish: %v", publish())
	d.check("after the zombie published")
	d.finish(d.stage(1, first, 2))
	t.Logf("the zombie's publish, late: %v; its abort: %v; its sweep: %v",
		publish(), slow.Abort(context.Background(), 1), slow.Sealed(context.Background(), 0))
	d.check("after the zombie tidied")
	d.must(slow.Close())
	d.finish(d.stage(2, first, 2))
	d.check("at the end")
}
