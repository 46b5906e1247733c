// Package source is the seam between the engine and what it reads.
//
// A Source plans bounded ranges of one input and reads them again, identically. The drivers live in folders of their own
// (files, generator) and pass the suite in sourcetest. A source never decides when a batch runs and holds no progress
// that is not in the plan it is given; it must not skip, reorder or repeat a record of a planned range.
package source

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
)

// Limit is how much one batch may take of a source. Zero means no limit. At least one record is always planned.
type Limit struct {
	Records int64
	Bytes   int64
}

// Range is what a batch reads of a source: everything after From up to and including To.
type Range struct {
	From, To checkpoint.Position
}

// Split is a part of a range that is read in one go and in order. Detail is the driver's own.
type Split struct {
	Name   string // path, or topic and partition: for messages and dead letters
	Size   int64  // planned size in the driver's unit (bytes of files, offsets); lanes are cut by it
	Detail json.RawMessage
}

// Writer takes the records of a split. It copies what it needs: the record and its bytes may be reused after the call.
// An error from it ends the read and is returned by Read unchanged.
type Writer interface {
	// Write takes one record: Key, Value, Headers, Offset, Partition and, when the source has one of its own, EventTime.
	Write(r *abi.Record) error
	// Reject takes what lies at a record's place and cannot be one (a line over 16 MiB, a row that does not decode).
	// Value may be cut. Code is a stable word, reason a sentence.
	Reject(r *abi.Record, code, reason string) error
}

// Source is one input of a job. Latest, Release and Freeze are called by one goroutine; Splits and Read also in parallel
// with them and with each other.
type Source interface {
	// Latest returns the furthest end after from that can be planned now within limit, or from itself when there is
	// nothing new. What it returns must be readable for as long as a retained plan names it.
	Latest(ctx context.Context, from checkpoint.Position, limit Limit) (checkpoint.Position, error)
	// Splits cuts a range in fixed order: the same range gives the same splits, in any process.
	Splits(ctx context.Context, r Range) ([]Split, error)
	// Read delivers exactly the records of s in order, or fails with an error that names s. An input that changed since it
	// was planned is a *ChangedError.
	Read(ctx context.Context, s Split, to Writer) error
	// Release says that everything up to the position is sealed. A source may tidy up; an error is reported, not fatal.
	Release(ctx context.Context, upTo checkpoint.Position) error
	// Freeze makes what exists at this moment the end of the input: Latest never plans beyond it (trigger availableNow).
	Freeze(ctx context.Context) error
	Close() error
}

// Notifier is a source that knows when something new has come: the engine then waits for it and does not ask over and over.
type Notifier interface {
	// News returns a channel of one place that holds a value when Latest may find more than it did the last time. A value
	// too many does no harm. It is the same channel for the life of the source.
	News() <-chan struct{}
}

// Ender is a source that may come to an end.
type Ender interface {
	// Ended reports whether a position is the end of the input: nothing will ever come after it in this run.
	Ended(at checkpoint.Position) bool
}

// Partitioned is a source whose parts go forward side by side, each in its own order of event time, as the partitions of topics
// do. While one lags behind, what it still holds is not late because others are further.
type Partitioned interface {
	// Behind names the parts, as their splits are named, that held more than was planned up to a position. It is not known of
	// a position that another process has planned.
	Behind(at checkpoint.Position) (parts []string, known bool)
}

// Reviewer is a source that can say what of a planned range is no longer there, before the range is planned anew without it.
type Reviewer interface {
	// Review hands what is gone of a range to whatever the driver reports a *LeftOutError to.
	Review(ctx context.Context, r Range)
}

// Mendable is a source whose records can be mended where they lie.
type Mendable interface {
	// Mend says how to mend a record that cannot be processed and go on, as what follows "or mend ".
	Mend() string
}

// Remarker is a source that has a word about itself that is no error.
type Remarker interface {
	// Remark says what a person should know of an input in which nothing new was found after a position; "" for nothing.
	Remark(at checkpoint.Position) string
}

// LeftOutError says what a source goes on without, as it was told to: it is reported, not returned.
type LeftOutError struct {
	Split  string
	Detail string // what happened
	// Records and Bytes are how much is left out, -1 where it is not known. Unit names the records: "line", "row".
	Records, Bytes int64
	Unit           string
}

func (e *LeftOutError) Error() string { return e.Split + ": " + e.Detail + ": left out: " + e.Amount() }

// Amount is how much is left out, in words.
func (e *LeftOutError) Amount() string {
	var parts []string
	if e.Records >= 0 {
		parts = append(parts, counted(e.Records, e.Unit))
	}
	if e.Bytes >= 0 {
		parts = append(parts, counted(e.Bytes, "byte"))
	}
	if len(parts) == 0 {
		return "how much is not known"
	}
	return strings.Join(parts, ", ")
}

func counted(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// ChangedError says that an input is no longer what the plan pinned: it shrank, vanished, grew inside the planned range
// or was replaced.
type ChangedError struct {
	Split  string
	Detail string
}

func (e *ChangedError) Error() string { return e.Split + ": " + e.Detail }
