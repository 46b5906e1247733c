package files

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/partition"
)

// encoder writes one file after another and keeps its buffers.
type encoder interface {
	reset(out io.Writer) error
	rows(from []parquetfile.Rows) error
	// lines takes whole lines; for jsonl without a schema.
	lines(b []byte) error
	close() error
	// ext is what follows ".c000." in a file's name.
	ext() string
}

func newEncoder(cfg *Config, without []int) (encoder, error) {
	if cfg.Format == Parquet {
		w, err := parquetfile.New(cfg.Schema, parquetfile.Options{Codec: cfg.Codec, CreatedBy: cfg.CreatedBy, Skip: without})
		if err != nil {
			return nil, err
		}
		return &parquetEncoder{w: w, codec: cfg.Codec}, nil
	}
	e := &textEncoder{cfg: cfg, buf: bufio.NewWriterSize(io.Discard, 64<<10)}
	skip := map[int]bool{}
	for _, c := range without {
		skip[c] = true
	}
	if cfg.Schema != nil {
		for c := range cfg.Schema.Len() {
			if !skip[c] {
				e.columns = append(e.columns, c)
			}
		}
	}
	return e, e.open()
}

// A row group ends at these bounds.
const (
	groupRowsMax = 1 << 20
	groupBytes   = 128 << 20
)

type parquetEncoder struct {
	w     *parquetfile.Writer
	codec parquetfile.Codec
}

func (e *parquetEncoder) reset(out io.Writer) error { return e.w.Reset(out) }
func (e *parquetEncoder) close() error              { return e.w.Close() }
func (e *parquetEncoder) lines([]byte) error        { return fmt.Errorf("parquet takes rows only") }

func (e *parquetEncoder) rows(from []parquetfile.Rows) error {
	for _, g := range partition.Cut(from, groupRowsMax, groupBytes) {
		if err := e.w.WriteRowGroup(g); err != nil {
			return err
		}
	}
	return nil
}

func (e *parquetEncoder) ext() string {
	if e.codec == parquetfile.None {
		return "parquet"
	}
	return string(e.codec) + ".parquet"
}

// textEncoder writes jsonl and csv, plain or compressed as a stream.
type textEncoder struct {
	cfg     *Config
	columns []int
	buf     *bufio.Writer
	gzip    *gzip.Writer
	zstd    *zstd.Encoder
	out     io.Writer
	line    []byte
	nested  []byte // the JSON of a list, map or struct
}

func (e *textEncoder) open() error {
	var err error
	switch e.cfg.Codec {
	case parquetfile.Gzip:
		e.gzip = gzip.NewWriter(nil)
	case parquetfile.Zstd:
		e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	}
	if err != nil {
		return fmt.Errorf("open a zstd encoder: %w", err)
	}
	return nil
}

func (e *textEncoder) reset(out io.Writer) error {
	e.buf.Reset(out)
	switch {
	case e.gzip != nil:
		e.gzip.Reset(e.buf)
		e.out = e.gzip
	case e.zstd != nil:
		e.zstd.Reset(e.buf)
		e.out = e.zstd
	default:
		e.out = e.buf
	}
	if e.cfg.Format != CSV || e.cfg.NoHeader {
		return nil
	}
	e.line = e.line[:0]
	for i, c := range e.columns {
		if i > 0 {
			e.line = append(e.line, e.cfg.Delimiter)
		}
		e.line = e.appendQuoted(e.line, len(e.line), []byte(e.cfg.Schema.Column(c).Name))
	}
	return e.lines(append(e.line, '\n'))
}

func (e *textEncoder) lines(b []byte) error {
	_, err := e.out.Write(b)
	return err
}

func (e *textEncoder) rows(from []parquetfile.Rows) error {
	for _, r := range from {
		for k := range r.Len() {
			row := k
			if r.Index != nil {
				row = int(r.Index[k])
			}
			if e.cfg.Format == CSV {
				e.line = e.appendCSV(e.line[:0], r.Table, row)
			} else {
				e.line = e.appendJSON(e.line[:0], r.Table, row)
			}
			if err := e.lines(e.line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *textEncoder) close() error {
	var err error
	switch {
	case e.gzip != nil:
		err = e.gzip.Close()
	case e.zstd != nil:
		err = e.zstd.Close()
	}
	if err != nil {
		return err
	}
	return e.buf.Flush()
}

func (e *textEncoder) ext() string {
	switch e.cfg.Codec {
	case parquetfile.Gzip:
		return string(e.cfg.Format) + ".gz"
	case parquetfile.Zstd:
		return string(e.cfg.Format) + ".zst"
	}
	return string(e.cfg.Format)
}

// appendCSV appends a row as RFC 4180 has it, but with a bare line feed at the end. Null is nothing, an empty string is
// two quotes.
func (e *textEncoder) appendCSV(dst []byte, t *rows.Table, row int) []byte {
	for i, c := range e.columns {
		if i > 0 {
			dst = append(dst, e.cfg.Delimiter)
		}
		v := t.Column(c)
		if v.Valid[row] == 0 {
			continue
		}
		switch {
		case v.Type.Kind == rows.String:
			dst = e.appendQuoted(dst, len(dst), v.Bytes(row))
			continue
		case v.Type.Kind.Nested():
			e.nested = v.AppendText(e.nested[:0], row)
			dst = e.appendQuoted(dst, len(dst), e.nested)
			continue
		}
		dst = v.AppendText(dst, row)
	}
	return append(dst, '\n')
}

// appendQuoted quotes a text that is empty or holds what means something in csv. at is where the field begins.
func (e *textEncoder) appendQuoted(dst []byte, at int, text []byte) []byte {
	plain := len(text) > 0
	for _, c := range text {
		if c == '"' || c == '\n' || c == '\r' || c == e.cfg.Delimiter {
			plain = false
			break
		}
	}
	if plain {
		return append(dst, text...)
	}
	dst = append(dst[:at], '"')
	for _, c := range text {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// appendJSON appends a row as one object with its columns in order, nulls included.
func (e *textEncoder) appendJSON(dst []byte, t *rows.Table, row int) []byte {
	sep := byte('{')
	for _, c := range e.columns {
		dst = append(dst, sep)
		sep = ','
		dst = rows.AppendQuoted(dst, []byte(e.cfg.Schema.Column(c).Name))
		dst = append(dst, ':')
		dst = t.Column(c).AppendJSON(dst, row)
	}
	return append(dst, '}', '\n')
}
