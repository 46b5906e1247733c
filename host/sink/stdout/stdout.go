// Package stdout prints a sink's values, one JSON text a line, to a writer that cannot take anything back.
//
// It is at least once: a batch whose printing was cut off is printed again as a whole. The package knows nothing of
// terminals or formats of tables, and never decides whether a batch is printed.
package stdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/sink"
)

// The codes of this package's faults.
const (
	CodeConfig = "stdout.config" // the settings are not complete
	CodeWrite  = "stdout.write"  // the writer took no more
)

// Config describes a sink. All fields are needed.
type Config struct {
	// Sink is the sink's name, and the target's id.
	Sink string
	Out  io.Writer
}

// Target prints one sink's values. It implements sink.Target.
type Target struct {
	cfg    Config
	staged bool
	batch  checkpoint.BatchID
	data   []byte // what is staged; it dies with the process
}

var _ sink.Target = (*Target)(nil)

// New checks the settings and returns the target.
func New(cfg Config) (*Target, error) {
	if cfg.Sink == "" || cfg.Out == nil {
		return nil, fault.New(CodeConfig, "sink "+cfg.Sink, errors.New("a name and a writer are needed"), "correct the sink in the job file")
	}
	return &Target{cfg: cfg}, nil
}

// ID returns the sink's name.
func (t *Target) ID() string { return t.cfg.Sink }

// Traits returns what the target promises.
func (t *Target) Traits() sink.Traits {
	return sink.Traits{Guarantee: sink.AtLeastOnce, Volatile: true, Why: "what is printed cannot be taken back, nor can it be known to have arrived"}
}

type lane struct{ lines rows.Lines }

func (l *lane) Append(r *abi.Record) error { return l.lines.Append(r.Value) }
func (l *lane) Reset()                     { l.lines.Reset() }
func (l *lane) Rows() int64                { return int64(l.lines.Len()) }
func (l *lane) Bytes() int64               { return l.lines.Bytes() }

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	if name != t.cfg.Sink {
		return nil, fmt.Errorf("target %s has no sink %q", t.cfg.Sink, name)
	}
	return &lane{}, nil
}

// Open forgets what was staged. Nothing is known of what was printed.
func (t *Target) Open(context.Context, sink.Owner) (sink.Published, error) {
	t.staged = false
	return sink.Published{Batch: checkpoint.NoBatch}, nil
}

// record is what a decision keeps.
type record struct {
	Version int   `json:"version"`
	Bytes   int64 `json:"bytes"`
}

const recordVersion = 1

// Stage copies the batch's lines.
func (t *Target) Stage(_ context.Context, out sink.Output) (sink.Staged, error) {
	t.staged, t.batch, t.data = false, out.Batch, t.data[:0]
	for _, s := range out.Sinks {
		if s.Name != t.cfg.Sink {
			return nil, fmt.Errorf("stage batch %d: target %s has no sink %q", out.Batch, t.cfg.Sink, s.Name)
		}
		for _, l := range s.Lanes {
			mine, ok := l.(*lane)
			if !ok {
				return nil, fmt.Errorf("stage batch %d: a lane of another target: %T", out.Batch, l)
			}
			t.data = append(t.data, mine.lines.Data()...)
		}
	}
	t.staged = true
	return json.Marshal(record{Version: recordVersion, Bytes: int64(len(t.data))})
}

// Publish prints the batch.
func (t *Target) Publish(_ context.Context, d *checkpoint.Decision, _ sink.Staged) error {
	if !t.staged || t.batch != d.Batch {
		return fmt.Errorf("publish batch %d: %w", d.Batch, sink.ErrLost)
	}
	if _, err := t.cfg.Out.Write(t.data); err != nil {
		return fault.New(CodeWrite, "sink "+t.cfg.Sink, fmt.Errorf("publish batch %d: %w", d.Batch, err), "see why the output was closed, and start again")
	}
	return nil
}

// Abort forgets what was staged for the batch.
func (t *Target) Abort(_ context.Context, batch checkpoint.BatchID) error {
	if t.batch == batch {
		t.staged = false
	}
	return nil
}

// Sealed has nothing to tidy.
func (t *Target) Sealed(context.Context, checkpoint.BatchID) error { return nil }

// Close leaves the writer open.
func (t *Target) Close() error { return nil }
