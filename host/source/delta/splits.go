package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
)

const (
	// pieces is into how many splits of about the same size a range is cut where its files are large: twice the default
	// number of lanes. minPiece, in rows, keeps small files whole.
	pieces   = 8
	minPiece = 32 << 10
)

// part is a stretch of a file. It is the Detail of a split.
type part struct {
	Path    string             `json:"path"` // relative to the table, as it is on disk
	Size    int64              `json:"size"` // of the file in bytes
	Rows    int64              `json:"rows"` // of the file
	From    int64              `json:"from"` // in rows
	To      int64              `json:"to"`
	Version int64              `json:"version"` // whose schema the rows have
	Values  map[string]*string `json:"values,omitempty"`
	Gone    string             `json:"gone,omitempty"` // why nothing of the range can be read; the rest is empty
}

// Splits cuts a range into one split a file, and large files into several.
func (s *Source) Splits(ctx context.Context, r source.Range) ([]source.Split, error) {
	parts, err := s.parts(ctx, r)
	if err != nil && s.cfg.SkipLost && (lost(err) || errors.Is(err, delta.ErrNoVersion)) {
		// Reading it fails as of a changed input, whereupon the plan is amended.
		parts, err = []part{{Path: "_delta_log", Gone: err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	var total int64
	for i := range parts {
		total += parts[i].To - parts[i].From
	}
	piece := max(minPiece, total/pieces)
	out := make([]source.Split, 0, len(parts))
	for i := range parts {
		for _, p := range parts[i].cut(piece) {
			detail, err := json.Marshal(&p)
			if err != nil {
				return nil, fmt.Errorf("split: %w", err)
			}
			out = append(out, source.Split{Name: s.history.dir + "/" + p.Path, Size: p.To - p.From, Detail: detail})
		}
	}
	return out, nil
}

// cut cuts a part into pieces of the same number of rows, but for the last.
func (p part) cut(piece int64) []part {
	length := p.To - p.From
	n := max(1, (length+piece/2)/piece)
	out := make([]part, 0, n)
	for i := range n {
		q := p
		q.From, q.To = p.From+length/n*i, p.From+length/n*(i+1)
		if i == n-1 {
			q.To = p.To
		}
		out = append(out, q)
	}
	return out
}

// Measure counts the files and rows of a range.
func (s *Source) Measure(ctx context.Context, r source.Range) (source.Extent, error) {
	parts, err := s.parts(ctx, r)
	if err != nil {
		return source.Extent{}, err
	}
	x := source.Extent{Parts: int64(len(parts))}
	for i := range parts {
		x.Records += parts[i].To - parts[i].From
	}
	return x, nil
}

// parts lists what lies in a range.
func (s *Source) parts(ctx context.Context, r source.Range) ([]part, error) {
	from, err := parsePosition(r.From)
	if err != nil {
		return nil, err
	}
	to, err := parsePosition(r.To)
	if err != nil {
		return nil, err
	}
	at := from.at
	if to.begin != nil {
		at = *to.begin
	}
	switch {
	case r.From == r.To:
		return nil, nil
	case at.version == none || at.compare(to.at) > 0:
		return nil, badPosition(r.To.Line, errors.New("the range ends before it begins"))
	}
	w := ranger{s: s, to: to, out: []part{}}
	for at.compare(to.at) < 0 {
		v, err := s.history.step(ctx, at)
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, noVersion(s.cfg.Dir, "version %d was planned, and the log ends before it", at.version)
		}
		if !v.era.sameTable(to.table) {
			return nil, s.otherTable(to.table, v.era.meta.ID)
		}
		if at.snapshot || v.removes == "" { // else it was passed over
			if err := w.version(ctx, v, at); err != nil {
				return nil, err
			}
		}
		at = after(v.number)
	}
	return w.out, nil
}

// ranger lists the parts of a range that ends at to.
type ranger struct {
	s   *Source
	to  *position
	out []part
}

// version adds what the range has of a version from a place in it on.
func (w *ranger) version(ctx context.Context, v *version, at place) error {
	for ; at.index < int64(len(v.adds)); at.index, at.rows = at.index+1, 0 {
		if at.compare(w.to.at) >= 0 {
			return nil
		}
		if w.leftOut(fileID{v.number, at.index}) {
			continue
		}
		a := v.adds[at.index]
		last := at.index == w.to.at.index && at.version == w.to.at.version && at.snapshot == w.to.at.snapshot
		if err := w.file(ctx, v, a, at.rows, last); err != nil {
			return err
		}
	}
	return nil
}

func (w *ranger) leftOut(f fileID) bool {
	for _, l := range w.to.lost {
		if l == f {
			return true
		}
	}
	return false
}

func (w *ranger) file(ctx context.Context, v *version, a *delta.Add, from int64, last bool) error {
	rel, err := a.File()
	if err != nil {
		return err
	}
	rows, err := w.s.history.rows(ctx, a)
	if err != nil {
		return err
	}
	p := part{Path: rel, Size: a.Size, Rows: rows, From: from, To: rows, Version: v.number, Values: a.PartitionValues}
	if last {
		p.To = w.to.at.rows
	}
	if p.To > rows || p.From > p.To {
		return badPosition(w.to.table, fmt.Errorf("the range has rows %d to %d of %s, which has %d", p.From, p.To, rel, rows))
	}
	if p.From < p.To {
		w.out = append(w.out, p)
	}
	return nil
}

func decodePart(s source.Split) (*part, error) {
	var p part
	if err := json.Unmarshal(s.Detail, &p); err != nil {
		return nil, fmt.Errorf("split %s: %w", s.Name, err)
	}
	if p.From < 0 || p.To < p.From || p.Rows < p.To || p.Size < 0 || p.Version < 0 {
		return nil, fmt.Errorf("split %s: its numbers do not go together", s.Name)
	}
	return &p, nil
}
