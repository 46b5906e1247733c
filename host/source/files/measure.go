package files

import (
	"context"

	"github.com/wasmill/wasmill/host/source"
)

var _ source.Measurer = (*Source)(nil)

// Measure counts the files, lines (csv and parquet: rows) and decoded bytes of a range.
func (s *Source) Measure(ctx context.Context, r source.Range) (source.Extent, error) {
	from, err := parsePosition(r.From)
	if err != nil {
		return source.Extent{}, err
	}
	to, err := parsePosition(r.To)
	if err != nil {
		return source.Extent{}, err
	}
	parts, err := s.parts(from, to)
	if err != nil {
		return source.Extent{}, err
	}
	x := source.Extent{Lines: s.cfg.Format == JSONL || s.cfg.Format == Lines}
	for i := range parts {
		x.Parts++
		x.Records += parts[i].To.Line - parts[i].From.Line
		x.Bytes += parts[i].size()
	}
	return x, ctx.Err()
}
