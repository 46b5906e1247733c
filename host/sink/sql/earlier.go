package sql

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/wasmill/wasmill/host/sink"
)

// Of the changes of a key in a batch the last one counts. Once that is refused the one before it does, and so on: all of them
// are looked for at once, as each time that rows are refused the batch is run anew.

// entry is a row of Changes.
type entry struct {
	gone bool
	ref  Ref
}

// history are all changes of a part in the order of their keys, and those of one key in the order in which they came.
type history struct {
	all  []keyed
	data []byte
	at   map[entry]int
}

func newHistory(p *part) *history {
	h := &history{at: map[entry]int{}}
	if p.route.keys == nil {
		return h
	}
	h.all, h.data = byKey(p.route, p.lanes)
	for i := range h.all {
		h.at[h.all[i].entry] = i
	}
	return h
}

// before returns the change of the same key that counts in place of another one.
func (h *history) before(e entry) (entry, bool) {
	i, ok := h.at[e]
	if !ok || i == 0 || !bytes.Equal(h.all[i].key(h.data), h.all[i-1].key(h.data)) {
		return entry{}, false
	}
	return h.all[i-1].entry, true
}

// entries lists the changes in the order in which they are written.
func (c *Changes) entries() []entry {
	out := make([]entry, 0, c.Gone.Len()+c.Put.Len())
	for _, ref := range c.Gone.Refs {
		out = append(out, entry{true, ref})
	}
	for _, ref := range c.Put.Refs {
		out = append(out, entry{false, ref})
	}
	return out
}

// breaks says why a change breaks a rule of its table, or nil.
func (p *part) breaks(e entry) *sink.Misfit {
	l := p.lanes[e.ref.Table]
	if e.gone {
		return breaks(p.route.gone.table, l.gone, int(e.ref.Row))
	}
	return breaks(p.route.table, l.put, int(e.ref.Row))
}

// outside finds the rows that break a rule of their table, without asking the database.
func outside(parts []part) *sink.Refused {
	var found sink.Refused
	for i := range parts {
		p := &parts[i]
		if len(p.route.table) == 0 {
			continue
		}
		var h *history
		for _, e := range p.changes.entries() {
			for m := p.breaks(e); m != nil; m = p.breaks(e) {
				if len(found.Rows) == mostRefused {
					found.More = true
					return &found
				}
				found.Rows = append(found.Rows, p.refusal(e, m))
				if h == nil {
					h = newHistory(p)
				}
				var more bool
				if e, more = h.before(e); !more {
					break
				}
			}
		}
	}
	if len(found.Rows) == 0 {
		return nil
	}
	return &found
}

// earlier goes back to the changes that those which are found took the place of. All else is written in the open transaction.
func (s *sieving) earlier(ctx context.Context) error {
	s.way, s.kept, s.history = way{check: true, wait: true}, spansOf(s.rest), map[*route]*history{}
	lone := slices.DeleteFunc(slices.Clone(s.bad), s.hasBefore)
	if len(lone) == len(s.bad) {
		return nil
	}
	s.bad = append(lone, slices.DeleteFunc(s.bad, func(b badRow) bool { return !s.hasBefore(b) })...)
	if err := s.goBack(ctx, len(lone)); err != nil {
		return err
	}
	return s.spare(ctx, len(lone)) // an earlier change may be what they need
}

// goBack tries the changes before those that are found, from the n-th on, and before those that are refused on the way.
func (s *sieving) goBack(ctx context.Context, n int) error {
	open, err := s.before(n)
	for len(open) > 0 && err == nil {
		n, s.waiting = len(s.bad), nil
		for _, p := range open {
			if err := s.halve(ctx, p); err != nil {
				return err
			}
		}
		if len(s.waiting) < len(open) {
			open = spansIn(s.waiting)
		} else if open, err = s.unlock(ctx, s.waiting); err != nil {
			return err
		}
		var more []span
		more, err = s.before(n)
		open = append(open, more...)
	}
	return err
}

func (s *sieving) historyOf(p *part) *history {
	h := s.history[p.route]
	if h == nil {
		h = newHistory(p)
		s.history[p.route] = h
	}
	return h
}

func (s *sieving) hasBefore(b badRow) bool {
	_, ok := s.historyOf(&b.part).before(b.entry())
	return ok
}

// before lists the changes before those that are found, from the n-th on. One that breaks a rule of its table is found by that.
func (s *sieving) before(n int) ([]span, error) {
	var out []span
	for ; n < len(s.bad); n++ {
		b := &s.bad[n]
		e, ok := s.historyOf(&b.part).before(b.entry())
		if !ok {
			continue
		}
		p := b.part.alone(e)
		alone := span{&p, e.gone, 0, 1}
		if m := p.breaks(e); m == nil {
			out = append(out, alone)
		} else if err := s.refuse(alone, m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// alone is a part with one of its changes.
func (p *part) alone(e entry) part {
	c := Changes{Put: Rows{Tables: p.changes.Put.Tables}, Gone: Rows{Tables: p.changes.Gone.Tables}}
	if e.gone {
		c.Gone.Refs = []Ref{e.ref}
	} else {
		c.Put.Refs = []Ref{e.ref}
	}
	return part{route: p.route, lanes: p.lanes, changes: c}
}

func (b *badRow) entry() entry { return b.part.changes.entries()[0] }

// misfit says why a row is refused.
func (t *Target) misfit(err error) *sink.Misfit {
	if m := (*sink.Misfit)(nil); errors.As(err, &m) {
		return m
	}
	p := t.cfg.Database.Explain(err)
	m := &sink.Misfit{Code: "constraint", Column: p.Column, Reason: p.Detail}
	if p.Code != CodeConstraint {
		m.Code = "value"
	}
	return m
}
