// Package files reads a growing set of files as a stream: lines, JSON lines, CSV and Parquet; plain, gzip or zstd.
//
// The set is a directory, a glob or one file. It is listed again and again, in byte order of path; a file is read once,
// whole, after it has been left alone for a second. What was read stands in Spark's file source log beside the offsets,
// with keys of our own in each entry. A batch may end inside a file at a record.
//
// Rules that a user can rely on:
//   - A directory means its own files and those under partition folders (`day=2026-01-02`), as in Spark. Other
//     subdirectories are read when a glob says so: `*`, `?` and `[a-z]` within a name, `**` for any depth.
//   - Names that begin with `.` or `_` or end in `.tmp` are skipped, directories too. Links to files are followed, links
//     to directories are not. An empty file is not there yet.
//   - A file is pinned by size and etag when it is first planned. Reading it asserts both. A file that changed its size
//     after it was planned stops the source with code source.changed, unless SkipLost takes it as it is now: read from its
//     beginning where no sealed batch has read of it; behind what was read where that is still there, byte by byte (a digest
//     of it stands in the position); else without its rest. What was appended to a file that was read whole is never read.
//     Nothing is left out in silence: Warn is told of each file, with a *source.LeftOutError that counts. The log then holds
//     the file as it was taken, so that the source goes on without SkipLost. A changed modification time alone is nothing.
//   - A file is known by its absolute path. A path whose fixed part (all of it, or what comes before a glob) is not the one
//     that the position was planned with stops the source with code source.moved, unless AllowMoved: files that were
//     moved would be read again.
//   - Limits count decoded bytes, and lines that are not empty. A line of nothing but blanks, tabs or a carriage return
//     counts, though it becomes no record: to know it, planning would have to look at each line.
//
// The package knows nothing of batches, sinks or event time. It must not read anything that is not in the plan it is
// given, and writes only to its own folder of the checkpoint.
package files

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/source"
)

// Format says how a file's bytes become records.
type Format string

// The formats.
const (
	Lines   Format = "lines"   // every line is a record, as it stands
	JSONL   Format = "jsonl"   // the same; lines of nothing but blanks and tabs are skipped too
	CSV     Format = "csv"     // every row is a JSON object of strings and nulls
	Parquet Format = "parquet" // every row is a JSON object
)

// Compression says how a file is packed.
type Compression string

// The compressions. Auto goes by the first bytes of each file, and by the endings .gz and .zst where those say nothing.
const (
	Auto Compression = "auto"
	None Compression = "none"
	Gzip Compression = "gzip"
	Zstd Compression = "zstd"
)

// Defaults of Config.
const (
	DefaultSettle  = time.Second
	DefaultMaxLine = 16 << 20
)

// CSVOptions shape the csv format. The zero value is RFC 4180 with a header row.
type CSVOptions struct {
	// Comma separates fields; 0 means ','.
	Comma byte
	// Columns names the columns. Empty: the header row does, or _c0, _c1, .. when there is none.
	Columns []string
	// NoHeader says that the first row is data.
	NoHeader bool
}

// Config says what a source reads.
type Config struct {
	Name        string // of the source, for messages
	Path        string // a directory, a file or a glob; made absolute by New
	Format      Format
	Compression Compression // "" means Auto; Parquet is never packed
	CSV         CSVOptions
	// Attach lists what each record gets as a header: "path" is all a file has.
	Attach []string
	// Settle is how long a file must be left alone before it is read; 0 means DefaultSettle.
	Settle time.Duration
	// MaxLine is the longest record in bytes; 0 means DefaultMaxLine. A longer one is rejected as too_large.
	MaxLine int
	// State is the source's own folder in the checkpoint: sources/<i>.
	State string
	// ReadOnly: nothing is written to State. Positions are then for looking at, not for keeping.
	ReadOnly bool
	// SkipLost goes on where a file that was planned has changed since, or its rest cannot be decoded: the package says how.
	SkipLost bool
	// AllowMoved goes on from a position that was planned with another path: what lies under Path now is new input, read or
	// not.
	AllowMoved bool
	// Warn takes what is worth a word and does not stop the source. May be nil.
	Warn  func(error)
	Files durable.Files
	Clock func() time.Time
}

// Source reads files. It implements source.Source.
type Source struct {
	cfg     Config
	logs    logs
	lister  *lister
	cache   *cache
	scratch *sync.Pool // block buffers for files that are read without being kept

	// Owned by the goroutine that calls Latest, Release and Freeze.
	at        checkpoint.Position // what seen stands for
	seen      *seen               // nil: not known yet
	snapshot  []found             // what Freeze found
	frozen    bool
	pending   []found         // files not planned yet, in byte order of path
	resized   []found         // files that were read and have another size now, which SkipLost takes as they are
	rest      found           // the file that was cut, while it is not settled
	said      map[string]bool // what Warn was told
	unmatched bool            // the last listing found nothing, and no file was ever read
	listed    bool            // pending goes with seen
	cursor    *cursor
	released  int64
}

var (
	_ source.Source = (*Source)(nil)
	_ source.Ender  = (*Source)(nil)
)

// New returns a source. It looks at nothing on disk.
func New(cfg Config) (*Source, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, configFault(cfg.Name, "path: "+err.Error())
	}
	cfg.Path = filepath.ToSlash(abs)
	lister, err := newLister(cfg.Files, cfg.Path)
	if err != nil {
		return nil, configFault(cfg.Name, err.Error())
	}
	return &Source{
		cfg:      cfg,
		logs:     logs{files: cfg.Files, dir: cfg.State},
		lister:   lister,
		cache:    newCache(),
		scratch:  &sync.Pool{New: func() any { b := make([]byte, blockSize); return &b }},
		released: -1,
	}, nil
}

func (c *Config) complete() error {
	if c.Compression == "" {
		c.Compression = Auto
	}
	if c.Settle == 0 {
		c.Settle = DefaultSettle
	}
	if c.MaxLine <= 0 {
		c.MaxLine = DefaultMaxLine
	}
	if c.CSV.Comma == 0 {
		c.CSV.Comma = ','
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	if c.Path == "" {
		return configFault(c.Name, "path is missing")
	}
	switch c.Format {
	case Lines, JSONL, CSV, Parquet:
	default:
		return configFault(c.Name, "format "+string(c.Format)+" is none of lines, jsonl, csv, parquet")
	}
	switch c.Compression {
	case Auto, None, Gzip, Zstd:
	default:
		return configFault(c.Name, "compression "+string(c.Compression)+" is none of auto, none, gzip, zstd")
	}
	if c.Format == Parquet && (c.Compression == Gzip || c.Compression == Zstd) {
		return configFault(c.Name, "parquet files are packed inside: leave compression out")
	}
	switch c.CSV.Comma {
	case '"', '\n', '\r':
		return configFault(c.Name, "the csv separator must not be a quote or the end of a line")
	}
	for _, a := range c.Attach {
		if a != "path" {
			return configFault(c.Name, "attach: a file has a path, and no "+a)
		}
	}
	return nil
}

// Freeze makes the files that exist now, at their size of now, the whole input. They need not settle.
func (s *Source) Freeze(ctx context.Context) error {
	all, err := s.lister.walk(ctx)
	if err != nil {
		return err
	}
	s.snapshot, s.frozen, s.listed = all, true, false
	return nil
}

// Ended reports whether a position is the end of the frozen input. It is known for the one that was planned last.
func (s *Source) Ended(at checkpoint.Position) bool {
	return s.frozen && s.seen != nil && s.at == at && s.listed && len(s.pending) == 0 && len(s.resized) == 0 && s.seen.pos.At == nil
}

// Release tidies up: bytes kept for reading, and log files that a newer compacted one holds as well.
func (s *Source) Release(_ context.Context, upTo checkpoint.Position) error {
	if upTo == s.at {
		s.cache.drop() // nothing is planned beyond it
	}
	p, err := parsePosition(upTo)
	if err != nil {
		return err
	}
	if s.cfg.ReadOnly || p.log/compactEvery == s.released/compactEvery && s.released >= 0 {
		return nil
	}
	if err := s.logs.trim(p.log); err != nil {
		return err
	}
	s.released = p.log
	return nil
}

// Close gives up what is open.
func (s *Source) Close() error {
	s.cache.drop()
	return s.setCursor(nil)
}

// cursor is an unpacking stream that stands where the last batch ended inside a file.
type cursor struct {
	file   fileKey
	off    int64
	stream *stream
}

func (s *Source) setCursor(c *cursor) error {
	old := s.cursor
	s.cursor = c
	if old == nil {
		return nil
	}
	return old.stream.Close()
}

// takeCursor returns the stream that stands at off of the file, or nil.
func (s *Source) takeCursor(e *entry, off int64) (*stream, error) {
	c := s.cursor
	if c == nil {
		return nil, nil
	}
	if c.file != e.key() || c.off != off {
		return nil, s.setCursor(nil)
	}
	s.cursor = nil
	return c.stream, nil
}

func closeWith(err *error, c interface{ Close() error }) {
	*err = errors.Join(*err, c.Close())
}
