// Package generator is a source of made-up orders: the same ones for the same seed, for ever.
//
// Order n is a pure function of the seed and n, so that any range can be read again in any process. Orders come all at
// once or at a rate by the clock, endless or up to a total. The package is for demonstrations, tests and benchmarks; it
// touches no disk and must not look at the clock for anything but how many orders there are by now.
package generator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	// batchDefault is how many orders are planned at once where neither a limit nor a total says so.
	batchDefault = 100_000
	// pieces is into how many splits a range is cut, minPiece how many orders one has at least. Both shape the lanes of
	// a batch and so must not change without a change of the host's semantics.
	pieces   = 8
	minPiece = 1024
	// askEvery is after how many orders a read looks whether it is still wanted.
	askEvery = 1024
)

// Config says what is generated.
type Config struct {
	Name string // of the source, for messages
	Seed uint64
	// Total is how many orders there are; 0 means no end.
	Total int64
	// Rate is how many orders come in a second; 0 means that all are there at once.
	Rate int64
	// Customers is among how many customers the orders are spread; 0 means 10,000.
	Customers int64
	// Clock is read when Rate is set.
	Clock func() time.Time
}

// Source generates orders. It implements source.Source.
type Source struct {
	cfg   Config
	begun bool
	from  int64 // the order that was next when the clock was first read
	since time.Time
	end   int64 // set by Freeze, -1 before
}

var _ source.Source = (*Source)(nil)

// New returns a source.
func New(cfg Config) (*Source, error) {
	if cfg.Customers == 0 {
		cfg.Customers = 10_000
	}
	if cfg.Total < 0 || cfg.Rate < 0 || cfg.Customers < 0 {
		return nil, fault.New(CodeConfig, "source "+cfg.Name, errors.New("total, rate and customers must not be negative"),
			"mend the source in the job file")
	}
	return &Source{cfg: cfg, end: -1}, nil
}

// position is the number of the next order, a bare number as in Spark's rate source.
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

// Latest plans the orders that there are by now. What came while the process was down is not made up for.
func (s *Source) Latest(ctx context.Context, from checkpoint.Position, limit source.Limit) (checkpoint.Position, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Position{}, err
	}
	n, err := parse(from)
	if err != nil {
		return checkpoint.Position{}, err
	}
	take := s.available(n) - n
	if limit.Records > 0 {
		take = min(take, limit.Records)
	}
	if limit.Bytes > 0 {
		take = min(take, max(1, limit.Bytes/maxOrder))
	}
	if limit.Records <= 0 && s.cfg.Total == 0 {
		take = min(take, batchDefault)
	}
	if take <= 0 {
		return from, nil
	}
	return checkpoint.Position{Line: strconv.FormatInt(n+take, 10)}, nil
}

// available returns the number after the last order that is there now.
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
		out = append(out, source.Split{Name: "orders", Size: b.To - b.From, Detail: detail})
	}
	return out, nil
}

// bounds is the Detail of a split: the orders From up to and without To.
type bounds struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Read generates a split's orders.
func (s *Source) Read(ctx context.Context, split source.Split, to source.Writer) error {
	var b bounds
	if err := json.Unmarshal(split.Detail, &b); err != nil {
		return fmt.Errorf("split %s: %w", split.Name, err)
	}
	var rec abi.Record
	var o order
	value := make([]byte, 0, maxOrder)
	for n := b.From; n < b.To; n++ {
		if (n-b.From)%askEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		o.make(s.cfg.Seed, n, s.cfg.Customers)
		value = o.appendJSON(value[:0])
		rec = abi.Record{Offset: n, Key: o.key(), Value: value, EventTime: o.createdMS * 1000, Flags: abi.FlagEventTime}
		if err := to.Write(&rec); err != nil {
			return err
		}
	}
	return nil
}

// Release has nothing to tidy up.
func (s *Source) Release(context.Context, checkpoint.Position) error { return nil }

// Freeze ends the input at the orders that there are now. An endless input at no rate has no such place.
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
