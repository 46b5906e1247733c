package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"unicode/utf8"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/source"
)

const (
	// maxRecord is the longest row as JSON; cutReject is how much of a longer one is handed over with its rejection.
	maxRecord = 16 << 20
	cutReject = 64 << 10
	// firstRows are read at once at first, then as many as take about tableBytes, at most mostRows.
	firstRows  = 8
	mostRows   = 1024
	tableBytes = 1 << 20
)

// Read delivers a split's rows. A row's Offset is its number in the file.
func (s *Source) Read(ctx context.Context, split source.Split, to source.Writer) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := decodePart(split)
	if err != nil {
		return err
	}
	if p.Gone != "" {
		return changed(split.Name, "%s", p.Gone)
	}
	e, err := s.history.era(ctx, p.Version)
	if err != nil {
		return err
	}
	if e.refused != nil {
		return e.refused
	}
	r := rowReader{part: p, era: e, name: path.Join(s.history.dir, p.Path), to: to, untold: map[int]string{}}
	f, err := open(s.cfg.Files, r.name, p.Size)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = unreadable(r.name, cerr)
		}
	}()
	for _, a := range s.cfg.Attach {
		r.rec.Headers = append(r.rec.Headers, abi.Header{Name: []byte(a), Value: []byte(r.name)})
	}
	return r.read(ctx, f)
}

// rowReader reads the rows of one part of a file.
type rowReader struct {
	part *part
	era  *era
	name string
	to   source.Writer
	rec  abi.Record
	in   *parquetfile.Reader
	out  []byte
	// untold says of rows of the table that is being read why a value cannot be told for certain.
	untold map[int]string
}

func (r *rowReader) read(ctx context.Context, f durable.File) (err error) {
	fixed, err := r.fixed()
	if err != nil {
		return err
	}
	if r.in, err = parquetfile.OpenReader(f, r.part.Size, r.era.schema, parquetfile.ReadOptions{Fixed: fixed, Refuse: r.refuse}); err != nil {
		return notRead(r.name, err)
	}
	defer func() {
		if cerr := r.in.Close(); err == nil && cerr != nil {
			err = notRead(r.name, cerr)
		}
	}()
	if n := r.in.NumRows(); n != r.part.Rows {
		return changed(r.name, "the file has %d rows, and %d were planned", n, r.part.Rows)
	}
	if err := r.in.Skip(r.part.From); err != nil {
		return notRead(r.name, err)
	}
	t, most := rows.NewTable(r.era.schema), int64(firstRows)
	for at := r.part.From; at < r.part.To; {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.Reset()
		clear(r.untold)
		n, err := r.in.Read(t, int(min(most, r.part.To-at)))
		if err != nil {
			return notRead(r.name, fmt.Errorf("from row %d on: %w", at, err))
		}
		if err := r.deliver(t, at); err != nil {
			return err
		}
		at += int64(n)
		most = min(max(1, tableBytes*int64(n)/max(1, t.Bytes())), mostRows)
	}
	return r.end()
}

// end reads on where the file should end: what is there is not all, if anything comes.
func (r *rowReader) end() error {
	if r.part.To != r.part.Rows {
		return nil
	}
	if _, err := r.in.Read(rows.NewTable(r.era.schema), 1); !errors.Is(err, io.EOF) {
		return notRead(r.name, errors.Join(errors.New("it goes on after its last row"), err))
	}
	return nil
}

func (r *rowReader) refuse(row int, column string, why *parquetfile.UnsupportedError) {
	if r.untold[row] == "" {
		r.untold[row] = fmt.Sprintf("column %s: %v; %s", column, why, why.Hint())
	}
}

// fixed holds the values of the partition columns.
func (r *rowReader) fixed() (map[int]rows.Value, error) {
	out := map[int]rows.Value{}
	for _, column := range r.era.parts {
		i := r.era.schema.Index(column)
		v, err := delta.PartitionValue(r.era.schema.Column(i).Type, r.part.Values[column])
		if err != nil {
			return nil, fmt.Errorf("%s: partition column %s: %w", r.name, column, err)
		}
		out[i] = v
	}
	return out, nil
}

// deliver hands over the rows of a table, whose first is number at of the file.
func (r *rowReader) deliver(t *rows.Table, at int64) error {
	for i := range t.Len() {
		r.rec.Offset = at + int64(i)
		r.out = r.era.object(r.out[:0], t, i)
		var err error
		switch untold := r.untold[i]; {
		case untold != "":
			r.rec.Value = nil
			err = r.to.Reject(&r.rec, RejectValue, untold)
		case len(r.out) > maxRecord:
			r.rec.Value = r.out[:cutReject]
			err = r.to.Reject(&r.rec, RejectTooLarge, "the row as JSON is longer than 16 MiB")
		case !utf8.Valid(r.out):
			r.rec.Value = nil
			err = r.to.Reject(&r.rec, RejectValue, "a text in the row is not UTF-8")
		default:
			r.rec.Value = r.out
			err = r.to.Write(&r.rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
