package job

import (
	"strconv"
	"time"
)

// APIVersion is the job file version that this package reads.
const APIVersion = "wasmill/v1"

// Job is a checked job file. Paths are absolute when Env.Dir was; names are unique and references resolve.
type Job struct {
	File        string // as given to Parse, for messages
	Dir         string // of the file, absolute when Env.Dir was
	Name        string
	Labels      map[string]string
	Checkpoint  string // directory
	Trigger     Trigger
	Lanes       int
	Sources     []Source
	Transforms  []Transform
	Sinks       []Sink
	Errors      ErrorPolicy
	Retention   Retention
	Spool       string // auto, always, never
	Connections []Connection

	places map[string]Pos
}

// mostRecords is what a batch may take of all sources together.
func (j *Job) mostRecords() int64 {
	n := int64(0)
	for i := range j.Sources {
		n += j.Sources[i].Batch.MaxRecords
	}
	return n
}

// When output is kept in the checkpoint until it is published.
const (
	SpoolAuto   = "auto"
	SpoolAlways = "always"
	SpoolNever  = "never"
)

// Pos is a place in a job file; lines and columns count from 1. The zero Pos is no place.
type Pos struct {
	Line, Column int
}

// Place returns "file:line:column" of a path such as "spec.transforms[0].module", or of its nearest parent in the file.
func (j *Job) Place(path string) string {
	p := nearest(j.places, path)
	return j.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Trigger says when a batch begins.
type Trigger struct {
	// Interval is the time from the start of one batch to the start of the next; 0 is back to back.
	Interval time.Duration
	// AvailableNow reads what exists at the start in as many batches as it takes, and ends.
	AvailableNow bool
	// MinRecords is how many there should be before a batch begins, of all sources together; 0 does not wait. What has come
	// waits for MaxDelay at most.
	MinRecords int64
	MaxDelay   time.Duration
}

// Source is one input. Exactly one of the pointers to a kind is set.
type Source struct {
	Name      string
	Files     *FilesSource
	Generator *GeneratorSource
	Kafka     *KafkaSource
	Delta     *DeltaSource
	EventTime *EventTime // nil: the source's own, if it has one
	Batch     Batch
	Attach    []string // headers to add: path, topic, partition
}

// FilesSource reads the files of a directory, or those that a glob matches.
type FilesSource struct {
	Path        string // a directory, or a pattern with * ? [ ] and ** for any number of folders
	Format      string // lines, jsonl, csv, parquet
	Compression string // auto, none, gzip, zstd
	CSV         CSV    // format csv only
	// Settle is how long a file must be unchanged before it is read. Under availableNow the default is 0.
	Settle     time.Duration
	OnDataLoss string // stop, skip
}

// CSV says how delimited text is laid out.
type CSV struct {
	Header    bool     // the first line names the columns
	Delimiter byte     // an ASCII character
	Columns   []string // names, instead of those of the header line; source only
}

// GeneratorSource makes records from a seed: the same seed and offset give the same record.
type GeneratorSource struct {
	Kind    string // orders, nexmark
	Seed    uint64
	Rate    int64    // records a second; 0 as many as a batch takes
	Records int64    // records in all; 0 without end
	Nexmark *Nexmark // kind nexmark only
}

// Nexmark says how the events of the benchmark Nexmark are.
type Nexmark struct {
	Only       string // person, auction or bid; "" all
	Flat       bool   // the value is the event's own object
	EventRate  int64  // events in a second of event time
	BaseMS     int64  // time of the first event
	OutOfOrder int64  // in groups of how many they are shuffled; 1 not
}

// EventTime says where a record's event time stands, and what follows from it. One of JSON and Timestamp is set.
type EventTime struct {
	JSON      string        // JSON pointer (RFC 6901) into the value
	Unit      string        // "" RFC 3339 text; else s, ms, us or ns of an integer since 1970
	Timestamp bool          // the time that the source itself gives a record
	Lateness  time.Duration // how far the watermark stays behind the newest event time
	Idle      time.Duration // after how long without a record the watermark goes on with the clock; 0 never
	Complete  bool          // when all is read, the watermark goes to the end of time
}

// Batch bounds what one batch takes of a source.
type Batch struct {
	MaxRecords int64
	MaxBytes   int64
}

// Transform is one WebAssembly stage.
type Transform struct {
	Name   string
	From   []Input
	Module Module
	Config []byte // canonical JSON, an object; {} when none is given
	Limits Limits
}

// Input is one entry of `from`: a source, a transform's first output, or a named port of a transform.
type Input struct {
	Name  string // of the source or transform
	Port  string // "" the only or first output
	KeyBy *KeyBy // nil: not keyed
}

// Keyed reports whether the transform is a keyed stage.
func (t *Transform) Keyed() bool { return len(t.From) > 0 && t.From[0].KeyBy != nil }

// Ref returns the input as it is written: name or name.port.
func (i Input) Ref() string {
	if i.Port == "" {
		return i.Name
	}
	return i.Name + "." + i.Port
}

// KeyBy says what a keyed stage takes as the key. One of its fields is set.
type KeyBy struct {
	Key    bool     // the record's own key
	Header string   // a header's value
	JSON   []string // JSON pointers into the value
}

// Module says where a transform's code comes from. Exactly one field besides Ref is set.
type Module struct {
	Ref     string // as written
	Path    string // a file
	SHA256  string // 64 hex digits of a module that the checkpoint holds
	Stock   string // a transform that comes with Wasmill
	Package string // name@version of a registry
}

// Limits bound a transform. Values are never zero.
type Limits struct {
	Memory     int64 // bytes, a multiple of 64 KiB
	FuelCall   uint64
	FuelRecord uint64
	Depth      int
	Output     int64 // bytes a lane
	Log        int64 // bytes of log text a lane; changes no output
}

// Sink is one output. Exactly one of the pointers to a kind is set.
type Sink struct {
	Name   string
	From   []Input // empty for the sink that takes the dead letters
	Mode   string  // append, upsert, changelog
	Files  *FilesSink
	Stdout *StdoutSink
	Kafka  *KafkaSink
	Delta  *DeltaSink
	SQL    *SQLSink
	// found: the columns are not those of a schema in the job file.
	found bool
}

// FilesSink writes files into a directory with a manifest that readers can trust.
type FilesSink struct {
	Path   string
	Format string // parquet, jsonl, csv
	// Schema is in the order of the job file. Nil: values are written as they are (jsonl), or the columns are those of the
	// binary rows that the sink takes.
	Schema      []Column
	PartitionBy []string
	Compression string // zstd, snappy, gzip, none
	CSV         CSV    // format csv only
	MaxPartRows int64
	MaxPartSize int64         // bytes of rows before compression
	Retention   time.Duration // data older than this is deleted; 0 never
}

// The modes of sinks.
const (
	ModeAppend    = "append"    // each record is one more row
	ModeUpsert    = "upsert"    // a record takes the place of the earlier one of its key; without a value it deletes it
	ModeChangelog = "changelog" // each update is a row
)

// StdoutSink prints values, one a line.
type StdoutSink struct {
	Format string // jsonl
}

// The error policies.
const (
	PolicyStop       = "stop"
	PolicyDeadLetter = "dead-letter"
	PolicySkip       = "skip"
)

// ErrorPolicy says what becomes of a record that cannot be processed.
type ErrorPolicy struct {
	Policy      string
	DeadLetters string // name of a sink; "" unless the policy is dead-letter
	Max         int64  // records set aside a batch before the job stops
}

// Retention says how many sealed batches the checkpoint keeps for replay.
type Retention struct {
	Batches int64         // the newest ones, always kept
	Age     time.Duration // older ones are kept this long
}

// Connection is a named cluster or database. Its settings may hold secrets: they are never part of the revision.
type Connection struct {
	Name string
	Kind string // kafka, postgres, ...
	// Settings is a JSON object, interpolated.
	Settings []byte
}
