package delta

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
)

// Config describes a sink. What has a default may be left zero.
type Config struct {
	// Sink is the sink's name, and the target's id.
	Sink string
	// Dir is the table's directory. A table that is missing is made.
	Dir string
	// Schema gives the columns of the rows. Columns of the table that it lacks are null in what is written.
	Schema *rows.Schema
	// PartitionBy are the columns by which a new table is partitioned. A table that is there must have the same; nil takes
	// its own; rows whose values cannot be a partition's are then refused when they are staged (sink.Refused).
	PartitionBy []string
	// Key are the columns that tell rows apart. With a key the mode is upsert: a row takes the place of the one with its key,
	// and a record without a value deletes the row whose key is the record's: the text of one column, or a JSON array of
	// several.
	Key []string
	// AddColumns lets the table get columns of the schema that it does not have.
	AddColumns bool
	// CheckpointInterval is the number of entries from one checkpoint of the log to the next, where the table has no
	// delta.checkpointInterval.
	CheckpointInterval int
	// Codec compresses the data files, Zstd by default.
	Codec parquetfile.Codec
	// MaxPartRows and MaxPartBytes bound a file; bytes are counted as the rows lie in memory, before compression.
	MaxPartRows, MaxPartBytes int64
	// Grace is how long a file that the log does not name is left alone.
	Grace time.Duration
	// CreatedBy names the program in parquet files, as "wasmill version 1.2.3"; Engine in the log, as "Wasmill/1.2.3".
	CreatedBy, Engine string
	Files             durable.Files
	Clock             func() time.Time
	// Wait returns after a time, or when ctx ends with its error: between tries to publish beside other writers. nil: they
	// follow each other at once.
	Wait func(context.Context, time.Duration) error
	// Warn hears of what may go wrong later. nil: nobody listens.
	Warn func(error)
}

// The defaults.
const (
	DefaultPartRows           = 5_000_000
	DefaultPartBytes          = 128 << 20
	DefaultGrace              = time.Hour
	DefaultCheckpointInterval = 100
	defaultCreatedBy          = "wasmill version 1"
	defaultEngine             = "Wasmill"
)

func (c *Config) setDefaults() {
	if c.Codec == "" {
		c.Codec = parquetfile.Zstd
	}
	if c.MaxPartRows <= 0 {
		c.MaxPartRows = DefaultPartRows
	}
	if c.MaxPartBytes <= 0 {
		c.MaxPartBytes = DefaultPartBytes
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.CheckpointInterval <= 0 {
		c.CheckpointInterval = DefaultCheckpointInterval
	}
	if c.CreatedBy == "" {
		c.CreatedBy = defaultCreatedBy
	}
	if c.Engine == "" {
		c.Engine = defaultEngine
	}
	if c.Wait == nil {
		c.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
}

func (c *Config) check() error {
	if c.Sink == "" || c.Dir == "" || c.Files == nil || c.Clock == nil {
		return errors.New("a name, a directory, a file system and a clock are needed")
	}
	if c.Schema == nil {
		return errors.New("a schema is needed")
	}
	switch c.Codec {
	case parquetfile.None, parquetfile.Snappy, parquetfile.Gzip, parquetfile.Zstd:
	default:
		return fmt.Errorf("parquet files cannot be compressed with %q", c.Codec)
	}
	if err := delta.CheckNames(c.Schema); err != nil {
		return err
	}
	for i, name := range c.Key {
		at := c.Schema.Index(name)
		if at < 0 {
			return fmt.Errorf("key: the schema has no column %q", name)
		}
		if k := c.Schema.Column(at).Type.Kind; !isKey(k) {
			return fmt.Errorf("key: column %q is a %s, which is no key", name, k)
		}
		if slices.Contains(c.Key[:i], name) {
			return fmt.Errorf("key names column %q twice", name)
		}
	}
	return nil
}

// New checks the settings and returns the target. Nothing is touched before Open.
func New(cfg Config) (*Target, error) {
	cfg.setDefaults()
	bad := func(err error) (*Target, error) {
		return nil, fault.New(CodeConfig, "sink "+cfg.Sink, err, "correct the sink in the job file")
	}
	if err := cfg.check(); err != nil {
		return bad(err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("sink %s: find the directory: %w", cfg.Sink, err)
	}
	t := &Target{cfg: cfg, files: cfg.Files, dir: filepath.ToSlash(dir)}
	if t.partition, err = partition.Columns(cfg.Schema, cfg.PartitionBy); err != nil {
		return bad(err)
	}
	for _, name := range cfg.Key {
		t.key = append(t.key, cfg.Schema.Index(name))
	}
	if t.room() < 0 {
		return nil, fault.New(CodeConfig, "sink "+cfg.Sink, fmt.Errorf("the directory's path has %d bytes, which leaves a file's name no room", len(t.dir)),
			"give the sink a directory with a shorter path")
	}
	t.schema = delta.SchemaString(cfg.Schema)
	return t, nil
}

// TableSchema returns the columns of a table and those it is partitioned by, for a sink that takes the table's own.
// errors.Is(err, delta.ErrNoTable) of host/delta: there is none yet.
func TableSchema(ctx context.Context, files durable.Files, dir string, now func() time.Time) (*rows.Schema, []string, error) {
	s, err := delta.OpenLog(files, dir, now).Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := delta.CheckWrite(s.Protocol, s.Metadata); err != nil {
		return nil, nil, err
	}
	return s.Schema()
}
