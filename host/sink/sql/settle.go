package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// span are some changes of a part, [from, to).
type span struct {
	part     *part
	gone     bool
	from, to int
}

// waiter is a span that fails for want of other rows.
type waiter struct {
	span
	err error
}

// mostWaiting is how many spans may wait. When there are more, rows are tried in order and wait for none.
const mostWaiting = 4 * mostRefused

// spansOf are the changes of parts in the order in which they are written.
func spansOf(parts []part) []span {
	var out []span
	for i := range parts {
		p := &parts[i]
		if n := p.changes.Gone.Len(); n > 0 {
			out = append(out, span{p, true, 0, n})
		}
		if n := p.changes.Put.Len(); n > 0 {
			out = append(out, span{p, false, 0, n})
		}
	}
	return out
}

// together are the changes of spans of one part.
func together(spans []span) *Changes {
	all := &spans[0].part.changes
	some := &Changes{Put: Rows{Tables: all.Put.Tables}, Gone: Rows{Tables: all.Gone.Tables}}
	for _, p := range spans {
		from, to := &all.Put, &some.Put
		if p.gone {
			from, to = &all.Gone, &some.Gone
		}
		if refs := from.Refs[p.from:p.to:p.to]; to.Refs == nil {
			to.Refs = refs
		} else {
			to.Refs = append(to.Refs, refs...)
		}
	}
	return some
}

// write writes spans, those of one part that follow each other at once.
func (s *sieving) write(ctx context.Context, spans []span) error {
	for len(spans) > 0 {
		p := spans[0].part
		n := slices.IndexFunc(spans, func(o span) bool { return o.part != p })
		if n < 0 {
			n = len(spans)
		}
		if err := s.t.conn.Write(ctx, p.route.binding, together(spans[:n])); err != nil {
			return err
		}
		spans = spans[n:]
	}
	return nil
}

// settle writes spans but for the rows that are refused. What waits is tried again as long as that helps.
func (s *sieving) settle(ctx context.Context, open []span) error {
	for len(open) > 0 {
		s.waiting = nil
		for _, p := range open {
			if err := s.halve(ctx, p); err != nil {
				return err
			}
		}
		before := rowsOf(open)
		if open = spansIn(s.waiting); rowsOf(open) < before {
			continue
		}
		var err error
		if open, err = s.unlock(ctx, s.waiting); err != nil {
			return err
		}
	}
	return nil
}

func rowsOf(spans []span) int {
	n := 0
	for _, p := range spans {
		n += p.to - p.from
	}
	return n
}

// unlock goes on where no span goes well alone. All at once they may, but for rows for which all fail as they do alone. If that
// does not tell, they are tried in halves.
func (s *sieving) unlock(ctx context.Context, left []waiter) (open []span, err error) {
	explain := s.t.cfg.Database.Explain
	for {
		err = left[0].err
		if len(left) > 1 {
			err = s.try(ctx, spansIn(left)...)
		}
		if err == nil || !explain(err).Data {
			return nil, err
		}
		same := func(w waiter) bool { return explain(w.err).Detail == explain(err).Detail }
		guilty := func(w waiter) bool { return w.to-w.from == 1 && same(w) }
		if !slices.ContainsFunc(left, guilty) || !slices.ContainsFunc(left, func(w waiter) bool { return !same(w) }) {
			break // what is said of all tells nothing of one
		}
		var others []waiter
		for _, w := range left {
			if !guilty(w) {
				others = append(others, w)
			} else if err := s.refuse(w.span, w.err); err != nil {
				return nil, err
			}
		}
		left = others
	}
	single := len(left) == rowsOf(spansIn(left))
	for _, w := range left {
		if w.to-w.from > 1 {
			a, b := w.halves(w.err)
			open = append(open, a, b)
		} else if !single {
			open = append(open, w.span)
		} else if err := s.refuse(w.span, w.err); err != nil {
			return nil, err
		}
	}
	if len(open) > mostWaiting {
		s.way.wait = false
	}
	return open, nil
}

func spansIn(all []waiter) []span {
	out := make([]span, len(all))
	for i := range all {
		out[i] = all[i].span
	}
	return out
}

// halves splits a span, at the row that an error names if it can.
func (p span) halves(err error) (a, b span) {
	mid := (p.from + p.to) / 2
	var at *RowError
	if errors.As(err, &at) && at.Row > 0 && at.Row < p.to-p.from {
		mid = p.from + at.Row // what stands before it went well
	}
	a, b = p, p
	a.to, b.from = mid, mid
	return a, b
}

// halve writes a span, without those of its rows that are refused or wait.
func (s *sieving) halve(ctx context.Context, p span) error {
	err := s.try(ctx, p)
	if err == nil {
		return nil
	}
	if !s.t.cfg.Database.Explain(err).Data {
		return err
	}
	if s.way.wait {
		waits := s.way.anyWait
		if !waits {
			var bad error
			if waits, bad = s.t.conn.Waits(ctx, err); bad != nil {
				return bad
			}
		}
		if waits {
			s.waiting = append(s.waiting, waiter{p, err})
			return nil
		}
	}
	if p.to-p.from == 1 {
		return s.refuse(p, err)
	}
	a, b := p.halves(err)
	if err := s.halve(ctx, a); err != nil {
		return err
	}
	return s.halve(ctx, b)
}

// try writes spans under a savepoint, which it takes back after an error.
func (s *sieving) try(ctx context.Context, spans ...span) error {
	conn := s.t.conn
	if _, err := conn.Query(ctx, "SAVEPOINT wasmill_rows"); err != nil {
		return err
	}
	err := s.write(ctx, spans)
	if err == nil && s.way.check {
		err = conn.Check(ctx)
	}
	if err != nil && s.t.cfg.Database.Explain(err).Data {
		if _, gone := conn.Query(ctx, "ROLLBACK TO SAVEPOINT wasmill_rows"); gone != nil {
			if bad := s.anew(ctx); bad != nil {
				return fmt.Errorf("%w: %s", errEnded, bad) // no row is the reason, whatever it says
			}
			return err
		}
	}
	if _, again := conn.Query(ctx, "RELEASE SAVEPOINT wasmill_rows"); again != nil && err == nil {
		return again
	}
	if err == nil {
		s.keep(spans)
	}
	return err
}

// keep notes what is written.
func (s *sieving) keep(spans []span) {
	for _, p := range spans {
		if n := len(s.kept); n > 0 {
			if last := &s.kept[n-1]; last.part == p.part && last.gone == p.gone && last.to == p.from {
				last.to = p.to
				continue
			}
		}
		s.kept = append(s.kept, p)
	}
}

// anew begins the transaction again after the database has ended it, savepoint and all, as SQLite's ON CONFLICT ROLLBACK does,
// and writes what was written.
func (s *sieving) anew(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.write(ctx, s.kept); err != nil {
		return fmt.Errorf("write again what went well: %w", err)
	}
	return nil
}

// refuse notes one row.
func (s *sieving) refuse(p span, err error) error {
	alone := part{route: p.part.route, lanes: p.part.lanes, changes: *together([]span{p})}
	s.bad = append(s.bad, badRow{part: alone, gone: p.gone, err: err})
	if len(s.bad) == mostRefused {
		return errEnough
	}
	return nil
}
