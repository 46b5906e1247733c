package parquetfile

import (
	"errors"
	"io"
)

// Footer is what a file says of its own size.
type Footer struct {
	Rows  int64
	Bytes int64 // of all columns, encoded but not compressed
}

// ReadFooter reads the footer of a file of any writer.
func ReadFooter(in io.ReaderAt, size int64) (f Footer, err error) {
	defer recovered("open a parquet file", &err)
	file, err := openFile(in, size)
	if err != nil {
		return Footer{}, err
	}
	for i := range file.Metadata().RowGroups {
		g := &file.Metadata().RowGroups[i]
		if g.NumRows < 0 || g.TotalByteSize < 0 {
			return Footer{}, errors.New("a row group has fewer than no rows or bytes")
		}
		f.Rows += g.NumRows
		f.Bytes += g.TotalByteSize
	}
	if f.Rows < 0 || f.Bytes < 0 || f.Rows != file.NumRows() {
		return Footer{}, errors.New("the footer does not count what its row groups count")
	}
	return f, nil
}

// Skip passes over the next rows, as many as asked for, which must be there. Row groups that are passed over whole are not
// read; in the one where reading goes on, columns without lists are not decoded up to there. After an error the reader is of
// no use any more.
func (r *Reader) Skip(n int64) (err error) {
	if n == 0 {
		return nil
	}
	if r.err != nil && r.err != io.EOF {
		return r.err
	}
	defer func() { r.err = err }()
	defer recovered("pass over rows of a parquet file", &err)
	for n > 0 {
		if r.left > 0 {
			k := min(n, r.left)
			if err := r.skipInGroup(k); err != nil {
				return err
			}
			n -= k
			continue
		}
		if err := r.closeGroup(r.opened); err != nil {
			return err
		}
		if r.group == len(r.file.RowGroups()) {
			return io.ErrUnexpectedEOF
		}
		if rows := r.file.RowGroups()[r.group].NumRows(); rows <= n {
			r.group++
			n -= rows
			continue
		}
		if err := r.openGroup(); err != nil {
			return err
		}
	}
	return nil
}

// skipInGroup passes over rows of the open row group.
func (r *Reader) skipInGroup(n int64) error {
	to := r.file.RowGroups()[r.group-1].NumRows() - r.left + n
	for _, s := range r.streams {
		if err := s.skip(n, to); err != nil {
			return err
		}
	}
	r.left -= n
	return nil
}

// skip passes over n rows, up to row number to of the row group. The library finds rows by counting those of pages. A row
// with a list may go on in the next page, so there each value is looked at.
func (s *stream) skip(n, to int64) error {
	if s.bools == nil && s.element.rep == 0 {
		s.release()
		s.at, s.n = 0, 0
		return s.pages.SeekToRow(to)
	}
	for ; n > 0; n-- {
		if _, err := s.need(); err != nil {
			return err
		}
		s.at++
		for {
			v, err := s.peek()
			if err != nil {
				return err
			}
			if v == nil || v.RepetitionLevel() == 0 {
				break
			}
			s.at++
		}
	}
	return nil
}
