package sql

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/sink"
)

// refusal says which of the lanes' rows is refused.
func (p *part) refusal(gone bool, r Ref, m *sink.Misfit) sink.Refusal {
	return sink.Refusal{Sink: p.route.sink.Name, Lane: int(r.Table), Row: p.lanes[r.Table].place(gone, r.Row), Misfit: m}
}

// outside finds the rows that break a rule of their table, without asking the database.
func outside(parts []part) *sink.Refused {
	var found sink.Refused
	for i := range parts {
		p := &parts[i]
		if len(p.route.table) == 0 {
			continue
		}
		for _, ref := range p.changes.Put.Refs {
			m := breaks(p.route.table, p.lanes[ref.Table].put, int(ref.Row))
			if m == nil {
				continue
			}
			if len(found.Rows) == mostRefused {
				found.More = true
				return &found
			}
			found.Rows = append(found.Rows, p.refusal(false, ref, m))
		}
	}
	if len(found.Rows) == 0 {
		return nil
	}
	return &found
}

// mostRefused is how many rows are looked for that the database does not take.
const mostRefused = 1000

// sieve finds the rows that a database does not take, in a transaction of its own without effect: it writes them in
// halves, each under a savepoint, with every constraint checked. nil: none is refused alone, or it cannot be told. What a
// database ends the whole transaction for is found too, more slowly.
func (t *Target) sieve(ctx context.Context, parts []part) *sink.Refused {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Limits.Statement)
	defer cancel()
	s := &sieving{t: t}
	err := t.conn.Begin(ctx)
	for i := 0; i < len(parts) && err == nil; i++ {
		s.part = &parts[i]
		if err = s.hold(ctx, s.part); err != nil {
			break
		}
		c := &s.part.changes
		if err = s.halve(ctx, true, 0, c.Gone.Len()); err == nil {
			err = s.halve(ctx, false, 0, c.Put.Len())
		}
	}
	if err != nil && !errors.Is(err, errEnough) || t.conn.Rollback(ctx) != nil {
		t.drop(ctx)
	}
	if len(s.found.Rows) == 0 {
		return nil
	}
	s.found.More = err != nil
	return &s.found
}

// errChanged ends the search: what is refused may not be the rows' fault.
var errChanged = errors.New("the table was changed")

// errEnded ends the search too: without a transaction, what is tried would stay.
var errEnded = errors.New("the database has ended the transaction, and it cannot be begun again")

var errEnough = errors.New("enough rows are found")

type sieving struct {
	t     *Target
	part  *part
	found sink.Refused
	kept  []span // what is written so far
}

// span are some changes of a part, [from, to).
type span struct {
	part     *part
	gone     bool
	from, to int
}

func (p *span) changes() *Changes {
	c := &p.part.changes
	some := &Changes{Put: c.Put.Slice(0, 0), Gone: c.Gone.Slice(0, 0)}
	if p.gone {
		some.Gone = c.Gone.Slice(p.from, p.to)
	} else {
		some.Put = c.Put.Slice(p.from, p.to)
	}
	return some
}

func (s *sieving) hold(ctx context.Context, p *part) error {
	same, err := s.t.conn.Hold(ctx, p.route.binding)
	if err == nil && !same {
		err = errChanged
	}
	return err
}

// keep notes what is written.
func (s *sieving) keep(p span) {
	if n := len(s.kept); n > 0 {
		if last := &s.kept[n-1]; last.part == p.part && last.gone == p.gone && last.to == p.from {
			last.to = p.to
			return
		}
	}
	s.kept = append(s.kept, p)
}

// anew begins the transaction again after the database has ended it, savepoint and all, as SQLite's ON CONFLICT ROLLBACK does,
// and writes what was written.
func (s *sieving) anew(ctx context.Context) error {
	conn := s.t.conn
	if err := conn.Rollback(ctx); err != nil {
		return err
	}
	if err := conn.Begin(ctx); err != nil {
		return err
	}
	held := s.part
	if err := s.hold(ctx, held); err != nil {
		return err
	}
	for i := range s.kept {
		p := &s.kept[i]
		if p.part != held {
			if held = p.part; s.hold(ctx, held) != nil {
				return errChanged
			}
		}
		if err := conn.Write(ctx, p.part.route.binding, p.changes()); err != nil {
			return fmt.Errorf("write again what went well: %w", err)
		}
	}
	return nil
}

// halve writes a range of the changes, without those that are refused.
func (s *sieving) halve(ctx context.Context, gone bool, from, to int) error {
	if from == to {
		return nil
	}
	err := s.try(ctx, gone, from, to)
	if err == nil {
		return nil
	}
	if !s.t.cfg.Database.Explain(err).Data {
		return err
	}
	if to-from == 1 {
		return s.refuse(gone, from, err)
	}
	mid := (from + to) / 2
	var at *RowError
	if errors.As(err, &at) && at.Row > 0 && at.Row < to-from {
		mid = from + at.Row // what stands before it went well
	}
	if err := s.halve(ctx, gone, from, mid); err != nil {
		return err
	}
	return s.halve(ctx, gone, mid, to)
}

// try writes a range under a savepoint, which it takes back after an error.
func (s *sieving) try(ctx context.Context, gone bool, from, to int) error {
	conn, some := s.t.conn, span{s.part, gone, from, to}
	if _, err := conn.Query(ctx, "SAVEPOINT wasmill_rows"); err != nil {
		return err
	}
	err := conn.Write(ctx, s.part.route.binding, some.changes())
	if err == nil {
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
		s.keep(some)
	}
	return err
}

// refuse notes one row.
func (s *sieving) refuse(gone bool, at int, err error) error {
	p := s.t.cfg.Database.Explain(err)
	m := &sink.Misfit{Code: "constraint", Column: p.Column, Reason: p.Detail}
	if p.Code != CodeConstraint {
		m.Code = "value"
	}
	ref := s.part.changes.Put.Refs
	if gone {
		ref = s.part.changes.Gone.Refs
	}
	if s.found.Err == nil {
		s.found.Err = err
	}
	s.found.Rows = append(s.found.Rows, s.part.refusal(gone, ref[at], m))
	if len(s.found.Rows) == mostRefused {
		return errEnough
	}
	return nil
}
