// Package sourcetest is the suite that every source passes.
//
// It drives a source through the seam alone, with positions as the only memory between instances, and knows nothing of
// any driver. It must not ask for more than host/source promises.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// Input is one input of some hundred records or more.
type Input struct {
	// Open returns a source that knows nothing but what is durable, as after a restart. It is closed by the suite.
	Open func(t *testing.T) source.Source
	// More adds records to the input at its end. nil: the input cannot grow.
	More func(t *testing.T)
}

// Factory makes a fresh input for one test.
type Factory func(t *testing.T) Input

// maxBatches ends a drain that does not come to an end by itself.
const maxBatches = 100_000

// Record is a record as the suite compares it; Code is that of a rejection.
type Record struct {
	Split     string
	Offset    int64
	Partition int32
	EventTime int64
	Flags     uint8
	Key       string
	Value     string
	Headers   string
	Code      string
}

// Collector is a source.Writer that keeps copies.
type Collector struct {
	Split   string
	Records []Record
	// FailAt is the record, from 1, at which Fail is returned; 0 never.
	FailAt int
	Fail   error
}

// Write keeps a copy of a record.
func (c *Collector) Write(r *abi.Record) error { return c.take(r, "") }

// Reject keeps a copy of a rejection.
func (c *Collector) Reject(r *abi.Record, code, _ string) error { return c.take(r, code) }

func (c *Collector) take(r *abi.Record, code string) error {
	rec := Record{
		Split: c.Split, Offset: r.Offset, Partition: r.Partition, EventTime: r.EventTime, Flags: r.Flags,
		Key: text(r.Key), Value: text(r.Value), Code: code,
	}
	for _, h := range r.Headers {
		rec.Headers += fmt.Sprintf("%s=%s;", h.Name, text(h.Value))
	}
	c.Records = append(c.Records, rec)
	if len(c.Records) == c.FailAt {
		return c.Fail
	}
	return nil
}

// text tells null from empty.
func text(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// Run checks a source against the promises of host/source.
func Run(t *testing.T, factory Factory) {
	for name, test := range map[string]func(*testing.T, Input){
		"reads again the same in another process": readsAgain,
		"keeps to limits":                         keepsLimits,
		"ends where nothing is new":               endsQuietly,
		"plans again after a crash":               plansAgain,
		"freezes":                                 freezes,
		"stops when cancelled":                    cancels,
		"returns the writer's error":              returnsError,
		"reads in parallel":                       readsInParallel,
		"reads what was released":                 readsReleased,
		"tells of news":                           tellsNews,
	} {
		t.Run(name, func(t *testing.T) {
			ignore := goleak.IgnoreCurrent()
			test(t, factory(t))
			goleak.VerifyNone(t, ignore)
		})
	}
}

// open opens a source for the length of fn.
func open(t *testing.T, in Input, fn func(source.Source)) {
	t.Helper()
	src := in.Open(t)
	fn(src)
	if err := src.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func latest(t *testing.T, src source.Source, from checkpoint.Position, limit source.Limit) checkpoint.Position {
	t.Helper()
	to, err := src.Latest(context.Background(), from, limit)
	if err != nil {
		t.Fatalf("latest from %+v: %v", from, err)
	}
	return to
}

func splits(t *testing.T, src source.Source, r source.Range) []source.Split {
	t.Helper()
	out, err := src.Splits(context.Background(), r)
	if err != nil {
		t.Fatalf("splits of %+v: %v", r, err)
	}
	for _, s := range out {
		if s.Size < 0 || s.Name == "" {
			t.Fatalf("split without a size or a name: %+v", s)
		}
	}
	return out
}

func read(t *testing.T, src source.Source, r source.Range) []Record {
	t.Helper()
	var c Collector
	for _, s := range splits(t, src, r) {
		c.Split = s.Name
		if err := src.Read(context.Background(), s, &c); err != nil {
			t.Fatalf("read %s: %v", s.Name, err)
		}
	}
	return c.Records
}

// plan plans to the end of the input.
func plan(t *testing.T, src source.Source, from checkpoint.Position, limit source.Limit) []source.Range {
	t.Helper()
	var out []source.Range
	for range maxBatches {
		to := latest(t, src, from, limit)
		if to == from {
			return out
		}
		out = append(out, source.Range{From: from, To: to})
		from = to
	}
	t.Fatal("the input has no end")
	return nil
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func readsAgain(t *testing.T, in Input) {
	var ranges []source.Range
	var first [][]Record
	var cuts [][]source.Split
	open(t, in, func(src source.Source) {
		ranges = plan(t, src, checkpoint.Position{}, source.Limit{Records: 17})
		if len(ranges) < 2 {
			t.Fatalf("%d batches: too small an input for this suite", len(ranges))
		}
		for _, r := range ranges {
			first = append(first, read(t, src, r))
			cuts = append(cuts, splits(t, src, r))
		}
		same(t, "the second reading", first[0], read(t, src, ranges[0]))
	})
	for i, r := range ranges {
		open(t, in, func(src source.Source) {
			same(t, "splits in a new instance", cuts[i], splits(t, src, r))
			same(t, "records in a new instance", first[i], read(t, src, r))
		})
	}
	whole := source.Range{To: ranges[0].To}
	open(t, in, func(src source.Source) {
		same(t, "the first batch from the beginning", first[0], read(t, src, whole))
	})
}

func keepsLimits(t *testing.T, in Input) {
	var all []Record
	for _, limit := range []source.Limit{{}, {Records: 1}, {Records: 7}, {Records: 1 << 40}, {Bytes: 1}, {Bytes: 1000}, {Records: 5, Bytes: 600}} {
		open(t, in, func(src source.Source) {
			var got []Record
			for _, r := range plan(t, src, checkpoint.Position{}, limit) {
				batch := read(t, src, r)
				checkBatch(t, limit, batch)
				got = append(got, batch...)
			}
			// Order is promised within a split only.
			slices.SortStableFunc(got, func(a, b Record) int { return strings.Compare(a.Split, b.Split) })
			if all == nil {
				all = got
			}
			same(t, fmt.Sprintf("records in batches of %+v", limit), all, got)
		})
	}
}

func checkBatch(t *testing.T, limit source.Limit, batch []Record) {
	t.Helper()
	var bytes int64
	for _, r := range batch {
		bytes += int64(len(r.Value))
	}
	if limit.Records > 0 && int64(len(batch)) > limit.Records {
		t.Fatalf("%d records in a batch, the limit is %d", len(batch), limit.Records)
	}
	// A source counts its own bytes, and a value may be longer than they are: a generous bound.
	if limit.Bytes > 0 && len(batch) > 1 && bytes > 4*limit.Bytes {
		t.Fatalf("%d bytes in a batch, the limit is %d", bytes, limit.Bytes)
	}
}

func endsQuietly(t *testing.T, in Input) {
	open(t, in, func(src source.Source) {
		ranges := plan(t, src, checkpoint.Position{}, source.Limit{Records: 100})
		end := ranges[len(ranges)-1].To
		same(t, "latest at the end", end, latest(t, src, end, source.Limit{}))
		if got := splits(t, src, source.Range{From: end, To: end}); len(got) > 0 {
			t.Fatalf("an empty range has splits: %+v", got)
		}
		if in.More == nil {
			return
		}
		in.More(t)
		next := grown(t, src, end)
		if next == end || len(read(t, src, source.Range{From: end, To: next})) == 0 {
			t.Fatal("what was added is not found")
		}
	})
}

// newsPatience is how long news of what was added may take.
const newsPatience = 10 * time.Second

// grown plans on after an input has grown. A source that tells of news may learn of it a moment later, and must tell.
func grown(t *testing.T, src source.Source, from checkpoint.Position) checkpoint.Position {
	t.Helper()
	n, tells := src.(source.Notifier)
	if !tells {
		return latest(t, src, from, source.Limit{})
	}
	ctx, cancel := context.WithTimeout(context.Background(), newsPatience)
	defer cancel()
	for {
		if to := latest(t, src, from, source.Limit{}); to != from {
			return to
		}
		select {
		case <-n.News():
		case <-ctx.Done():
			t.Fatal("nothing tells of what was added")
		}
	}
}

// tellsNews asserts that a source that tells of news does so for everything that is added while the job waits.
func tellsNews(t *testing.T, in Input) {
	open(t, in, func(src source.Source) {
		n, tells := src.(source.Notifier)
		if !tells || in.More == nil {
			t.Skip("the source tells of nothing, or the input cannot grow")
		}
		news := n.News()
		if cap(news) != 1 {
			t.Errorf("the channel has %d places", cap(news))
		}
		var at checkpoint.Position
		for _, r := range plan(t, src, at, source.Limit{}) {
			read(t, src, r)
			at = r.To
		}
		for range 5 {
			in.More(t)
			next := grown(t, src, at)
			if len(read(t, src, source.Range{From: at, To: next})) == 0 {
				t.Error("there is news and nothing to read")
			}
			at = next
			if n.News() != news {
				t.Fatal("the channel is another one")
			}
		}
	})
}

// plansAgain throws away what was planned, as a crash before the plan is durable does.
func plansAgain(t *testing.T, in Input) {
	limit := source.Limit{Records: 13}
	var lost []source.Range
	open(t, in, func(src source.Source) {
		lost = plan(t, src, checkpoint.Position{}, limit)[:3]
		same(t, "the same plan from the same instance", lost[1].To, latest(t, src, lost[1].From, limit))
	})
	open(t, in, func(src source.Source) {
		same(t, "the same plan from a new instance", lost[1].To, latest(t, src, lost[1].From, limit))
		same(t, "and the one after it", lost[2].To, latest(t, src, lost[1].To, limit))
	})
	open(t, in, func(src source.Source) {
		smaller := latest(t, src, lost[0].To, source.Limit{Records: 4})
		if smaller == lost[1].To {
			t.Fatal("a smaller limit plans as much")
		}
		rest := latest(t, src, smaller, source.Limit{Records: 9})
		got := append(read(t, src, source.Range{From: lost[0].To, To: smaller}), read(t, src, source.Range{From: smaller, To: rest})...)
		if len(got) == 0 || len(got) > 13 {
			t.Fatalf("%d records in two smaller batches", len(got))
		}
	})
}

func freezes(t *testing.T, in Input) {
	open(t, in, func(src source.Source) {
		before := 0
		open(t, in, func(other source.Source) {
			for _, r := range plan(t, other, checkpoint.Position{}, source.Limit{}) {
				before += len(read(t, other, r))
			}
		})
		if err := src.Freeze(context.Background()); err != nil {
			t.Fatalf("freeze: %v", err)
		}
		if in.More != nil {
			in.More(t)
		}
		after := 0
		for _, r := range plan(t, src, checkpoint.Position{}, source.Limit{Records: 11}) {
			after += len(read(t, src, r))
		}
		same(t, "records of a frozen input", before, after)
	})
}

func cancels(t *testing.T, in Input) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	open(t, in, func(src source.Source) {
		to := latest(t, src, checkpoint.Position{}, source.Limit{})
		cut := splits(t, src, source.Range{To: to})
		if err := src.Read(ctx, cut[0], &Collector{}); !errors.Is(err, context.Canceled) {
			t.Errorf("read with a cancelled context: %v", err)
		}
	})
	open(t, in, func(src source.Source) {
		if _, err := src.Latest(ctx, checkpoint.Position{}, source.Limit{}); !errors.Is(err, context.Canceled) {
			t.Errorf("latest with a cancelled context: %v", err)
		}
		if to := latest(t, src, checkpoint.Position{}, source.Limit{}); to.IsZero() {
			t.Error("nothing is found after a cancelled call")
		}
	})
}

func returnsError(t *testing.T, in Input) {
	fail := errors.New("enough")
	open(t, in, func(src source.Source) {
		to := latest(t, src, checkpoint.Position{}, source.Limit{})
		cut := splits(t, src, source.Range{To: to})
		for _, at := range []int{1, 2} {
			c := Collector{FailAt: at, Fail: fail}
			if err := src.Read(context.Background(), cut[0], &c); err != fail { // unchanged: not even wrapped
				t.Errorf("read returned %v, the writer %v", err, fail)
			}
			if len(c.Records) != at {
				t.Errorf("%d records after an error at record %d", len(c.Records), at)
			}
		}
	})
}

func readsInParallel(t *testing.T, in Input) {
	open(t, in, func(src source.Source) {
		ranges := plan(t, src, checkpoint.Position{}, source.Limit{Records: 50})
		want := read(t, src, ranges[0])
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var c Collector
				cut, err := src.Splits(context.Background(), ranges[0])
				for _, s := range cut {
					c.Split = s.Name
					err = errors.Join(err, src.Read(context.Background(), s, &c))
				}
				if err != nil || !slices.Equal(want, c.Records) {
					t.Errorf("read in parallel: %v, %d of %d records", err, len(c.Records), len(want))
				}
			})
		}
		for _, r := range ranges {
			if to := latest(t, src, r.From, source.Limit{Records: 50}); to != r.To {
				t.Errorf("planned in parallel: %+v, want %+v", to, r.To)
			}
		}
		wg.Wait()
	})
}

func readsReleased(t *testing.T, in Input) {
	var ranges []source.Range
	var want []Record
	open(t, in, func(src source.Source) {
		ranges = plan(t, src, checkpoint.Position{}, source.Limit{Records: 3})
		for _, r := range ranges {
			want = append(want, read(t, src, r)...)
			if err := src.Release(context.Background(), r.To); err != nil {
				t.Fatalf("release: %v", err)
			}
		}
	})
	open(t, in, func(src source.Source) {
		var got []Record
		for _, r := range ranges {
			got = append(got, read(t, src, r)...)
		}
		same(t, "records of retained plans", want, got)
	})
}
