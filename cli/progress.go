package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/source"
)

// Ways to show progress.
const (
	progressAuto = "auto"
	progressJSON = "json"
	progressNone = "none"
)

// progress shows a person or a program how a job gets on.
type progress interface {
	start(query string)
	// verified is told of each batch that the other engine agrees on, before that batch.
	verified(checkpoint.BatchID)
	batch(engine.BatchStats)
	close(failed error)
}

type noProgress struct{}

func (noProgress) start(string)                {}
func (noProgress) verified(checkpoint.BatchID) {}
func (noProgress) batch(engine.BatchStats)     {}
func (noProgress) close(error)                 {}

// lineProgress rewrites one line on a terminal, and leaves a summary at the end.
type lineProgress struct {
	w       io.Writer
	now     func() time.Time
	began   time.Time
	batches int64
	in, out int64
	letters int64
	skipped int64
	late    int64       // records that came late, and that nobody takes
	allowed func() bool // a change that needs the user's word waits for the next batch; nil: none
	dead    string      // the sink of the dead letters, which are not counted as out
	last    int64
	tty     bool
	lags    *sourceLags // nil: not known
	state   *stateWatch // nil: no state
	left    []*source.LeftOutError
	more    int64 // that are not in left
	// verifies is set when a share of the batches is verified, and checked counts those.
	verifies bool
	checked  int64
}

func (p *lineProgress) start(string) {
	if p.began.IsZero() {
		p.began = p.now()
	}
}

func (p *lineProgress) verified(checkpoint.BatchID) { p.checked++ }

func (p *lineProgress) batch(s engine.BatchStats) {
	p.batches++
	p.last = int64(s.Batch)
	p.in += inputOf(s)
	for _, k := range s.Sinks {
		if k.Name != p.dead {
			p.out += k.Records
		}
	}
	p.letters += s.Letters
	p.skipped += s.Skipped
	if p.state != nil {
		for i := range s.Stages {
			p.late += p.state.dropped(&s.Stages[i])
		}
	}
	if p.tty {
		fmt.Fprintf(p.w, "\r\x1b[K%s", p.text(s.Total))
	}
}

func (p *lineProgress) text(last time.Duration) string {
	elapsed := max(p.now().Sub(p.began), time.Millisecond)
	return fmt.Sprintf("batch %d   %s in, %s out, %s   %s records/s   last batch %s",
		p.last, count(p.in, "record", "records"), thousands(p.out), p.asideText()+p.verifiedText(),
		thousands(int64(float64(p.in)/elapsed.Seconds())), last.Round(100*time.Microsecond)) + p.lagText() + p.stateText()
}

// stateText says how much room the job's state takes, where it keeps any.
func (p *lineProgress) stateText() string {
	s, ok := p.state.stats()
	if !ok {
		return ""
	}
	return "   state of " + count(s.Bytes, "byte", "bytes") + " on disk"
}

// lagText says how much lies in the sources that is in no sealed batch, where they can say.
func (p *lineProgress) lagText() string {
	n, known := p.lags.behind()
	if !known {
		return ""
	}
	return "   " + thousands(n) + " behind"
}

func (p *lineProgress) close(failed error) {
	if p.began.IsZero() {
		return
	}
	if p.tty {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	elapsed := p.now().Sub(p.began).Round(time.Millisecond)
	switch {
	case p.batches == 0 && failed != nil:
		return
	case p.batches == 0:
		fmt.Fprintf(p.w, "nothing new (%s)\n", elapsed)
		if p.allowed != nil && p.allowed() {
			fmt.Fprintln(p.w, "a change that needs your word is made by the next batch: it needs --allow-changes again")
		}
		return
	case failed != nil:
		fmt.Fprintf(p.w, "before it failed: ")
	}
	fmt.Fprintf(p.w, "%s, %s in, %s out, %s", count(p.batches, "batch", "batches"), count(p.in, "record", "records"), thousands(p.out), p.asideText()+p.verifiedText())
	fmt.Fprintf(p.w, ", in %s\n", elapsed)
	p.leftOut()
}

// maxLeftOut bounds the lines that say what was left out. The log names all.
const maxLeftOut = 10

// leftOut says what sources went on without.
func (p *lineProgress) leftOut() {
	for _, l := range p.left {
		fmt.Fprintf(p.w, "LEFT OUT of %s: %s\n", printable(l.Split), l.Amount())
	}
	if p.more > 0 {
		fmt.Fprintf(p.w, "LEFT OUT %s more, which the log names\n", count(p.more, "time", "times"))
	}
}

// verifiedText says how many batches were verified, where any can be.
func (p *lineProgress) verifiedText() string {
	if !p.verifies {
		return ""
	}
	return ", " + count(p.checked, "batch", "batches") + " verified"
}

// count writes a number with its noun.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// asideText counts the records that did not get through.
func (p *lineProgress) asideText() string {
	text := thousands(p.letters) + " set aside"
	if p.skipped > 0 {
		text += ", " + thousands(p.skipped) + " skipped"
	}
	if p.late > 0 {
		text += ", " + thousands(p.late) + " late and dropped"
	}
	return text
}

func inputOf(s engine.BatchStats) (n int64) {
	for _, src := range s.Sources {
		n += src.Records
	}
	return n
}

// thousands writes a count with separators.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// jsonProgress writes one object a batch, in the shape of Spark's StreamingQueryProgress with a member `wasmill` of our own.
// Readers must ignore members that they do not know.
type jsonProgress struct {
	w       io.Writer
	job     string
	query   string
	run     string
	sources map[string]string // descriptions
	sink    string
	lags    *sourceLags         // nil: not known
	state   *stateWatch         // nil: no state
	before  time.Time           // start of the batch before
	checked *checkpoint.BatchID // the last one that was verified
}

type sparkProgress struct {
	ID                     string           `json:"id"`
	RunID                  string           `json:"runId"`
	Name                   string           `json:"name"`
	Timestamp              string           `json:"timestamp"`
	BatchID                int64            `json:"batchId"`
	BatchDuration          int64            `json:"batchDuration"`
	NumInputRows           int64            `json:"numInputRows"`
	InputRowsPerSecond     float64          `json:"inputRowsPerSecond"`
	ProcessedRowsPerSecond float64          `json:"processedRowsPerSecond"`
	DurationMS             map[string]int64 `json:"durationMs"`
	// EventTime is left out while no record has one.
	EventTime      map[string]string `json:"eventTime,omitempty"`
	StateOperators []sparkOperator   `json:"stateOperators"`
	Sources        []sparkSource     `json:"sources"`
	Sink           sparkSink         `json:"sink"`
	Wasmill        wasmillProgress   `json:"wasmill"`
}

type sparkSource struct {
	Description            string          `json:"description"`
	StartOffset            json.RawMessage `json:"startOffset"`
	EndOffset              json.RawMessage `json:"endOffset"`
	LatestOffset           json.RawMessage `json:"latestOffset"`
	NumInputRows           int64           `json:"numInputRows"`
	InputRowsPerSecond     float64         `json:"inputRowsPerSecond"`
	ProcessedRowsPerSecond float64         `json:"processedRowsPerSecond"`
	// Metrics are how far behind a Kafka source is, as texts.
	Metrics map[string]string `json:"metrics,omitempty"`
}

type sparkSink struct {
	Description   string `json:"description"`
	NumOutputRows int64  `json:"numOutputRows"`
}

type wasmillProgress struct {
	Digest string `json:"digest"`
	// DurationUS holds the batch's own steps and their total, in microseconds: finer than Spark's milliseconds.
	DurationUS map[string]int64 `json:"durationUs"`
	Sinks      map[string]int64 `json:"sinks"`
	Letters    int64            `json:"deadLetters"`
	Skipped    int64            `json:"skipped"`
	Restarts   int64            `json:"laneRestarts"`
	Replayed   bool             `json:"replayed"`
	Verified   bool             `json:"verified"` // run again on the other engine, with the same outcome
	// Transforms are in topological order; empty when nothing ran, as recovery published what was staged.
	Transforms []transformProgress `json:"transforms"`
}

// transformProgress is what a transform did and used in a batch, as the metrics count it.
type transformProgress struct {
	Name      string                 `json:"name"`
	Records   int64                  `json:"numInputRows"`
	Emitted   int64                  `json:"numOutputRows"`
	Ports     []int64                `json:"numOutputRowsByPort,omitempty"`
	Timers    int64                  `json:"timersFired,omitempty"`
	Updated   int64                  `json:"stateUpdated,omitempty"`
	Removed   int64                  `json:"stateRemoved,omitempty"`
	State     int64                  `json:"stateBytes,omitempty"` // that lanes held for the batch
	Instances int64                  `json:"instances"`
	Calls     uint64                 `json:"calls"`
	Fuel      uint64                 `json:"fuel"`
	Memory    int64                  `json:"memoryBytes"` // the most of one instance
	Output    int64                  `json:"outputBytes"`
	Log       int64                  `json:"logBytes"`
	Lost      int64                  `json:"logLinesDropped"`
	Traps     map[abi.TrapName]int64 `json:"traps,omitempty"`
	Failures  []string               `json:"failures,omitempty"` // the first ones
}

func (p *jsonProgress) start(query string) {
	p.query = query
	if p.run == "" {
		p.run = uuid.NewString()
	}
}

func (p *jsonProgress) close(error) {}

func (p *jsonProgress) verified(id checkpoint.BatchID) { p.checked = &id }

func (p *jsonProgress) batch(s engine.BatchStats) {
	began := time.UnixMilli(s.TimeMS).UTC()
	rows, took := inputOf(s), max(s.Total, time.Millisecond)
	rate := 0.0
	if gap := began.Sub(p.before); !p.before.IsZero() && gap > 0 {
		rate = perSecond(rows, gap)
	}
	p.before = began
	out := sparkProgress{
		ID: p.query, RunID: p.run, Name: p.job, Timestamp: began.Format("2006-01-02T15:04:05.000Z"), BatchID: int64(s.Batch),
		BatchDuration: s.Total.Milliseconds(), NumInputRows: rows, InputRowsPerSecond: rate, ProcessedRowsPerSecond: perSecond(rows, took),
		DurationMS: durations(s), EventTime: eventTimeOf(&s), StateOperators: p.operators(&s),
		Wasmill: wasmillProgress{
			Digest: s.Digest, DurationUS: micros(s), Letters: s.Letters, Skipped: s.Skipped, Restarts: s.Restarts, Replayed: s.Replayed, Verified: p.checked != nil && *p.checked == s.Batch, Sinks: map[string]int64{},
		},
		Sink: sparkSink{Description: p.sink},
	}
	out.Wasmill.Transforms = []transformProgress{}
	for _, s := range s.Stages {
		out.Wasmill.Transforms = append(out.Wasmill.Transforms, transformProgress(s))
	}
	for _, src := range s.Sources {
		latest, metrics := p.lags.spark(src.Name)
		out.Sources = append(out.Sources, sparkSource{
			Description: p.sources[src.Name], StartOffset: offset(src.Start.Line), EndOffset: offset(src.End.Line), LatestOffset: offset(string(latest)),
			NumInputRows: src.Records, InputRowsPerSecond: rate, ProcessedRowsPerSecond: perSecond(src.Records, took), Metrics: metrics,
		})
	}
	for _, k := range s.Sinks {
		out.Wasmill.Sinks[k.Name] = k.Records
		out.Sink.NumOutputRows += k.Records
	}
	text, err := json.Marshal(out)
	if err != nil {
		return // numbers and names always marshal
	}
	fmt.Fprintf(p.w, "%s\n", text)
}

// durations maps the steps of a batch to Spark's names and keeps our own beside them.
func durations(s engine.BatchStats) map[string]int64 {
	ms := func(steps ...engine.Step) (n int64) {
		for _, st := range steps {
			n += s.Steps[st].Microseconds()
		}
		return n / 1000
	}
	return map[string]int64{
		"walCommit": ms(engine.StepPlan), "addBatch": ms(engine.StepRun, engine.StepStage, engine.StepPublish),
		"commitOffsets": ms(engine.StepDecide), "triggerExecution": s.Total.Milliseconds(),
		"run": ms(engine.StepRun), "stage": ms(engine.StepStage), "publish": ms(engine.StepPublish),
	}
}

// micros is how long each step of a batch took.
func micros(s engine.BatchStats) map[string]int64 {
	out := map[string]int64{"total": s.Total.Microseconds()}
	for step, d := range s.Steps {
		out[string(step)] = d.Microseconds()
	}
	return out
}

func perSecond(n int64, d time.Duration) float64 {
	return math.Round(float64(n)/d.Seconds()*10) / 10
}

func offset(line string) json.RawMessage {
	if line == "" || line == "-" || !json.Valid([]byte(line)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(line)
}

// describe names a source as Spark's progress does.
func describe(s *job.Source) string {
	switch {
	case s.Files != nil:
		return "FileStreamSource[file:" + s.Files.Path + "]"
	case s.Kafka != nil && s.Kafka.Pattern != "":
		return "KafkaV2[SubscribePattern[" + s.Kafka.Pattern + "]]"
	case s.Kafka != nil:
		return "KafkaV2[Subscribe[" + strings.Join(s.Kafka.Topics, ", ") + "]]"
	case s.Delta != nil:
		return "DeltaSource[file:" + s.Delta.Path + "]"
	}
	return s.Name
}

// describeSink names a sink as Spark's progress does; "" for one that Spark has no name for.
func describeSink(s *job.Sink) string {
	switch {
	case s.Files != nil:
		return "FileSink[file:" + s.Files.Path + "]"
	case s.Delta != nil:
		return "DeltaSink[file:" + s.Delta.Path + "]"
	}
	return ""
}
