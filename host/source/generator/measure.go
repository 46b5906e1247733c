package generator

import (
	"context"

	"github.com/wasmill/wasmill/host/source"
)

var _ source.Measurer = (*Source)(nil)

// Measure counts the records of a range.
func (s *Source) Measure(ctx context.Context, r source.Range) (source.Extent, error) {
	from, err := parse(r.From)
	if err != nil {
		return source.Extent{}, err
	}
	to, err := parse(r.To)
	if err != nil {
		return source.Extent{}, err
	}
	return source.Extent{Records: s.stream.count(from, to)}, ctx.Err()
}
