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

// Mode says what a line is.
type Mode string

// The modes.
const (
	Append    Mode = "append"    // a value
	Upsert    Mode = "upsert"    // an object of the key and the value, which is null for a deletion
	Changelog Mode = "changelog" // a value, or the row of a deletion
)

// Config describes a sink. Sink and Out are needed.
type Config struct {
	// Sink is the sink's name, and the target's id.
	Sink string
	Out  io.Writer
	Mode Mode // Append when it is ""
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

type lane struct {
	lines   rows.Lines
	mode    Mode
	scratch []byte
}

// Append implements sink.Lane.
func (l *lane) Append(r *abi.Record) (err error) {
	switch {
	case l.mode == Upsert:
		if r.Value != nil && !abi.ValidJSON(r.Value) {
			return l.lines.Append(r.Value) // it is refused there, in words for values
		}
		l.scratch, err = rows.AppendKeyed(l.scratch[:0], r.Key, r.Value)
	case l.mode == Changelog && r.Value == nil:
		l.scratch, err = rows.AppendDeletion(l.scratch[:0], r.Key)
	default:
		return l.lines.Append(r.Value)
	}
	if err != nil {
		return err
	}
	return l.lines.Append(l.scratch)
}

func (l *lane) Reset()       { l.lines.Reset() }
func (l *lane) Rows() int64  { return int64(l.lines.Len()) }
func (l *lane) Bytes() int64 { return l.lines.Bytes() }

// NewLane returns an empty lane.
func (t *Target) NewLane(name string) (sink.Lane, error) {
	if name != t.cfg.Sink {
		return nil, fmt.Errorf("target %s has no sink %q", t.cfg.Sink, name)
	}
	return &lane{mode: t.cfg.Mode}, nil
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
