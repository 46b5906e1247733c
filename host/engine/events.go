package engine

import (
	"time"

	"github.com/wasmill/wasmill/checkpoint"
)

// Events is the one hook for logs, metrics, progress and tests: functions that are called in the batch's own goroutine and
// must be quick. A nil function is not called.
type Events struct {
	// Opened is called when an engine begins to open, with the query it runs.
	Opened func(query string)
	// Step is called before (done false) and after (done true) each step of a batch's life.
	Step func(batch checkpoint.BatchID, step Step, done bool)
	// Batch is called when a batch is sealed.
	Batch func(BatchStats)
	// Verified is called for each batch that was run again on the other engine, with the difference where there is one.
	Verified func(batch checkpoint.BatchID, differs error)
	// Recovered is called for each thing that recovery found to do.
	Recovered func(Recovery)
	// Warning is called for what is reported and not fatal, also beside a batch.
	Warning func(op string, err error)
}

// Step names a step of a batch's life.
type Step string

// The steps, in order.
const (
	StepPlan    Step = "plan"
	StepRun     Step = "run"
	StepStage   Step = "stage"
	StepDecide  Step = "decide"
	StepPublish Step = "publish"
	StepSeal    Step = "seal"
	StepRecover Step = "recover"
)

// BatchStats is what can be said of a sealed batch.
type BatchStats struct {
	Batch  checkpoint.BatchID
	TimeMS int64
	// WatermarkMS is that of the plan; 0 none yet.
	WatermarkMS int64
	Replayed    bool // run again by recovery
	Digest      string
	Sources     []SourceStats
	Sinks       []SinkStats
	Stages      []StageStats // in topological order; none when nothing ran, as recovery published what was staged
	Skipped     int64        // records dropped under policy skip
	Letters     int64        // records set aside as dead letters
	Poison      int64        // of them: records that a lane was started again without
	Restarts    int64        // lane runs started again
	Steps       map[Step]time.Duration
	Total       time.Duration
}

// largest is how many records the source gave that gave most.
func (s *BatchStats) largest() int64 {
	var n int64
	for i := range s.Sources {
		n = max(n, s.Sources[i].Records)
	}
	return n
}

// SourceStats is one source's part of a batch.
type SourceStats struct {
	Name       string
	Start, End checkpoint.Position
	Records    int64
	// WatermarkMS is the source's own after the batch, NewestMS the latest event time in it; 0 none. Idle: it gave no record
	// for longer than it may.
	WatermarkMS, NewestMS int64
	Idle                  bool
}

// SinkStats is one sink's part of a batch.
type SinkStats struct {
	Name    string
	Records int64
}

// Recovery is one thing that recovery did.
type Recovery struct {
	Batch  checkpoint.BatchID
	Target string // "" when it concerns the batch
	Rung   string // none, done, published, spool, rerun, undecided, skipped, forced, raised
	Detail string
}

func (e *Events) opened(query string) {
	if e != nil && e.Opened != nil {
		e.Opened(query)
	}
}

func (e *Events) step(b checkpoint.BatchID, s Step, done bool) {
	if e != nil && e.Step != nil {
		e.Step(b, s, done)
	}
}

func (e *Events) batch(s BatchStats) {
	if e != nil && e.Batch != nil {
		e.Batch(s)
	}
}

func (e *Events) verified(b checkpoint.BatchID, differs error) {
	if e != nil && e.Verified != nil {
		e.Verified(b, differs)
	}
}

func (e *Events) recovered(r Recovery) {
	if e != nil && e.Recovered != nil {
		e.Recovered(r)
	}
}

func (e *Events) warning(op string, err error) {
	if e != nil && e.Warning != nil && err != nil {
		e.Warning(op, err)
	}
}
