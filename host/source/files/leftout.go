package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

var (
	_ source.Mendable = (*Source)(nil)
	_ source.Reviewer = (*Source)(nil)
)

// Mend says how a record is mended in its file.
func (s *Source) Mend() string {
	if s.cfg.Format == Parquet {
		return "the record in its file, as long as no earlier batch has read rows of that file; then start once with `onDataLoss: skip` of the source, " +
			"which reads a changed file as it is now, but leaves out the rest of one that was begun"
	}
	return "the record in its file, with all that stands before it left as it is; then start once with `onDataLoss: skip` of the source, " +
		"which reads what was not read yet as the file is now"
}

// unlike says why the rest of a changed file is not read.
func (s *Source) unlike(c *cut, same bool) string {
	read := "what was read of it, up to " + s.spot(c.place) + ","
	switch {
	case same:
		return "its rest after " + s.spot(c.place) + " cannot be decoded"
	case s.cfg.Format == Parquet || c.Sum == "":
		return read + " is not known to be as it was"
	}
	return read + " is not as it was"
}

// countRest counts what a file holds beyond a place, -1 what cannot be counted.
func (s *Source) countRest(ctx context.Context, e *entry, from place) (records, bytes int64) {
	f, err := s.open(e)
	if err != nil {
		return -1, -1
	}
	left := newBudget(source.Limit{})
	left.lines = true
	if s.cfg.Format == Parquet {
		got, err := planParquet(f, e, place{}, left)
		if errors.Join(err, f.Close()) != nil {
			return -1, -1
		}
		return max(0, got.end.Line-from.Line), -1
	}
	st, err := newStream(f, e.Path, e.Size, s.cfg.Compression)
	if err != nil {
		return -1, -1
	}
	buf := s.scratch.Get().(*[]byte)
	defer s.scratch.Put(buf)
	got, err := s.scan(&blocks{ctx: ctx, st: st, buf: *buf}, place{}, left)
	if errors.Join(err, st.Close()) != nil {
		return -1, -1
	}
	return max(0, got.end.Line-from.Line), max(0, got.end.Off-from.Off)
}

// gone reports that nothing can be read of a file from a place on. to is where its end was planned, nil where that is not known.
func (s *Source) gone(e *entry, from place, to *place) *source.LeftOutError {
	out := &source.LeftOutError{Split: e.Path, Detail: "the file is gone", Records: -1, Bytes: -1, Unit: s.unit()}
	if from.Line > 0 {
		out.Detail += "; it was read up to " + s.spot(from)
	}
	plain := s.cfg.Format != Parquet && compression(s.cfg.Compression, e.Path, strings.NewReader(""), 0) == None
	switch {
	case to != nil && s.cfg.Format == Parquet:
		out.Records = to.Line - from.Line
	case to != nil:
		out.Records, out.Bytes = to.Line-from.Line, to.Off-from.Off
	case plain:
		out.Bytes = e.Size - from.Off
	}
	return out
}

// Review reports the files of a range that are gone.
func (s *Source) Review(_ context.Context, r source.Range) {
	from, err := parsePosition(r.From)
	if err != nil {
		return
	}
	to, err := parsePosition(r.To)
	if err != nil {
		return
	}
	parts, err := s.parts(from, to)
	if err != nil {
		return // reading the range has said so
	}
	for i := range parts {
		p := &parts[i]
		info, err := s.cfg.Files.Stat(p.Path)
		if (err != nil || info.Size > 0) && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if p.EOF {
			s.leftOut(s.gone(&p.entry, p.From, &p.To))
		} else {
			s.leftOut(s.gone(&p.entry, p.From, nil))
		}
	}
}

// explain gives an error about a changed file the way out that fits it.
func (s *Source) explain(ctx context.Context, p *part, err error) error {
	if err == nil || s.cfg.SkipLost {
		return err
	}
	return s.wayOut(ctx, err, &p.entry, p.Cut, math.MaxInt64)
}

// wayOut says beforehand what SkipLost would make of a file that has changed. c is where earlier batches have ended in it.
func (s *Source) wayOut(ctx context.Context, err error, e *entry, c *cut, most int64) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.ErrCode != CodeChanged {
		return err
	}
	then, err := s.would(ctx, e, c, most)
	if err != nil {
		then = "the file is then taken as it is" // why it cannot be looked at is not what stopped the job
	}
	return fault.New(f.ErrCode, f.Place, f.Err, putBack+skipOnce+then)
}

func (s *Source) would(ctx context.Context, e *entry, c *cut, most int64) (string, error) {
	now, f, err := s.asNow(e.Path, most, false)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c == nil:
		return "it is then LEFT OUT (" + s.gone(e, place{}, nil).Amount() + ")", nil
	case errors.Is(err, fs.ErrNotExist):
		return "its rest after " + s.spot(c.place) + " is then LEFT OUT (" + s.gone(e, c.place, nil).Amount() + ")", nil
	case err != nil:
		return "", err
	case c == nil:
		return "it is then read from its beginning, as it is now", f.Close()
	}
	st, err := s.after(ctx, now, f, c)
	if err != nil {
		return "", err
	}
	if st != nil {
		return "what was read of it, up to " + s.spot(c.place) + ", is as it was, and its rest is then read as it is now", st.Close()
	}
	lines, bytes := s.countRest(ctx, now, c.place)
	left := &source.LeftOutError{Records: lines, Bytes: bytes, Unit: s.unit()}
	return s.unlike(c, false) + ", so that its rest is then LEFT OUT (" + left.Amount() + "); to have that read, put it into a file with a new name", nil
}

func (s *Source) unit() string {
	if s.cfg.Format == Lines || s.cfg.Format == JSONL {
		return "line"
	}
	return "row"
}

// spot is a place for people.
func (s *Source) spot(p place) string {
	if s.cfg.Format == Parquet {
		return fmt.Sprintf("row %d", p.Line)
	}
	return fmt.Sprintf("%s %d (byte %d)", s.unit(), p.Line, p.Off)
}

// detail is what an error says beside the place and the way out.
func detail(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Err.Error()
	}
	return err.Error()
}

// leftOut reports what is left out, once: a batch may be planned more than once.
func (s *Source) leftOut(l *source.LeftOutError) { s.warnOnce(l.Split+"\x00"+l.Detail, l) }

func (s *Source) say(path, text string) { s.warnOnce(path+"\x00"+text, errors.New(path+": "+text)) }

// maxSaid bounds what is remembered of what was said. Beyond it something may be said twice.
const maxSaid = 10_000

func (s *Source) warnOnce(key string, err error) {
	if s.said[key] {
		return
	}
	if s.said == nil || len(s.said) >= maxSaid {
		s.said = map[string]bool{}
	}
	s.said[key] = true
	s.cfg.Warn(err)
}
