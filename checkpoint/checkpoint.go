// Package checkpoint keeps a job's progress in a directory: what each batch reads (offsets/N), what it came to
// (commits/N), and the revisions, modules and source notes that a replay needs.
//
// The text formats are Spark Structured Streaming's v1 with keys of our own beside Spark's. The package writes records,
// reads them back, verifies and repairs them, and keeps their number bounded; it does not know what a source, a transform
// or a sink is, and never decides what a batch does. All file access goes through checkpoint/durable.
//
//	metadata           the query id; written once
//	wasmill.json       the job's name and the version of the directory
//	offsets/N          plans; commits/N decisions; `.N.<reason>-<attempt>` beside them are superseded ones
//	sources/<i>/       what source number i must remember
//	revisions/         canonical JSON by sha256; modules/ likewise
//	retained           the oldest batch that is kept; older files are left-overs
//	spool/<N>-<attempt>  what a batch puts out to targets that forget what they have staged, until it is published
//	schemas/<connection>/  what a schema registry said: <id>.json, and the schemas that sinks write by
//	published          the last batch seen published by each target; a check, not the truth
//	resolutions/       what a user chose for a target that could not publish
//	repairs/           what `checkpoint repair` has done
//	lock               held for life by the process that runs the job
package checkpoint

import "encoding/json"

// BatchID numbers the micro-batches of a query from 0 without gaps. NoBatch stands for "none yet".
type BatchID int64

// NoBatch is the id before the first batch.
const NoBatch BatchID = -1

// Position is where a source stands. Line is the source's one line of JSON in offsets/N, in Spark's shape; Extra is a
// JSON text for what Spark's line cannot hold, kept in conf `wasmill.source.<name>`. The zero Position is the beginning.
type Position struct {
	Line  string
	Extra string
}

// IsZero reports whether nothing was ever planned for the source.
func (p Position) IsZero() bool { return p == Position{} }

// SourcePosition is one source's end in a plan. Its start is its end in the plan before.
type SourcePosition struct {
	Name string
	End  Position
}

// Plan is the durable record offsets/N: what batch N reads, written before any record of it is processed.
type Plan struct {
	Batch       BatchID
	TimeMS      int64 // batch time, milliseconds since 1970
	WatermarkMS int64 // 0 none yet
	// Late are, by transform, the watermarks in milliseconds that decide in this batch what is late, where that is not the
	// watermark of the plan before: a transform that they read still has timers that were due under it.
	Late    map[string]int64
	Refused *Refused // rows that a target did not take in an earlier attempt; nil when there are none
	// Reads are, by source, marks of the settings that the plan was made with.
	Reads   map[string]string
	Conf    map[string]string // further keys of conf; the package adds its own and Spark's
	Sources []SourcePosition  // by source number
}

// Refused are the rows of a batch that a target refused when they were staged: they are set aside, also when the batch runs
// again. Rows are known by their places, which only hold for the revision that ran.
type Refused struct {
	Revision string       `json:"revision"`
	Rows     []RefusedRow `json:"rows"`
}

// RefusedRow is one of them.
type RefusedRow struct {
	Sink string `json:"sink"`
	Lane int    `json:"lane"`
	// Row is its place among all records that came for the sink in the lane.
	Row    int64  `json:"row"`
	Code   string `json:"code"`
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
}

// Position returns the named source's end, or the zero Position when the plan does not know it.
func (p *Plan) Position(name string) Position {
	if p == nil {
		return Position{}
	}
	for _, s := range p.Sources {
		if s.Name == name {
			return s.End
		}
	}
	return Position{}
}

// Decision is the durable record commits/N: the settled outcome of batch N, which will be published.
type Decision struct {
	Batch           BatchID
	NextWatermarkMS int64
	Digest          string                   // batch digest, 32 hex digits; equal in every marker
	Revision        string                   // sha256 of the revision, 64 hex digits
	Semantics       int                      // the host's semantics number that ran it
	Inputs          map[string]Digest        // by source
	Outputs         map[string]Digest        // by sink
	State           string                   // digest of what the batch changed of the state, "" when it changed nothing
	TimersLeft      []string                 // transforms that more timers were due for than one batch hands over
	StateLast       *BatchID                 // the newest batch, this one included, that changed the state; nil none
	Targets         map[string]TargetOutcome // by target id
	Sources         map[string]SourceOutcome // by source name
	Attempt         string                   // 8 hex digits; never seen by a guest
	Host            Host                     // who decided; in no digest
}

// Host is who ran a batch: for people, and for the words of a replay that comes to something else. It determines nothing.
// The zero Host is that of a decision whose writer did not note it.
type Host struct {
	Version string `json:"version"` // of the program
	Engine  string `json:"engine"`  // compiler or interpreter
	Arch    string `json:"arch"`    // of the processor, in Go's words
}

// Digest is a digest of logical records with their count.
type Digest struct {
	Records int64  `json:"records"`
	XXH3    string `json:"xxh3"` // 32 hex digits
}

// TargetOutcome is what one target staged for a batch. Staged is the target's own JSON, nil when it was not called;
// Last is the last batch it was called for, this one included.
type TargetOutcome struct {
	Staged json.RawMessage `json:"staged,omitempty"`
	Last   BatchID         `json:"last"`
	Digest string          `json:"digest,omitempty"` // batch digest of Last
	Sinks  []string        `json:"sinks,omitempty"`  // whose records this batch has for it, in byte order
	// Guarantee is what the target promised when the batch was decided, where a job chooses it; "" where it does not, or in
	// records of versions that did not note it.
	Guarantee string `json:"guarantee,omitempty"`
}

// SourceOutcome is a source's event-time standing after a batch.
type SourceOutcome struct {
	Records int64 `json:"records"`
	// WatermarkMS is the source's own watermark: its latest event time less its lateness.
	WatermarkMS int64 `json:"watermark"`
	// Idle: it gave no record for longer than it may, and is left out of the watermark of the job.
	Idle bool `json:"idle,omitempty"`
	// LastMS is the time of the last batch that read on in it, or of its first batch; 0 for a source without an event time.
	LastMS int64 `json:"last,omitempty"`
	// Parts are the latest event times, in milliseconds, of those parts of the source that lag behind.
	Parts map[string]int64 `json:"parts,omitempty"`
}
