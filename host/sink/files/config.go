package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
)

// Format is the format of a sink's files.
type Format string

// The formats.
const (
	Parquet Format = "parquet"
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
)

// Config describes a sink. What has a default may be left zero.
type Config struct {
	// Sink is the sink's name, and the target's id.
	Sink string
	// Dir is the directory, made when it is missing.
	Dir    string
	Format Format
	// Schema gives the columns; parquet and csv need it. Without it jsonl takes each value as it is.
	Schema *rows.Schema
	// Updates takes records as updates: without a value they are deletions, which have a row of their own where there is
	// no schema. For jsonl.
	Updates bool
	// PartitionBy names columns that become directories instead of being in the files.
	PartitionBy []string
	// Codec compresses the files: by default Zstd for parquet, None else. Snappy is for parquet only.
	Codec parquetfile.Codec
	// NoHeader leaves out the first line of csv files, which names the columns; Delimiter is a comma by default.
	NoHeader  bool
	Delimiter byte
	// MaxPartRows and MaxPartBytes bound a file; bytes are counted as the rows lie in memory, before compression.
	MaxPartRows, MaxPartBytes int64
	// Retention is the age at which data is dropped from the manifest and, after Grace, deleted. 0 keeps it for ever.
	Retention time.Duration
	// Grace is how long a file that nothing refers to is left alone.
	Grace time.Duration
	// CreatedBy names the program in parquet files, as "wasmill version 1.2.3".
	CreatedBy string
	Files     durable.Files
	Clock     func() time.Time
}

// The defaults.
const (
	DefaultPartRows  = 5_000_000
	DefaultPartBytes = 128 << 20
	DefaultGrace     = time.Hour
	defaultCreatedBy = "wasmill version 1"
)

func (c *Config) setDefaults() {
	if c.Codec == "" {
		c.Codec = parquetfile.None
		if c.Format == Parquet {
			c.Codec = parquetfile.Zstd
		}
	}
	if c.Delimiter == 0 {
		c.Delimiter = ','
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
	if c.CreatedBy == "" {
		c.CreatedBy = defaultCreatedBy
	}
}

func (c *Config) check() error {
	switch {
	case c.Sink == "" || c.Dir == "" || c.Files == nil || c.Clock == nil:
		return errors.New("a name, a directory, a file system and a clock are needed")
	case c.Format != Parquet && c.Format != JSONL && c.Format != CSV:
		return fmt.Errorf("unknown format %q", c.Format)
	case c.Schema == nil && c.Format != JSONL:
		return fmt.Errorf("%s needs a schema", c.Format)
	case c.Schema == nil && len(c.PartitionBy) > 0:
		return errors.New("partitionBy needs a schema that has the columns")
	case !codecFits(c.Format, c.Codec):
		return fmt.Errorf("%s files cannot be compressed with %q", c.Format, c.Codec)
	case c.Delimiter > 0x7e || c.Delimiter == '"' || c.Delimiter < ' ' && c.Delimiter != '\t':
		return fmt.Errorf("%q cannot stand between values", c.Delimiter)
	}
	return nil
}

func codecFits(f Format, codec parquetfile.Codec) bool {
	switch codec {
	case parquetfile.None, parquetfile.Gzip, parquetfile.Zstd:
		return true
	case parquetfile.Snappy:
		return f == Parquet
	}
	return false
}

// New checks the settings and returns the target. Nothing is touched before Open.
func New(cfg Config) (*Target, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, fault.New(CodeConfig, "sink "+cfg.Sink, err, "correct the sink in the job file")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("sink %s: find the directory: %w", cfg.Sink, err)
	}
	t := &Target{cfg: cfg, files: cfg.Files, dir: filepath.ToSlash(dir)}
	if cfg.Schema != nil {
		if t.partition, err = partition.Columns(cfg.Schema, cfg.PartitionBy); err != nil {
			return nil, fault.New(CodeConfig, "sink "+cfg.Sink, err, "correct the sink in the job file")
		}
	}
	if t.enc, err = newEncoder(&cfg, t.partition); err != nil {
		return nil, fmt.Errorf("sink %s: %w", cfg.Sink, err)
	}
	if t.room() < 0 {
		return nil, fault.New(CodeConfig, "sink "+cfg.Sink, fmt.Errorf("the directory's path has %d bytes, which leaves a file's name no room", len(t.dir)),
			"give the sink a directory with a shorter path")
	}
	return t, nil
}
