package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/source"
)

const (
	// maxFooter bounds a Parquet footer: its length is read from the file and allocated at once.
	maxFooter   = 256 << 20
	rowsAtATime = 64

	// The first bytes of a Parquet file, and of one whose footer is encrypted.
	parquetMagic, encryptedMagic = "PAR1", "PARE"
)

// guard runs fn on a foreign Parquet file. The library panics on some of what a broken file can hold.
func guard(path string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = notParquet(path, fmt.Errorf("the library gave up: %v", r))
		}
	}()
	return fn()
}

func notParquet(path string, err error) error {
	if no, ok := errors.AsType[*parquetfile.UnsupportedError](err); ok {
		return fault.New(CodeCorrupt, path, fmt.Errorf("the parquet file is whole, but %w", no), no.Hint()+"; or move it out of the source's path")
	}
	return fault.New(CodeCorrupt, path, fmt.Errorf("the parquet file cannot be read: %w", err),
		"copy the file again, or move it out of the source's path")
}

// openParquet reads a file's footer.
func openParquet(f io.ReaderAt, e *entry) (*parquet.File, error) {
	var begin [4]byte
	if err := readAt(f, begin[:min(e.Size, 4)], 0); err != nil {
		return nil, unreadable(e.Path, err)
	}
	if magic := string(begin[:]); magic != parquetMagic && magic != encryptedMagic {
		return nil, fault.New(CodeCorrupt, e.Path, fmt.Errorf("the file does not begin as Parquet does, with %s, but with %q", parquetMagic, begin[:min(e.Size, 4)]),
			"correct the source's `format`, if its files are none of Parquet; or copy the file again, or move it out of the source's path")
	}
	var end [8]byte
	if e.Size < 12 {
		return nil, notParquet(e.Path, fmt.Errorf("%d bytes are too few", e.Size))
	}
	if err := readAt(f, end[:], e.Size-8); err != nil {
		return nil, unreadable(e.Path, err)
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > e.Size-12 || n > maxFooter {
		return nil, notParquet(e.Path, fmt.Errorf("a footer of %d bytes does not fit", n))
	}
	file, err := parquet.OpenFile(io.NewSectionReader(f, 0, e.Size), e.Size,
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err == nil {
		err = parquetfile.CheckCodecs(file)
	}
	if err != nil {
		return nil, notParquet(e.Path, err)
	}
	return file, nil
}

// rowBytes returns a file's rows and what one takes in memory, by the footer.
func rowBytes(file *parquet.File) (rows, each int64, err error) {
	var bytes int64
	for _, g := range file.Metadata().RowGroups {
		if g.NumRows < 0 || g.TotalByteSize < 0 {
			return 0, 0, errors.New("a row group of negative size")
		}
		rows += g.NumRows
		bytes += g.TotalByteSize
	}
	if rows != file.NumRows() {
		return 0, 0, fmt.Errorf("the footer counts %d rows, its row groups %d", file.NumRows(), rows)
	}
	if rows == 0 {
		return 0, 1, nil
	}
	return rows, max(1, bytes/rows), nil
}

// planParquet takes rows from a place on as far as the budget goes. Only the footer is read.
func planParquet(f io.ReaderAt, e *entry, from place, left *budget) (got scanned, err error) {
	err = guard(e.Path, func() error {
		file, err := openParquet(f, e)
		if err != nil {
			return err
		}
		rows, each, err := rowBytes(file)
		if err != nil {
			return notParquet(e.Path, err)
		}
		if from.Line > rows {
			return changed(e.Path, "the file has %d rows, fewer than the plan's %d", rows, from.Line)
		}
		n := min(rows-from.Line, left.records, left.bytes/each)
		if n <= 0 && !left.any {
			n = min(1, rows-from.Line)
		}
		line := from.Line + max(0, n)
		got = scanned{end: place{line * each, line}, eof: line == rows}
		return nil
	})
	return got, err
}

func (s *Source) readParquet(ctx context.Context, p *part, rec *abi.Record, to source.Writer) (err error) {
	f, err := s.open(&p.entry)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	r := rowReader{ctx: ctx, src: s, part: p, rec: rec, to: to}
	return r.read(f)
}

// rowReader reads the rows of one part of a Parquet file.
type rowReader struct {
	ctx  context.Context
	src  *Source
	part *part
	rec  *abi.Record
	to   source.Writer
	tree *rowTree
	// bools are the columns of the row group whose values the library reads wrongly.
	bools []*parquetfile.Booleans
	out   []byte
	// sent is an error of the writer. It goes out unchanged.
	sent error
}

func (r *rowReader) read(f durable.File) error {
	path := r.part.Path
	err := guard(path, func() error {
		file, err := openParquet(f, &r.part.entry)
		if err != nil {
			return err
		}
		if r.tree, err = newRowTree(file.Metadata().Schema, parquetfile.CalendarOf(file)); err != nil {
			return notParquet(path, err)
		}
		if rows := file.NumRows(); r.part.To.Line > rows || r.part.EOF && r.part.To.Line != rows {
			return changed(path, "the file has %d rows, the plan says %d", rows, r.part.To.Line)
		}
		var base int64
		for i, g := range file.RowGroups() {
			n := g.NumRows()
			from, to := max(0, r.part.From.Line-base), min(n, r.part.To.Line-base)
			if from < to {
				if err := r.openBooleans(f, &file.Metadata().RowGroups[i], from); err != nil {
					return notParquet(path, err)
				}
				if err := r.group(g, base, from, to); err != nil {
					return err
				}
			}
			base += n
		}
		return nil
	})
	if r.sent != nil {
		return r.sent
	}
	return err
}

// openBooleans opens the columns of booleans of a row group at one of its rows.
func (r *rowReader) openBooleans(f durable.File, g *format.RowGroup, from int64) error {
	r.bools = r.bools[:0]
	for _, n := range r.tree.bools {
		b, err := parquetfile.OpenBooleans(f, r.part.Size, g, n.first, n.rep, n.def)
		if err == nil && b != nil {
			err = b.Skip(from)
			r.bools = append(r.bools, b)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", n.name, err)
		}
	}
	return nil
}

// group delivers rows from..to of a row group whose first row is number base of the file.
func (r *rowReader) group(g parquet.RowGroup, base, from, to int64) (err error) {
	rows := g.Rows()
	defer closeWith(&err, rows)
	if from > 0 {
		if err := rows.SeekToRow(from); err != nil {
			return notParquet(r.part.Path, err)
		}
	}
	buf := make([]parquet.Row, rowsAtATime)
	for from < to {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n, err := rows.ReadRows(buf[:min(rowsAtATime, to-from)])
		if err != nil && err != io.EOF {
			return notParquet(r.part.Path, err)
		}
		if n == 0 {
			return notParquet(r.part.Path, fmt.Errorf("row %d is missing, the footer has it", base+from))
		}
		for _, row := range buf[:n] {
			if err := r.row(row, base+from); err != nil {
				return err
			}
			from++
		}
	}
	return nil
}

func (r *rowReader) row(row parquet.Row, number int64) error {
	r.rec.Offset = number
	for _, b := range r.bools {
		if err := b.Amend(row); err != nil {
			return notParquet(r.part.Path, fmt.Errorf("row %d: %w", number, err))
		}
	}
	out, err := r.tree.object(r.out[:0], row)
	r.out = out
	var bad *valueError
	switch {
	case errors.As(err, &bad):
		r.rec.Value = nil
		r.sent = r.to.Reject(r.rec, RejectValue, bad.Error())
	case err != nil:
		return notParquet(r.part.Path, fmt.Errorf("row %d: %w", number, err))
	case len(out) > r.src.cfg.MaxLine:
		r.rec.Value = out[:min(len(out), cutReject, r.src.cfg.MaxLine)]
		r.sent = r.to.Reject(r.rec, RejectTooLarge, "the row as JSON is longer than the limit")
	default:
		r.rec.Value = out
		r.sent = r.to.Write(r.rec)
	}
	return r.sent
}
