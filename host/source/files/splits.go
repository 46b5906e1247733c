package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/source"
)

const (
	// pieces is into how many splits of about the same size a range is cut where its files are large: twice the default
	// number of lanes. minPiece keeps small files whole. Both shape the lanes of a batch, as blockSize does.
	pieces   = 8
	minPiece = 1 << 20
)

// part is a stretch of a file. It is the Detail of a split.
type part struct {
	entry
	From place `json:"from"`
	To   place `json:"to"`
	// EOF: To is the end of the file.
	EOF bool `json:"eof,omitempty"`
	// Cut is where earlier batches have ended in the file; nil: this one begins with it.
	Cut *cut `json:"cut,omitempty"`
}

// size is the planned size in decoded bytes.
func (p *part) size() int64 { return p.To.Off - p.From.Off }

// Splits cuts a range into one split a file, and large text files into several at ends of lines.
func (s *Source) Splits(ctx context.Context, r source.Range) ([]source.Split, error) {
	from, err := parsePosition(r.From)
	if err != nil {
		return nil, err
	}
	to, err := parsePosition(r.To)
	if err != nil {
		return nil, err
	}
	parts, err := s.parts(from, to)
	if err != nil {
		return nil, err
	}
	var total int64
	for i := range parts {
		total += parts[i].size()
	}
	piece := max(minPiece, total/pieces)
	out := make([]source.Split, 0, len(parts))
	for i := range parts {
		cut, err := s.cut(ctx, &parts[i], piece)
		if err != nil {
			return nil, err
		}
		for j := range cut {
			detail, err := marshal(&cut[j])
			if err != nil {
				return nil, fmt.Errorf("split: %w", err)
			}
			out = append(out, source.Split{Name: cut[j].Path, Size: cut[j].size(), Detail: detail})
		}
	}
	return out, nil
}

// parts lists what lies between two positions.
func (s *Source) parts(from, to *position) ([]part, error) {
	if to.log < from.log {
		return nil, badPosition(fmt.Sprint(to.log), errors.New("the range ends before it begins"))
	}
	var out []part
	if from.At != nil {
		p := part{entry: from.At.File, From: from.At.place, EOF: true, Cut: &from.At.cut}
		switch {
		case to.Done != nil: // first: the file may go on as another one, which has the same ends
			p.To = *to.Done
		case to.At != nil && to.At.File.Path == p.Path && to.At.File.ETag == p.ETag:
			p.To, p.EOF = to.At.place, false
		default:
			return nil, badPosition(fmt.Sprint(to.log), fmt.Errorf("the range does not say where %s ends", p.Path))
		}
		if p.To.Off < p.From.Off || p.To.Line < p.From.Line {
			return nil, badPosition(fmt.Sprint(to.log), errors.New("the range ends before it begins"))
		}
		if p.To != p.From {
			out = append(out, p)
		}
	}
	for k := from.log + 1; k <= to.log; k++ {
		entries, err := s.logs.read(k, to)
		if err != nil {
			return nil, err
		}
		if err := checkSum(to, k, entries); err != nil {
			return nil, damaged(s.logs.plain(k), err)
		}
		for i := range entries {
			p, err := whole(&entries[i], to)
			if err != nil {
				return nil, damaged(s.logs.plain(k), err)
			}
			if p.To != p.From {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// whole is the part that a log entry stands for in the range that ends at to.
func whole(e *entry, to *position) (part, error) {
	p := part{entry: *e, EOF: true}
	p.End, p.Begin = nil, nil
	if e.Begin != nil {
		p.From, p.Cut = e.Begin.place, e.Begin
	}
	switch {
	case e.ETag == "":
		return p, fmt.Errorf("%s was planned by Spark: let Spark finish that batch", e.Path)
	case e.End != nil:
		p.To = *e.End
	case to.At != nil && to.At.File.Path == e.Path:
		p.To, p.EOF = to.At.place, false
	default:
		return p, fmt.Errorf("nothing says where %s ends in this batch", e.Path)
	}
	if p.To.Off < p.From.Off || p.To.Line < p.From.Line {
		return p, fmt.Errorf("%s ends before it begins", e.Path)
	}
	return p, nil
}

func checkSum(to *position, k int64, entries []entry) error {
	if to.Sum == "" || k != to.log {
		return nil
	}
	got, err := sum(entries)
	if err != nil {
		return err
	}
	if got != to.Sum {
		return errors.New("the log does not hold the files that the plan names")
	}
	return nil
}

// cut cuts a large part of text at the first marks after even distances.
func (s *Source) cut(ctx context.Context, p *part, piece int64) ([]part, error) {
	length := p.To.Off - p.From.Off
	n := (length + piece/2) / piece
	if n < 2 || s.cfg.Format != Lines && s.cfg.Format != JSONL {
		return []part{*p}, nil
	}
	marks, err := s.marks(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make([]part, 0, n)
	rest := *p
	i := 0
	for k := int64(1); k < n; k++ {
		want := p.From.Off + length/n*k
		for i < len(marks) && marks[i].Off < want {
			i++
		}
		if i == len(marks) || marks[i].Off >= p.To.Off {
			break
		}
		if marks[i].Off <= rest.From.Off {
			continue
		}
		head := rest
		head.To, head.EOF = marks[i], false
		rest.From = marks[i]
		out = append(out, head)
	}
	return append(out, rest), nil
}

// marks returns the ends of lines that a part may be cut at: kept since it was planned, or found again.
func (s *Source) marks(ctx context.Context, p *part) (marks []mark, err error) {
	if marks, ok := s.cache.marks(p.key(), p.From, p.To); ok {
		return marks, nil
	}
	st, err := s.openStream(&p.entry, p.From.Off)
	if err != nil {
		return nil, err
	}
	defer closeWith(&err, st)
	buf := s.scratch.Get().(*[]byte)
	defer s.scratch.Put(buf)
	in := &blocks{ctx: ctx, st: st, buf: *buf}
	if st.packed() {
		in.cache = s.cache
	}
	left := newBudget(source.Limit{Records: p.To.Line - p.From.Line})
	left.lines = true
	got, err := scanText(in, p.From, left)
	if err != nil {
		if in.cache != nil {
			in.giveUp()
		}
		return nil, err
	}
	s.keep(&p.entry, in, p.From, got)
	if got.end != p.To || got.eof != p.EOF {
		return nil, changed(p.Path, "the planned part ends at %+v, the file has it end at %+v", p.To, got.end)
	}
	return got.marks, nil
}

func (e *entry) key() fileKey { return fileKey{e.Path, e.ETag, e.Size} }

func decodePart(s source.Split) (*part, error) {
	var p part
	if err := json.Unmarshal(s.Detail, &p); err != nil {
		return nil, fmt.Errorf("split %s: %w", s.Name, err)
	}
	if err := p.resolve(); err != nil {
		return nil, fmt.Errorf("split %s: %w", s.Name, err)
	}
	return &p, nil
}
