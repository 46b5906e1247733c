package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// Store is an external system that outlives processes: what one target has published, and what it holds staged.
type Store struct {
	mu        sync.Mutex
	owner     string
	epoch     int
	published []Published
	staged    map[string][]Row
}

// Row is one published row.
type Row struct {
	Sink, Value string
}

// Published is one batch of a store.
type Published struct {
	Batch  checkpoint.BatchID
	Digest string
	Rows   []Row
	// unknown: the store holds the rows and does not know of the batch, as it was published at least once.
	unknown bool
}

// Batches returns what was published, in order.
func (s *Store) Batches() []Published {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Published(nil), s.published...)
}

// Values returns every published value of one sink.
func (s *Store) Values(sinkName string) []string {
	var out []string
	for _, p := range s.Batches() {
		for _, r := range p.Rows {
			if r.Sink == sinkName {
				out = append(out, r.Value)
			}
		}
	}
	return out
}

// Staged is how many batches are staged and not published.
func (s *Store) Staged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.staged)
}

// Forget loses what was published, as a marker that is deleted does.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = nil
}

// DropStaged loses what is staged, as a power cut or an eager sweeper would.
func (s *Store) DropStaged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.staged)
}

// Target is a target over a Store.
type Target struct {
	Proc  *Process
	Store *Store
	Name  string
	Trait sink.Traits
	// Misfit refuses values that begin with it, when not empty.
	Misfit string
	// Most is how long a value may be, when it is not 0.
	Most int
	// Refuse says whether a value is refused when it is staged; nil refuses none. At most AtOnce are named at a time, 0 all.
	Refuse func(value string) bool
	AtOnce int
	// Curt says no more of what is refused than the rows.
	Curt  bool
	epoch int
}

// ID is the target's name.
func (t *Target) ID() string { return t.Name }

// Traits are as set.
func (t *Target) Traits() sink.Traits { return t.Trait }

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	return &lane{sink: name, misfit: t.Misfit, most: t.Most}, nil
}

// Open takes the store over.
func (t *Target) Open(_ context.Context, o sink.Owner) (sink.Published, error) {
	if err := t.Proc.Call("target.open " + t.Name); err != nil {
		return sink.Published{}, err
	}
	s := t.Store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != "" && s.owner != o.Query {
		return sink.Published{}, fmt.Errorf("target %s belongs to query %s", t.Name, s.owner)
	}
	s.owner = o.Query
	s.epoch++
	t.epoch = s.epoch
	if t.Trait.Volatile || s.staged == nil {
		s.staged = map[string][]Row{}
	}
	last := s.known()
	return sink.Published{Batch: last.Batch, Digest: last.Digest}, nil
}

// known is the newest batch that the store knows of.
func (s *Store) known() Published {
	for _, p := range slices.Backward(s.published) {
		if !p.unknown {
			return p
		}
	}
	return Published{Batch: checkpoint.NoBatch}
}

// Stage keeps the rows under the attempt's name.
func (t *Target) Stage(_ context.Context, out sink.Output) (sink.Staged, error) {
	if err := t.Proc.Call("target.stage " + t.Name); err != nil {
		return nil, err
	}
	var rows []Row
	var refused []sink.Refusal
	for _, so := range out.Sinks {
		for i, l := range so.Lanes {
			rows = append(rows, l.(*lane).rows...)
			for k, r := range l.(*lane).rows {
				if t.Refuse != nil && t.Refuse(r.Value) && (t.AtOnce == 0 || len(refused) < t.AtOnce) {
					m := &sink.Misfit{Code: "constraint", Column: "c", Reason: "no " + r.Value}
					refused = append(refused, sink.Refusal{Sink: so.Name, Lane: i, Row: int64(k), Misfit: m})
				}
			}
		}
	}
	if len(refused) > 0 {
		why := &sink.Refused{Rows: refused}
		if t.Curt {
			return nil, fmt.Errorf("target %s: %w", t.Name, why)
		}
		why.Err = errors.New("a constraint is broken")
		return nil, fault.New("sim.refused", "target "+t.Name, why, "mend the rows or set them aside")
	}
	t.Store.mu.Lock()
	defer t.Store.mu.Unlock()
	if t.epoch != t.Store.epoch {
		return nil, fmt.Errorf("target %s: fenced", t.Name)
	}
	key := fmt.Sprintf("%d-%s", out.Batch, out.Attempt)
	t.Store.staged[key] = rows
	return json.Marshal(key)
}

// Publish moves staged rows to the published ones, once.
func (t *Target) Publish(_ context.Context, d *checkpoint.Decision, st sink.Staged) error {
	if err := t.Proc.Call("target.publish " + t.Name); err != nil {
		return err
	}
	t.Store.mu.Lock()
	if err := t.publish(d, st); err != nil {
		t.Store.mu.Unlock()
		return err
	}
	t.Store.mu.Unlock()
	return t.Proc.Call("target.published " + t.Name)
}

func (t *Target) publish(d *checkpoint.Decision, st sink.Staged) error {
	s := t.Store
	if t.epoch != s.epoch {
		return fmt.Errorf("target %s: fenced", t.Name)
	}
	exact := t.Trait.Guarantee == sink.ExactlyOnce
	if last := s.known(); exact && last.Batch == d.Batch {
		if last.Digest != d.Digest {
			return fmt.Errorf("target %s: batch %d is there with another digest", t.Name, d.Batch)
		}
		return nil
	}
	var key string
	if err := json.Unmarshal(st, &key); err != nil {
		return fmt.Errorf("target %s: read staged: %w", t.Name, err)
	}
	rows, ok := s.staged[key]
	if !ok {
		return fmt.Errorf("target %s: %w", t.Name, sink.ErrLost)
	}
	s.published = append(s.published, Published{Batch: d.Batch, Digest: d.Digest, Rows: rows, unknown: !exact})
	delete(s.staged, key)
	return nil
}

// Abort drops what is staged for a batch.
func (t *Target) Abort(_ context.Context, b checkpoint.BatchID) error {
	if err := t.Proc.Call("target.abort " + t.Name); err != nil {
		return err
	}
	t.Store.mu.Lock()
	defer t.Store.mu.Unlock()
	for k := range t.Store.staged {
		if strings.HasPrefix(k, fmt.Sprintf("%d-", b)) {
			delete(t.Store.staged, k)
		}
	}
	return nil
}

// Sealed does nothing.
func (t *Target) Sealed(context.Context, checkpoint.BatchID) error {
	return t.Proc.Call("target.sealed " + t.Name)
}

// Close does nothing.
func (t *Target) Close() error { return nil }

type lane struct {
	sink   string
	misfit string
	most   int
	rows   []Row
	bytes  int64
}

func (l *lane) Append(r *abi.Record) error {
	if l.misfit != "" && strings.HasPrefix(string(r.Value), l.misfit) {
		return &sink.Misfit{Code: "type", Column: "c", Reason: "does not fit"}
	}
	if l.most > 0 && len(r.Key)+len(r.Value) > l.most {
		return &sink.Misfit{Code: "length", Reason: fmt.Sprintf("%d bytes, the most is %d", len(r.Key)+len(r.Value), l.most)}
	}
	l.rows = append(l.rows, Row{Sink: l.sink, Value: string(r.Value)})
	l.bytes += int64(len(r.Value))
	return nil
}

func (l *lane) Reset()       { l.rows, l.bytes = nil, 0 }
func (l *lane) Rows() int64  { return int64(len(l.rows)) }
func (l *lane) Bytes() int64 { return l.bytes }
