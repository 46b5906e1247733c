package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// Input is a topic-like input that outlives processes: an ordered list of values.
type Input struct {
	mu     sync.Mutex
	values [][]byte
}

// Append adds values at the end.
func (in *Input) Append(values ...string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, v := range values {
		in.values = append(in.values, []byte(v))
	}
}

// Replace changes a value in place: what an input must never do.
func (in *Input) Replace(i int, value string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.values[i] = []byte(value)
}

// Truncate loses everything from the i-th value on.
func (in *Input) Truncate(i int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.values = in.values[:i]
}

// Values returns a copy of the list.
func (in *Input) Values() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := make([]string, len(in.values))
	for i, v := range in.values {
		out[i] = string(v)
	}
	return out
}

// Source reads an Input in splits of SplitSize records.
type Source struct {
	Proc      *Process
	In        *Input
	SplitSize int
	// Step, if set, gives the n-th value the event time Epoch + n x Step, and its last byte as key.
	Step   time.Duration
	frozen int
}

// Epoch is the event time of the first value of a source with a Step, in milliseconds.
const Epoch = 1_700_000_000_000

type sourceLine struct {
	Offset int64 `json:"offset"`
}

func offsetOf(p checkpoint.Position) (int64, error) {
	if p.IsZero() {
		return 0, nil
	}
	var l sourceLine
	if err := json.Unmarshal([]byte(p.Line), &l); err != nil {
		return 0, fmt.Errorf("read position %q: %w", p.Line, err)
	}
	return l.Offset, nil
}

func positionAt(n int64) checkpoint.Position {
	return checkpoint.Position{Line: fmt.Sprintf(`{"offset":%d}`, n)}
}

// Latest plans up to limit.Records values.
func (s *Source) Latest(_ context.Context, from checkpoint.Position, limit source.Limit) (checkpoint.Position, error) {
	if err := s.Proc.Call("source.latest"); err != nil {
		return from, err
	}
	at, err := offsetOf(from)
	if err != nil {
		return from, err
	}
	s.In.mu.Lock()
	end := int64(len(s.In.values))
	s.In.mu.Unlock()
	if s.frozen > 0 {
		end = min(end, int64(s.frozen))
	}
	if limit.Records > 0 {
		end = min(end, at+limit.Records)
	}
	if end <= at {
		return from, nil
	}
	return positionAt(end), nil
}

// Splits cuts the range evenly.
func (s *Source) Splits(_ context.Context, r source.Range) ([]source.Split, error) {
	from, err := offsetOf(r.From)
	if err != nil {
		return nil, err
	}
	to, err := offsetOf(r.To)
	if err != nil {
		return nil, err
	}
	var out []source.Split
	for at := from; at < to; at += int64(s.SplitSize) {
		end := min(at+int64(s.SplitSize), to)
		out = append(out, source.Split{
			Name: fmt.Sprintf("part-%d", at), Size: end - at, Detail: json.RawMessage(fmt.Sprintf("[%d,%d]", at, end)),
		})
	}
	return out, nil
}

// Read delivers the values of a split. A value that begins with "reject:" is rejected.
func (s *Source) Read(_ context.Context, sp source.Split, to source.Writer) error {
	var span [2]int64
	if err := json.Unmarshal(sp.Detail, &span); err != nil {
		return fmt.Errorf("read split: %w", err)
	}
	r := &abi.Record{} // used for all records, as drivers may
	for at := span[0]; at < span[1]; at++ {
		if err := s.Proc.Call("source.read"); err != nil {
			return err
		}
		s.In.mu.Lock()
		if at >= int64(len(s.In.values)) {
			s.In.mu.Unlock()
			return &source.ChangedError{Split: sp.Name, Detail: fmt.Sprintf("record %d is gone", at)}
		}
		v := s.In.values[at]
		s.In.mu.Unlock()
		r.Value, r.Offset = v, at
		if s.Step > 0 {
			r.EventTime, r.Flags = Epoch*1000+at*s.Step.Microseconds(), abi.FlagEventTime
			r.Key = v[max(len(v)-1, 0):]
		}
		var err error
		if len(v) > 7 && string(v[:7]) == "reject:" {
			err = to.Reject(r, "broken", "the value says so")
		} else {
			err = to.Write(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Release does nothing.
func (s *Source) Release(context.Context, checkpoint.Position) error {
	return s.Proc.Call("source.release")
}

// Freeze makes what exists now the end.
func (s *Source) Freeze(context.Context) error {
	s.In.mu.Lock()
	defer s.In.mu.Unlock()
	s.frozen = max(len(s.In.values), 1)
	return s.Proc.Call("source.freeze")
}

// Ended reports whether a frozen source has been planned to its end.
func (s *Source) Ended(at checkpoint.Position) bool {
	n, err := offsetOf(at)
	return err == nil && s.frozen > 0 && n == int64(s.frozen)
}

// Close does nothing.
func (s *Source) Close() error { return nil }
