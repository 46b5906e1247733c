// Package generator is a source of made-up events: the same ones for the same seed, for ever.
//
// There are orders of a shop, and the persons, auctions and bids of the Nexmark benchmark. Event n is a pure function of
// the seed and n, so that any range can be read again in any process. Events come all at once or at a rate by the clock,
// endless or up to a total. The package is for demonstrations, tests and benchmarks; it touches no disk and must not look
// at the clock for anything but how many events there are by now.
package generator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

// The codes of this package's faults.
const (
	CodeConfig   = "source.config"
	CodeEndless  = "source.endless"
	CodePosition = "source.position"
)

const (
	// batchDefault is how many events are planned at once where neither a limit nor a total says so.
	batchDefault = 100_000
	// pieces is into how many splits a range is cut, minPiece how many events one has at least. Both shape the lanes of
	// a batch and so must not change without a change of the host's semantics.
	pieces   = 8
	minPiece = 1024
	// askEvery is after how many events a read looks whether it is still wanted.
	askEvery = 1024
)

// Kind is what the events are.
type Kind string

// The kinds of events.
const (
	KindOrders  Kind = "orders"
	KindNexmark Kind = "nexmark"
)

// Config says what is generated.
type Config struct {
	Name string // of the source, for messages
	Kind Kind   // "" means orders
	Seed uint64
	// Total is how many events there are; 0 means no end.
	Total int64
	// Rate is how many events come in a second; 0 means that all are there at once.
	Rate int64
	// Customers is among how many customers orders are spread; 0 means 10,000.
	Customers int64
	// Nexmark says how Nexmark's events are.
	Nexmark Nexmark
	// Clock is read when Rate is set.
	Clock func() time.Time
}

// stream is one kind of events. Its methods are called in parallel.
type stream interface {
	name() string
	// size is more bytes than a record takes on average.
	size() int64
	// has reports whether event n is one of the source's records.
	has(n int64) bool
	// count returns how many of the events from up to and without to are records.
	count(from, to int64) int64
	// events returns what makes events one after the other.
	events() maker
}

// maker fills in the record of an event. What a record points to is valid until the next call.
type maker func(n int64, r *abi.Record)

// Source generates events. It implements source.Source.
type Source struct {
	cfg    Config
	stream stream
	begun  bool
	from   int64 // the event that was next when the clock was first read
	since  time.Time
	end    int64 // set by Freeze, -1 before
}

var (
	_ source.Source = (*Source)(nil)
	_ source.Ender  = (*Source)(nil)
)

// New returns a source.
func New(cfg Config) (*Source, error) {
	if cfg.Customers == 0 {
		cfg.Customers = 10_000
	}
	s := &Source{cfg: cfg, end: -1}
	err := cfg.check()
	switch cfg.Kind {
	case "", KindOrders:
		s.stream = orders{seed: cfg.Seed, customers: cfg.Customers}
	case KindNexmark:
		s.stream = newNexmark(cfg.Seed, cfg.Nexmark)
	default:
		err = fmt.Errorf("%q is no kind of events", cfg.Kind)
	}
	if err != nil {
		return nil, fault.New(CodeConfig, "source "+cfg.Name, err, "mend the source in the job file")
	}
	return s, nil
}

func (c *Config) check() error {
	if c.Total < 0 || c.Rate < 0 || c.Customers < 0 {
		return errors.New("total, rate and customers must not be negative")
	}
	return c.Nexmark.check()
}

// position is the number of the next event, a bare number as in Spark's rate source.
func parse(p checkpoint.Position) (int64, error) {
	if p.IsZero() {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(p.Line), 10, 64)
	if err != nil || n < 0 || p.Extra != "" {
		return 0, fault.New(CodePosition, "", fmt.Errorf("%.100q is not the position of a generator", p.Line+p.Extra),
			"run `wasmill checkpoint verify`")
	}
	return n, nil
}

// Latest plans the events that there are by now. What came while the process was down is not made up for.
func (s *Source) Latest(ctx context.Context, from checkpoint.Position, limit source.Limit) (checkpoint.Position, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Position{}, err
	}
	n, err := parse(from)
	if err != nil {
		return checkpoint.Position{}, err
	}
	end := s.available(n)
	if end <= n {
		return from, nil
	}
	most := int64(math.MaxInt64)
	if limit.Records > 0 {
		most = limit.Records
	}
	if limit.Bytes > 0 {
		most = min(most, max(1, limit.Bytes/s.stream.size()))
	}
	if limit.Records <= 0 && s.cfg.Total == 0 {
		most = min(most, batchDefault)
	}
	to := s.place(n, end, most)
	return checkpoint.Position{Line: strconv.FormatInt(to, 10)}, nil
}

// place returns where a batch of the most records that may be taken ends.
func (s *Source) place(from, end, most int64) int64 {
	if s.stream.count(from, end) <= most {
		return end
	}
	return from + int64(sort.Search(int(end-from), func(i int) bool { return s.stream.count(from, from+int64(i)) >= most }))
}

// Ended reports whether nothing comes after a position.
func (s *Source) Ended(pos checkpoint.Position) bool {
	n, err := parse(pos)
	if err != nil {
		return false
	}
	return s.cfg.Total > 0 && n >= s.cfg.Total || s.end >= 0 && n >= s.end
}

// available returns the number after the last event that is there now.
func (s *Source) available(next int64) int64 {
	end := int64(math.MaxInt64)
	if s.cfg.Total > 0 {
		end = s.cfg.Total
	}
	if s.end >= 0 {
		return min(end, s.end)
	}
	if s.cfg.Rate == 0 {
		return end
	}
	now := s.cfg.Clock()
	if !s.begun {
		s.begun, s.from, s.since = true, next, now
	}
	passed := max(0, now.Sub(s.since))
	whole := int64(passed/time.Second)*s.cfg.Rate + int64(passed%time.Second)*s.cfg.Rate/int64(time.Second)
	return min(end, s.from+whole)
}

// Splits cuts a range into even pieces.
func (s *Source) Splits(_ context.Context, r source.Range) ([]source.Split, error) {
	from, err := parse(r.From)
	if err != nil {
		return nil, err
	}
	to, err := parse(r.To)
	if err != nil {
		return nil, err
	}
	piece := max(minPiece, (to-from+pieces-1)/pieces)
	var out []source.Split
	for ; from < to; from += piece {
		b := bounds{From: from, To: min(to, from+piece)}
		detail, err := json.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("split: %w", err)
		}
		out = append(out, source.Split{Name: s.stream.name(), Size: b.To - b.From, Detail: detail})
	}
	return out, nil
}

// bounds is the Detail of a split: the events From up to and without To.
type bounds struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Read generates a split's events.
func (s *Source) Read(ctx context.Context, split source.Split, to source.Writer) error {
	var b bounds
	if err := json.Unmarshal(split.Detail, &b); err != nil {
		return fmt.Errorf("split %s: %w", split.Name, err)
	}
	rec, fill := abi.Record{}, s.stream.events()
	for n := b.From; n < b.To; n++ {
		if (n-b.From)%askEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if !s.stream.has(n) {
			continue
		}
		fill(n, &rec)
		rec.Offset = n
		if err := to.Write(&rec); err != nil {
			return err
		}
	}
	return nil
}

// Release has nothing to tidy up.
func (s *Source) Release(context.Context, checkpoint.Position) error { return nil }

// Freeze ends the input at the events that there are now. An endless input at no rate has no such place.
func (s *Source) Freeze(ctx context.Context) error {
	switch {
	case s.cfg.Rate == 0 && s.cfg.Total == 0:
		return fault.New(CodeEndless, "source "+s.cfg.Name, errors.New("a generator without total and rate never ends"),
			"give the source a total, or the job another trigger than availableNow")
	case s.cfg.Rate == 0:
		s.end = s.cfg.Total
	case s.begun:
		s.end = s.available(s.from)
	default:
		s.end = 0
	}
	return ctx.Err()
}

// Close has nothing to give up.
func (s *Source) Close() error { return nil }
