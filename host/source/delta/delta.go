// Package delta reads a Delta table as a stream: the rows that it has at the start, then those that each version adds.
//
// The order is that of Spark's source: the files of the snapshot by modification time and path, then version by version the
// files in the order of the log. A batch may end inside a file at a row.
//
// Rules that a user can rely on:
//   - Rows are delivered by what the log says has changed: files that were only rearranged (dataChange=false, as by OPTIMIZE)
//     are passed over. A version that removes rows stops the source, unless OnChange says otherwise.
//   - A row has the columns that the table had at the version which added it, partition columns included, in the schema's
//     order. Columns that come while the job runs are simply there from then on. Any other change of the schema stops the
//     source before the version that brings it; a job that is started again goes on there, by the new schema.
//   - A table is known by its id and not by its place. Another one at the same place stops the source with code
//     source.table.
//   - Versions follow each other without a gap, and a file is as large as the log says and has as many rows. What is lost
//     stops the source, unless SkipLost says to go on with a warning.
//   - What cannot be read right is refused by the name of its feature: deletion vectors, column mapping and others.
//
// The package knows nothing of batches, sinks or event time. It must not read anything that is not in the plan it is given,
// and writes nothing at all.
package delta

import (
	"context"
	"path/filepath"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
)

// OnChange is what happens at a version that removes rows.
type OnChange string

// The ways to go on.
const (
	Stop          OnChange = "stop"
	Skip          OnChange = "skip"           // the whole version is passed over, with what it adds: Warn is told, with a *source.LeftOutError
	IgnoreDeletes OnChange = "ignore-deletes" // a version that only removes is passed over; one that also adds stops
)

// Start is where a source without progress begins: with the rows of the newest version if Snapshot, after it if Latest, and
// else with what version Version adds.
type Start struct {
	Snapshot, Latest bool
	Version          int64
}

// Config says what a source reads.
type Config struct {
	Name     string // of the source, for messages
	Dir      string // the table's directory; made absolute by New
	Start    Start
	OnChange OnChange // "" means Stop
	// SkipLost goes on where versions or files are gone; each loss is handed to Warn, as a *source.LeftOutError.
	SkipLost bool
	// Attach lists what each record gets as a header: "path", that of its file, is all a row has.
	Attach []string
	// Warn takes what is worth a word and does not stop the source. May be nil.
	Warn  func(error)
	Files durable.Files
	Clock func() time.Time
}

// none stands for a version that is not set.
const none = -1

// Source reads a table. It implements source.Source.
type Source struct {
	cfg     Config
	history *history

	// Owned by the goroutine that calls Latest, Release and Freeze.
	agreed int64 // up to this version the schema may be what it likes: the job was started knowing it
	frozen int64 // Latest never goes beyond it
	quiet  quiet
	ended  checkpoint.Position // where the last plan found the end of the frozen input
	said   map[string]bool     // what was reported already
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Ender    = (*Source)(nil)
	_ source.Measurer = (*Source)(nil)
)

// New returns a source. It looks at nothing on disk.
func New(cfg Config) (*Source, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, configFault(cfg.Name, "path: "+err.Error())
	}
	cfg.Dir = filepath.ToSlash(abs)
	return &Source{
		cfg: cfg, history: newHistory(delta.OpenLog(cfg.Files, cfg.Dir, cfg.Clock), cfg.Files, cfg.Dir), agreed: none, frozen: none,
	}, nil
}

func (c *Config) complete() error {
	if c.OnChange == "" {
		c.OnChange = Stop
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	switch {
	case c.Dir == "":
		return configFault(c.Name, "path is missing")
	case c.OnChange != Stop && c.OnChange != Skip && c.OnChange != IgnoreDeletes:
		return configFault(c.Name, "onChange "+string(c.OnChange)+" is none of stop, skip, ignore-deletes")
	case c.Start.Snapshot && c.Start.Latest, (c.Start.Snapshot || c.Start.Latest) && c.Start.Version != 0, c.Start.Version < 0:
		return configFault(c.Name, "start is one of snapshot, latest and the number of a version")
	}
	for _, a := range c.Attach {
		if a != "path" {
			return configFault(c.Name, "attach: a row has the path of its file, and no "+a)
		}
	}
	return nil
}

// Freeze makes the version that is newest now the end of the input.
func (s *Source) Freeze(ctx context.Context) error {
	newest, err := s.history.log.Latest(ctx, none)
	if err != nil {
		return missing(err)
	}
	s.frozen, s.quiet = newest, quiet{}
	return nil
}

// Ended reports whether a position is the end of the frozen input. Of one after which there are versions without a row, that
// is known when it was planned last.
func (s *Source) Ended(at checkpoint.Position) bool {
	if s.frozen == none || at.IsZero() {
		return false
	}
	p, err := parsePosition(at)
	return err == nil && (p.at.version > s.frozen || s.ended == at)
}

// Release gives back the memory of a snapshot that is read.
func (s *Source) Release(_ context.Context, upTo checkpoint.Position) error {
	p, err := parsePosition(upTo)
	if err == nil && !p.at.snapshot {
		s.history.dropSnapshot()
	}
	return err
}

// Close gives up nothing: no file is open between calls.
func (s *Source) Close() error { return nil }
