package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/wasmill/wasmill/host/rows"
)

// Codec is a compression of pages.
type Codec string

// The codecs.
const (
	None   Codec = "none"
	Snappy Codec = "snappy"
	Gzip   Codec = "gzip"
	Zstd   Codec = "zstd"
)

func newCodec(c Codec) (compress.Codec, error) {
	switch c {
	case None:
		return &parquet.Uncompressed, nil
	case Snappy:
		return &snappy.Codec{}, nil
	case Gzip:
		return &gzip.Codec{Level: gzip.DefaultCompression}, nil
	case Zstd:
		return &zstd.Codec{Level: zstd.SpeedFastest}, nil
	}
	return nil, fmt.Errorf("unknown codec %q", c)
}

// Options shape a file.
type Options struct {
	Codec Codec
	// CreatedBy names the writer, as "<application> version <version>".
	CreatedBy string
	// Skip holds the columns of the tables that stay out of the file.
	Skip []int
}

// Rows names rows of one table: those of Index, or all when it is nil.
type Rows struct {
	Table *rows.Table
	Index []uint32
}

// Len returns the number of rows.
func (r Rows) Len() int {
	if r.Index != nil {
		return len(r.Index)
	}
	return r.Table.Len()
}

// row returns the number in the table of the k-th row.
func (r Rows) row(k int) int {
	if r.Index != nil {
		return int(r.Index[k])
	}
	return k
}

// Bounds of the library's buffers. A dictionary beyond its bound ends, and PLAIN pages follow.
const (
	pageBytes       = 256 << 10
	dictionaryBytes = 512 << 10
	keptWriters     = 4
)

// Writer writes one file after another. It is not safe for concurrent use.
type Writer struct {
	schema  *rows.Schema
	columns []int // of the tables
	opts    Options
	codec   compress.Codec
	plan    plan
	values  values
	sample  sample
	counts  counts
	stats   *Stats // of the last file
	// Which columns have a dictionary is part of a library writer's schema. The writers of the last few choices are kept for
	// their buffers.
	writers map[string]*parquet.GenericWriter[any]

	out  io.Writer
	file *parquet.GenericWriter[any] // nil until the first row group tells which one fits
	key  string                      // of file among the writers
	open bool
}

// New returns a writer of tables with the given schema.
func New(schema *rows.Schema, opts Options) (*Writer, error) {
	codec, err := newCodec(opts.Codec)
	if err != nil {
		return nil, err
	}
	w := &Writer{schema: schema, opts: opts, codec: codec, writers: map[string]*parquet.GenericWriter[any]{}}
	skip := make(map[int]bool, len(opts.Skip))
	for _, c := range opts.Skip {
		skip[c] = true
	}
	for c := range schema.Len() {
		if !skip[c] {
			w.columns = append(w.columns, c)
		}
	}
	if len(w.columns) == 0 {
		return nil, errors.New("no column is left for the file")
	}
	w.plan = newPlan(schema, w.columns)
	return w, nil
}

// Reset begins a new file on out.
func (w *Writer) Reset(out io.Writer) error {
	w.out, w.file, w.open = out, nil, true
	w.counts.reset(&w.plan)
	return nil
}

// WriteRowGroup writes the rows, in order, as one row group. The tables may be changed afterwards. The file's first row
// group decides which columns have a dictionary.
func (w *Writer) WriteRowGroup(from []Rows) (err error) {
	if !w.open {
		return errors.New("write a row group: no file is open")
	}
	defer w.guard("write a row group", &err)
	total := 0
	for _, r := range from {
		total += r.Len()
	}
	if total == 0 {
		return nil
	}
	if w.file == nil {
		w.begin(from)
	}
	for i, column := range w.file.ColumnWriters() {
		leaf := &w.plan.leaves[i]
		written, err := w.values.write(column, from, leaf)
		if err != nil {
			return fmt.Errorf("column %s: %w", leaf, err)
		}
		// The library itself does not notice a short column.
		if written != total {
			return fmt.Errorf("column %s: %d values for %d rows", leaf, written, total)
		}
		w.counts.nan[i] = w.counts.nan[i] || w.values.nan
	}
	w.counts.add(&w.plan, from, total)
	return w.file.Flush()
}

// Close writes the footer. The writer may be used again after Reset; out is not closed.
func (w *Writer) Close() (err error) {
	if !w.open {
		return errors.New("close a file: none is open")
	}
	w.open = false
	defer w.guard("close a file", &err)
	if w.file == nil {
		w.begin(nil)
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	w.stats = w.counts.collect(&w.plan, w.file.File().Metadata().RowGroups)
	w.keep()
	return nil
}

// keep makes the library's writer fit for another file. The library's Reset would empty the names of the columns in the
// last footer, which are those of the next one as well; hence the footer gives up its columns first.
func (w *Writer) keep() {
	groups := w.file.File().Metadata().RowGroups
	for i := range groups {
		groups[i].Columns = nil
	}
	if len(w.writers) == keptWriters {
		clear(w.writers)
	}
	w.writers[w.key] = w.file
	w.file = nil
}

// guard makes a panic of the library an error and says what failed.
func (w *Writer) guard(operation string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the parquet library failed: %v", r)
	}
	if *err != nil {
		*err = fmt.Errorf("%s: %w", operation, *err)
		w.file, w.open = nil, false // what an error leaves behind is not used again
	}
}

// begin takes or makes the library's writer that suits the rows.
func (w *Writer) begin(from []Rows) {
	key := w.sample.dictionaries(from, w.plan.leaves)
	w.key = string(key)
	if w.file = w.writers[w.key]; w.file != nil {
		delete(w.writers, w.key)
		w.file.Reset(w.out)
		return
	}
	config := parquet.DefaultWriterConfig()
	config.Schema = newSchema(w.schema, w.columns, key)
	config.Compression = w.codec
	config.CreatedBy = w.opts.CreatedBy
	config.DataPageVersion = 1
	config.DataPageStatistics = false // of pages; chunks have them
	config.PageBufferSize = pageBytes
	config.DictionaryMaxBytes = dictionaryBytes
	config.ColumnIndexSizeLimit = func([]string) int { return math.MaxInt } // bounded says how long they are
	w.file = parquet.NewGenericWriter[any](w.out, config)
}
