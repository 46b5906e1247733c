package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/wasmill/wasmill/host/rows"
)

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

// Writer writes one file after another. It is not safe for concurrent use.
type Writer struct {
	opts     Options
	schema   *rows.Schema
	columns  []int // of the tables
	comp     *compressor
	out      io.Writer
	offset   int64
	rows     int64
	groups   []rowGroup
	thrift   compact
	page     pageBuffer
	dict     dictionary
	packed   []byte // a compressed page
	failed   error
	finished bool
}

type rowGroup struct {
	rows   int64
	chunks []chunk
}

// chunk is what the footer says about one column of a row group.
type chunk struct {
	offset, dataOffset int64 // of its first page, and of its first data page
	plain, packed      int64 // bytes before and after compression, headers included
	values             int64 // nulls included
	dict               bool
	strategy           strategy
	stats              stats
}

var magic = []byte("PAR1")

// New returns a writer of tables with the given schema.
func New(schema *rows.Schema, opts Options) (*Writer, error) {
	comp, err := newCompressor(opts.Codec)
	if err != nil {
		return nil, err
	}
	w := &Writer{opts: opts, schema: schema, comp: comp, finished: true}
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
	return w, nil
}

// Reset begins a new file on out.
func (w *Writer) Reset(out io.Writer) error {
	w.out, w.offset, w.rows, w.failed, w.finished = out, 0, 0, nil, false
	w.groups = w.groups[:0]
	return w.write(magic)
}

// WriteRowGroup writes the rows, in order, as one row group. The tables may be changed afterwards.
func (w *Writer) WriteRowGroup(from []Rows) error {
	if w.finished {
		return errors.New("write a row group: no file is open")
	}
	g := rowGroup{chunks: make([]chunk, 0, len(w.columns))}
	for _, r := range from {
		g.rows += int64(r.Len())
	}
	if g.rows == 0 {
		return nil
	}
	for _, c := range w.columns {
		ch, err := w.column(from, c)
		if err != nil {
			return fmt.Errorf("write column %s: %w", w.schema.Column(c).Name, err)
		}
		if ch.values != g.rows {
			return fmt.Errorf("write column %s: %d values for %d rows", w.schema.Column(c).Name, ch.values, g.rows)
		}
		g.chunks = append(g.chunks, ch)
	}
	w.rows += g.rows
	w.groups = append(w.groups, g)
	return nil
}

// Size returns the bytes written so far.
func (w *Writer) Size() int64 { return w.offset }

// Close writes the footer. The writer may be used again after Reset; out is not closed.
func (w *Writer) Close() error {
	if w.finished {
		return errors.New("close a file: none is open")
	}
	w.finished = true
	footer := w.footer()
	if err := w.write(footer); err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))
	return w.write(append(tail, magic...))
}

func (w *Writer) write(b []byte) error {
	if w.failed != nil {
		return w.failed
	}
	n, err := w.out.Write(b)
	w.offset += int64(n)
	w.failed = err
	return err
}

// column writes all pages of one column.
func (w *Writer) column(from []Rows, col int) (chunk, error) {
	ch := chunk{offset: w.offset}
	ch.stats.reset(w.schema.Column(col).Type)
	ch.dict = w.dict.build(from, col)
	if ch.dict {
		w.page.reset()
		w.page.values = w.dict.appendPlain(w.page.values)
		if err := w.writePage(&ch, w.page.values, pageInfo{dict: true, values: w.dict.len(), encoding: encodingPlain}); err != nil {
			return ch, err
		}
		w.dict.stats(&ch.stats)
	}
	ch.dataOffset = w.offset
	w.page.reset()
	indices := w.dict.indices
	for _, r := range from {
		v := r.Table.Column(col)
		for at := 0; at < r.Len(); {
			n := min(r.Len()-at, w.page.room())
			nulls := w.page.nulls
			w.page.levels1(v, r, at, n)
			if ch.dict {
				present := n - (w.page.nulls - nulls)
				w.page.indices = append(w.page.indices, indices[:present]...)
				indices = indices[present:]
			} else {
				w.page.plain(v, r, at, n, &ch.stats)
			}
			at += n
			if w.page.full() {
				if err := w.flush(&ch); err != nil {
					return ch, err
				}
			}
		}
	}
	return ch, w.flush(&ch)
}

func (w *Writer) flush(ch *chunk) error {
	if len(w.page.levels) == 0 {
		return nil
	}
	info := pageInfo{values: len(w.page.levels), encoding: encodingPlain}
	if ch.dict {
		info.encoding = encodingRLEDictionary
	}
	ch.values += int64(info.values)
	ch.stats.nulls += int64(w.page.nulls)
	body := w.page.body(ch.dict, w.dict.width())
	err := w.writePage(ch, body, info)
	w.page.reset()
	return err
}

type pageInfo struct {
	dict     bool
	values   int
	encoding int32
}

// writePage compresses a page and writes it behind its header.
func (w *Writer) writePage(ch *chunk, body []byte, info pageInfo) error {
	packed, err := w.comp.compress(w.packed, body, &ch.strategy)
	if err != nil {
		return err
	}
	if w.comp.codec != None {
		w.packed = packed
	}
	t := &w.thrift
	t.reset()
	kind := int32(pageData)
	if info.dict {
		kind = pageDictionary
	}
	t.i32(1, kind)
	t.i32(2, int32(len(body)))
	t.i32(3, int32(len(packed)))
	t.i32(4, int32(crc32.ChecksumIEEE(packed)))
	if info.dict {
		t.open(7)
		t.i32(1, int32(info.values))
		t.i32(2, info.encoding)
	} else {
		t.open(5)
		t.i32(1, int32(info.values))
		t.i32(2, info.encoding)
		t.i32(3, encodingRLE)
		t.i32(4, encodingRLE)
	}
	t.close()
	header := t.end()
	ch.plain += int64(len(header) + len(body))
	ch.packed += int64(len(header) + len(packed))
	if err := w.write(header); err != nil {
		return err
	}
	return w.write(packed)
}
