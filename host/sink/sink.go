// Package sink is the seam between the engine and what it publishes to.
//
// A Target commits the output of its sinks atomically, once per decided batch. The drivers live in folders of their own
// (files, stdout) and pass the suite in sinktest. A target never sees a batch id twice with different content, unless
// the earlier attempt was aborted, and must be idempotent per (query id, target, batch).
package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
)

// Owner is who opens a target: the query whose output it takes.
type Owner struct {
	Query string // query id, a UUID
	Job   string // the job's name, for people
	// Next is the first batch that may still be published: everything below it is sealed.
	Next checkpoint.BatchID
}

// Published is the newest batch that a target has published for its owner.
type Published struct {
	Batch  checkpoint.BatchID // checkpoint.NoBatch when there is none
	Digest string             // the batch digest that its marker carries
}

// Guarantee is what a target promises about each record.
type Guarantee string

// The guarantees.
const (
	ExactlyOnce Guarantee = "exactly-once"
	AtLeastOnce Guarantee = "at-least-once"
)

// Traits are a target's fixed properties.
type Traits struct {
	Guarantee Guarantee
	// Volatile: what is staged dies with the process.
	Volatile bool
	// Why is the reason for the guarantee in one sentence, shown by `wasmill plan`.
	Why string
	// Chosen: the job file says which guarantee it is, and may say another one at the next start.
	Chosen bool
	// PutBack says what to put back when the target knows of less than the checkpoint says that it has; "" is the output.
	PutBack string
}

// Output is what one batch hands to a target. The target owns the lanes until Stage returns.
type Output struct {
	Batch   checkpoint.BatchID
	TimeMS  int64
	Digest  string // batch digest
	Attempt string // 8 hex digits, new for every attempt
	Sinks   []SinkOutput
}

// SinkOutput is one sink's part: its lanes in lane order, those without rows left out.
type SinkOutput struct {
	Name  string
	Lanes []Lane
}

// Lane collects one lane's rows of one sink for one batch, in memory. It is used by one goroutine at a time.
type Lane interface {
	// Append converts and takes a record; its bytes are only valid during the call. A record that does not fit is a
	// *Misfit and leaves the lane as it was.
	Append(r *abi.Record) error
	// Reset forgets all rows, to start the lane again or to use it for another batch.
	Reset()
	Rows() int64
	Bytes() int64 // memory held by the rows
}

// Columned is a Lane whose rows have columns of types.
type Columned interface {
	Lane
	// Binary reports whether the column that the path leads to takes bytes, in base64. Behind the column the path has the
	// fields of structs; it passes through lists.
	Binary(path ...string) bool
}

// Misfit says why a record cannot become a row of its sink.
type Misfit struct {
	Code   string // a stable word: not_json, missing, type, range, precision, length
	Column string
	Reason string
}

func (m *Misfit) Error() string {
	if m.Column == "" {
		return m.Reason
	}
	return m.Column + ": " + m.Reason
}

// Refusal is a row that its lane took and the target cannot take.
type Refusal struct {
	Sink string
	// Lane is the row's lane among those of the sink in Output, Row its place among the rows that the lane took.
	Lane   int
	Row    int64
	Misfit *Misfit
}

// Refused is an error of Stage: rows that a lane could not know to be wrong, as they break a constraint of a table. Nothing
// is staged; the batch could be without them.
type Refused struct {
	Rows []Refusal // at least one
	More bool      // not all of them were looked for
	Err  error     // what the target says about the first
}

func (r *Refused) Error() string {
	f := r.Rows[0]
	text := fmt.Sprintf("sink %s, row %d of lane %d: %v", f.Sink, f.Row, f.Lane, f.Misfit)
	switch {
	case r.More:
		text += fmt.Sprintf(" (and %d or more others)", len(r.Rows)-1)
	case len(r.Rows) > 1:
		text += fmt.Sprintf(" (and %d others)", len(r.Rows)-1)
	}
	if r.Err == nil {
		return text
	}
	return text + ": " + r.Err.Error()
}

// Unwrap returns what the target says about the first row.
func (r *Refused) Unwrap() error { return r.Err }

// Staged is what a target needs to find again what it staged: its own JSON, kept in the decision.
type Staged = json.RawMessage

// ErrLost says that what was staged is gone or no longer fits, so that publishing needs the batch run again.
var ErrLost = errors.New("what was staged is lost")

// Target publishes the output of its sinks. All methods but NewLane are called by one goroutine.
type Target interface {
	// ID is the name that markers and the checkpoint know the target by.
	ID() string
	Traits() Traits
	// NewLane returns an empty lane for one of the target's sinks. It may be called at any time.
	NewLane(sink string) (Lane, error)
	// Open takes the target over for an owner, shutting out earlier processes, and says what is published. It fails when
	// the target belongs to another query.
	Open(ctx context.Context, o Owner) (Published, error)
	// Stage prepares out without making it visible. nil: the data can no longer make Publish fail. A *Refused (wrapped)
	// names rows that can never be published; what was staged of the batch is then dropped.
	Stage(ctx context.Context, out Output) (Staged, error)
	// Publish makes a staged batch visible, once: it may be called again for the same decision. ErrLost (wrapped) when
	// what was staged is gone.
	Publish(ctx context.Context, d *checkpoint.Decision, s Staged) error
	// Abort drops what was staged for a batch, if anything. An error is reported, not fatal.
	Abort(ctx context.Context, batch checkpoint.BatchID) error
	// Sealed says that everything up to batch is published everywhere: the time to sweep orphans and apply retention. An
	// error is reported, not fatal.
	Sealed(ctx context.Context, batch checkpoint.BatchID) error
	Close() error
}
