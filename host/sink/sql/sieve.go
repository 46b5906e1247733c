package sql

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/wasmill/wasmill/host/sink"
)

// refusal says which of the lanes' rows is refused.
func (p *part) refusal(e entry, m *sink.Misfit) sink.Refusal {
	return sink.Refusal{Sink: p.route.sink.Name, Lane: int(e.ref.Table), Row: p.lanes[e.ref.Table].place(e.gone, e.ref.Row), Misfit: m}
}

// mostRefused is how many rows are looked for that the database does not take.
const mostRefused = 1000

// sieve finds the rows for which a database does not take a batch, in transactions without effect. nil: none is refused alone,
// or it cannot be told. What a database ends the whole transaction for is found too, more slowly.
func (t *Target) sieve(ctx context.Context, parts []part) *sink.Refused {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Limits.Statement)
	defer cancel()
	s := &sieving{t: t, parts: parts, rest: parts}
	err := s.search(ctx)
	if err != nil && !errors.Is(err, errEnough) || t.conn.Rollback(ctx) != nil {
		t.drop(ctx)
	}
	return s.refused(err != nil)
}

// errChanged ends the search: what is refused may not be the rows' fault.
var errChanged = errors.New("the table was changed")

// errEnded ends the search too: without a transaction, what is tried would stay.
var errEnded = errors.New("the database has ended the transaction, and it cannot be begun again")

var errEnough = errors.New("enough rows are found")

type sieving struct {
	t     *Target
	parts []part
	rest  []part // without the rows that are found
	way   way
	bad   []badRow
	// kept is what is written in this transaction, and waiting what fails for want of other rows.
	kept    []span
	waiting []waiter
	history map[*route]*history
}

// way is how rows are tried.
type way struct {
	check   bool // deferred constraints are checked after each try
	wait    bool // a row that others may make good is tried again after them
	anyWait bool // every error may be one that others make good
}

// ways are gone through until the database takes the rest at once, as a batch is written: a row is not to blame for what rows
// that come later, or stand in the same statement, make good. At first deferred constraints are left alone, as it may be those
// rows that are refused by themselves which break them for others. The last way is for what goes well in another order only.
var ways = []way{{wait: true}, {check: true, wait: true, anyWait: true}, {}}

// badRow is a row that is found, as a part of its own.
type badRow struct {
	part part
	gone bool
	err  error
}

func (s *sieving) search(ctx context.Context) error {
	for _, s.way = range ways {
		found := len(s.bad)
		err := s.scan(ctx)
		enough := errors.Is(err, errEnough)
		if err != nil && !enough {
			return err
		}
		if len(s.bad) == found {
			continue
		}
		if s.way.check {
			if err := s.spare(ctx, found); err != nil {
				return err
			}
		}
		if enough {
			return err
		}
		s.leaveOut()
		taken, err := s.whole(ctx)
		if taken {
			return s.earlier(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scan writes the rest piece by piece.
func (s *sieving) scan(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.kept = nil
	all := spansOf(s.rest)
	if s.way.check {
		return s.settle(ctx, all)
	}
	for i := range all { // what is not deferred is satisfied by the end of a statement
		if err := s.settle(ctx, all[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a transaction, instead of one that may be open.
func (s *sieving) begin(ctx context.Context) error {
	conn := s.t.conn
	if err := conn.Rollback(ctx); err != nil {
		return err
	}
	if err := conn.Begin(ctx); err != nil {
		return err
	}
	for i := range s.parts {
		same, err := conn.Hold(ctx, s.parts[i].route.binding)
		if err == nil && !same {
			err = errChanged
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole tells that the database takes the rest, written as a batch is.
func (s *sieving) whole(ctx context.Context) (bool, error) {
	err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	if err = s.write(ctx, spansOf(s.rest)); err == nil {
		err = s.t.conn.Check(ctx)
	}
	if err != nil && s.t.cfg.Database.Explain(err).Data {
		return false, nil
	}
	return err == nil, err
}

// spare takes rows back that were found before, where it was others that were found since that they failed for.
func (s *sieving) spare(ctx context.Context, before int) error {
	still := slices.Clone(s.bad[before:])
	for i := range s.bad[:before] {
		b := &s.bad[i]
		err := s.try(ctx, span{&b.part, b.gone, 0, 1})
		if err != nil && !s.t.cfg.Database.Explain(err).Data {
			return err
		}
		if err != nil {
			still = append(still, *b)
		}
	}
	s.bad = still
	return nil
}

// leaveOut makes the rest anew.
func (s *sieving) leaveOut() {
	type place struct {
		route *route
		entry entry
	}
	found := map[place]bool{}
	for i := range s.bad {
		b := &s.bad[i]
		found[place{b.part.route, b.entry()}] = true
	}
	s.rest = nil
	for _, p := range s.parts {
		without := func(r *Rows, gone bool) {
			r.Refs = slices.DeleteFunc(slices.Clone(r.Refs), func(ref Ref) bool { return found[place{p.route, entry{gone, ref}}] })
		}
		without(&p.changes.Gone, true)
		without(&p.changes.Put, false)
		s.rest = append(s.rest, p)
	}
}

// refused lists what is found in the order of the sinks, lanes and rows.
func (s *sieving) refused(more bool) *sink.Refused {
	if len(s.bad) == 0 {
		return nil
	}
	type found struct {
		sink.Refusal
		order int
		err   error
	}
	var all []found
	for i := range s.bad {
		b := &s.bad[i]
		all = append(all, found{b.part.refusal(b.entry(), s.t.misfit(b.err)), slices.Index(s.t.order, b.part.route), b.err})
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Row, b.Row))
	})
	out := &sink.Refused{More: more, Err: all[0].err}
	for i := range all {
		out.Rows = append(out.Rows, all[i].Refusal)
	}
	return out
}
