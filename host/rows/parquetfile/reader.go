package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows"
)

// maxFooter bounds a footer: its length is read from the file and allocated at once.
const maxFooter = 256 << 20

// readBuffer is what each column of a reader asks the file for at once.
const readBuffer = 64 << 10

// ReadOptions say what is read.
type ReadOptions struct {
	// Fixed holds the values of columns that are not in the file, such as those that its folder names.
	Fixed map[int]rows.Value
	// Only names the columns to read, the others stay null, even those that take none; nil means all.
	Only []int
	// Refuse is told of each value that cannot be told for certain, by its row in the table, where something else stands then.
	// Without Refuse such a value ends the reading with a *UnsupportedError.
	Refuse func(row int, column string, why *UnsupportedError)
}

// Reader reads a file's rows, in order. It is not safe for concurrent use.
type Reader struct {
	in      io.ReaderAt
	size    int64
	file    *parquet.File
	sources []*source
	streams []*stream
	pulse   *source // reads a leaf when no column is read, so that the footer's rows are not taken on trust
	refuser *refuser
	cal     Calendar
	rows    int64 // of the file
	group   int   // the next row group
	left    int64 // rows of the row group that is being read
	opened  bool  // that row group is
	err     error // after which nothing is read any more
}

// OpenReader reads the footer of a file of any writer and finds the schema's columns in it by name. What the file lacks is
// null. Integers may be narrower in the file, floats be doubles in the table, decimals have fewer digits; timestamps may have
// any unit and form, as long as they are microseconds; lists may have two levels.
func OpenReader(in io.ReaderAt, size int64, schema *rows.Schema, opts ReadOptions) (r *Reader, err error) {
	defer recovered("open a parquet file", &err)
	file, err := openFile(in, size)
	if err != nil {
		return nil, err
	}
	r = &Reader{in: in, size: size, file: file, cal: CalendarOf(file)}
	if opts.Refuse != nil && r.cal.refuses() {
		r.refuser = &refuser{to: opts.Refuse}
	}
	meta := file.Metadata()
	for i := range meta.RowGroups {
		if meta.RowGroups[i].NumRows < 0 {
			return nil, errors.New("a row group has fewer than no rows")
		}
		r.rows += meta.RowGroups[i].NumRows
	}
	if r.rows != meta.NumRows {
		return nil, fmt.Errorf("the footer counts %d rows, its row groups %d", meta.NumRows, r.rows)
	}
	root, err := elements(meta.Schema)
	if err != nil {
		return nil, err
	}
	if err := r.plan(root, schema, opts); err != nil {
		return nil, err
	}
	return r, nil
}

// openFile reads a file's footer.
func openFile(in io.ReaderAt, size int64) (*parquet.File, error) {
	if size < 12 {
		return nil, fmt.Errorf("%d bytes are too few", size)
	}
	var end [8]byte
	if n, err := in.ReadAt(end[:], size-8); n < len(end) {
		return nil, fmt.Errorf("read the end: %w", err)
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-12 || n > maxFooter {
		return nil, fmt.Errorf("a footer of %d bytes does not fit", n)
	}
	file, err := parquet.OpenFile(io.NewSectionReader(in, 0, size), size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(readBuffer))
	if err != nil {
		return nil, err
	}
	return file, CheckCodecs(file)
}

// plan finds the columns.
func (r *Reader) plan(root *element, schema *rows.Schema, opts ReadOptions) error {
	wanted := make([]bool, schema.Len())
	for _, c := range opts.Only {
		wanted[c] = true
	}
	for c := range schema.Len() {
		column := schema.Column(c)
		t := column.Type
		if opts.Only != nil && !wanted[c] {
			t.Required = false
			r.sources = append(r.sources, &source{typ: t, fixed: &rows.Value{Null: true}})
			continue
		}
		if x, ok := opts.Fixed[c]; ok {
			r.sources = append(r.sources, &source{typ: t, fixed: &x})
			continue
		}
		e := find(root, column.Name)
		if e == nil {
			if t.Required {
				return fmt.Errorf("the file has no column %s, which takes no null", column.Name)
			}
			r.sources = append(r.sources, &source{typ: t, fixed: &rows.Value{Null: true}})
			continue
		}
		s, err := r.match(t, e)
		if err != nil {
			return fmt.Errorf("column %s: %w", column.Name, err)
		}
		s.name, s.refuser = column.Name, r.refuser
		r.sources = append(r.sources, s)
	}
	if len(r.streams) == 0 {
		r.pulse = &source{lead: r.stream(root)}
	}
	return r.checkChunks()
}

// checkChunks demands that each row group has the columns that are read.
func (r *Reader) checkChunks() error {
	meta := r.file.Metadata()
	for _, s := range r.streams {
		for g := range meta.RowGroups {
			if s.element.first >= len(meta.RowGroups[g].Columns) {
				return fmt.Errorf("row group %d has %d columns, fewer than the schema", g, len(meta.RowGroups[g].Columns))
			}
		}
	}
	return nil
}

// NumRows returns the number of rows by the footer.
func (r *Reader) NumRows() int64 { return r.rows }

// Read adds the next rows to a table of the reader's schema, at most so many, and returns how many. At the end there are
// none, and the error is io.EOF. After another error the table is as before, and the reader is of no use any more.
func (r *Reader) Read(t *rows.Table, most int) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	defer func() {
		if err != nil {
			r.err = err
		}
	}()
	defer recovered("read a parquet file", &err)
	for r.left == 0 {
		if err := r.closeGroup(r.opened); err != nil {
			return 0, err
		}
		if r.group == len(r.file.RowGroups()) {
			return 0, io.EOF
		}
		if err := r.openGroup(); err != nil {
			return 0, err
		}
	}
	n = int(min(int64(most), r.left))
	err = t.Extend(n, func(column int, v *rows.Vector, from int) error { return r.sources[column].fill(v, from, n) })
	for i := 0; err == nil && r.pulse != nil && i < n; i++ {
		err = r.pulse.drain()
	}
	if err != nil {
		return 0, err
	}
	r.left -= int64(n)
	return n, nil
}

// Close gives the reader's memory back. The file itself is the caller's.
func (r *Reader) Close() (err error) {
	defer recovered("close a parquet file", &err)
	r.err = errors.New("the reader is closed")
	return r.closeGroup(false)
}

func (r *Reader) openGroup() error {
	g := r.file.RowGroups()[r.group]
	meta := &r.file.Metadata().RowGroups[r.group]
	r.group++
	r.left, r.opened = g.NumRows(), true
	chunks := g.ColumnChunks()
	for _, s := range r.streams {
		m := &meta.Columns[s.element.first].MetaData
		if m.Type != format.Boolean || !inRuns(m) {
			s.pages = chunks[s.element.first].Pages()
			continue
		}
		var err error
		if s.bools, err = newBoolReader(r.in, r.size, m, s.element); err != nil {
			return err
		}
	}
	return nil
}

// closeGroup ends a row group. With whole it must have been read to its end.
func (r *Reader) closeGroup(whole bool) error {
	var errs []error
	r.opened = false
	for _, s := range r.streams {
		if whole {
			switch v, err := s.peek(); {
			case err != nil:
				errs = append(errs, err)
			case v != nil:
				errs = append(errs, errors.New("a column has more values than the file has rows"))
			}
		}
		if err := s.close(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// recovered makes a panic of the library an error and says what failed.
func recovered(operation string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the parquet library gave up: %v", r)
	}
	if *err != nil && *err != io.EOF {
		*err = fmt.Errorf("%s: %w", operation, *err)
	}
}

// more reads the next values of a stream. At the end there are none.
func (s *stream) more() error {
	s.at, s.n = 0, 0
	if s.bools != nil {
		var err error
		s.n, err = s.bools.read(s.buf)
		return err
	}
	for {
		if s.values == nil {
			page, err := s.pages.ReadPage()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			s.page, s.values = page, page.Values()
		}
		n, err := s.values.ReadValues(s.buf)
		if err != nil && err != io.EOF {
			return err
		}
		if s.n = n; n > 0 {
			return nil
		}
		if err == nil {
			return io.ErrNoProgress
		}
		s.release()
	}
}

func (s *stream) release() {
	if s.page != nil {
		parquet.Release(s.page)
	}
	s.page, s.values = nil, nil
}

func (s *stream) close() error {
	s.release()
	s.at, s.n, s.bools = 0, 0, nil
	if s.pages == nil {
		return nil
	}
	pages := s.pages
	s.pages = nil
	return pages.Close()
}
