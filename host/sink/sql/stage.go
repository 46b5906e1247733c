package sql

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// stagedVersion is the version of what a decision keeps of this target.
const stagedVersion = 1

// stagedRecord is what a decision keeps: for people, and to tell attempts apart.
type stagedRecord struct {
	Version int    `json:"version"`
	Attempt string `json:"attempt"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
}

// staged is a transaction that waits for the decision.
type staged struct {
	batch   checkpoint.BatchID
	digest  string
	attempt string
	since   time.Time
	filled  []*route // whose tables are noted for the first time
}

// part is what one sink has in a batch.
type part struct {
	route   *route
	lanes   []*lane
	changes Changes
}

// Stage begins a transaction, advances the epoch row in it, writes the rows and has every constraint checked. An error that
// rows are the reason for has a *sink.Refused in it.
func (t *Target) Stage(ctx context.Context, out sink.Output) (sink.Staged, error) {
	parts, rec, err := t.parts(out)
	if err != nil {
		return nil, err
	}
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	if t.exact() && t.newest.Batch >= out.Batch {
		return json.Marshal(rec) // Publish says whether it is the same
	}
	since := t.wall()
	if err := t.write(ctx, out, parts); err != nil {
		return nil, fmt.Errorf("stage batch %d: %w", out.Batch, err)
	}
	filled, err := t.noteFilled(ctx, &out, parts)
	if err != nil {
		return nil, fmt.Errorf("stage batch %d: %w", out.Batch, t.failed(ctx, err))
	}
	t.staged = &staged{batch: out.Batch, digest: out.Digest, attempt: out.Attempt, since: since, filled: filled}
	return json.Marshal(rec)
}

// wall is the time that goes on while the machine is suspended, as it does for the database.
func (t *Target) wall() time.Time { return t.cfg.Clock().Round(0) }

// parts checks and counts the lanes of a batch, and orders them as the sinks are.
func (t *Target) parts(out sink.Output) ([]part, stagedRecord, error) {
	rec := stagedRecord{Version: stagedVersion, Attempt: out.Attempt}
	lanes := map[*route][]*lane{}
	for _, s := range out.Sinks {
		for _, l := range s.Lanes {
			mine, ok := l.(*lane)
			if !ok || t.routes[s.Name] != mine.route {
				return nil, rec, fmt.Errorf("stage batch %d: target %s: sink %q has a lane of something else: %T", out.Batch, t.ID(), s.Name, l)
			}
			lanes[mine.route] = append(lanes[mine.route], mine)
			rec.Rows += mine.Rows()
			rec.Bytes += mine.Bytes()
		}
	}
	var parts []part
	for _, r := range t.order {
		if len(lanes[r]) > 0 {
			parts = append(parts, part{route: r, lanes: lanes[r], changes: changesOf(r, lanes[r])})
		}
	}
	return parts, rec, nil
}

// ready sees to it that there is a connection without a transaction, whose epoch row is still ours.
func (t *Target) ready(ctx context.Context) error {
	switch {
	case t.fencedBy != nil:
		return t.fencedBy
	case t.query == "":
		return fmt.Errorf("stage: target %s is not open", t.ID())
	case t.staged != nil:
		if err := t.abandon(ctx); err != nil {
			return err
		}
	}
	if t.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Patience)
	defer cancel()
	was := t.newest
	if err := t.regain(ctx); err != nil {
		t.drop(ctx)
		return err
	}
	if t.newest == was {
		return nil
	}
	t.fencedBy = t.conflict(was.Batch+1, fmt.Errorf("batch %d was the last one published, now it is %d", was.Batch, t.newest.Batch))
	t.drop(ctx)
	return t.fencedBy
}

// write is the transaction but for its commit. After an error there is no transaction, and no connection if it is of no use.
func (t *Target) write(ctx context.Context, out sink.Output, parts []part) error {
	if err := t.begin(ctx, out); err != nil {
		return t.failed(ctx, err)
	}
	for i := range parts {
		if err := t.hold(ctx, parts[i].route); err != nil {
			return t.failed(ctx, err)
		}
	}
	if r := outside(parts); r != nil {
		return t.failed(ctx, fault.New(CodeValue, t.tablePlace(t.routes[r.Rows[0].Sink].sink), r, WayOutRow))
	}
	for i := range parts {
		p := &parts[i]
		if err := t.conn.Write(ctx, p.route.binding, &p.changes); err != nil {
			return t.refused(ctx, parts, p.route.sink, err)
		}
	}
	if err := t.conn.Check(ctx); err != nil {
		return t.refused(ctx, parts, nil, err)
	}
	return nil
}

// hold sees to it that rows are written to the table as it is now: forms that were chosen for another one could be read as
// other values.
func (t *Target) hold(ctx context.Context, r *route) error {
	same, err := t.conn.Hold(ctx, r.binding)
	if err != nil {
		return t.notHeld(ctx, r, err)
	}
	if same {
		return nil
	}
	return t.bind(ctx, r)
}

// notHeld says why a table cannot be held: it is gone, where a database says so by an error that ends the transaction.
func (t *Target) notHeld(ctx context.Context, r *route, err error) error {
	place := t.tablePlace(r.sink)
	if t.cfg.Database.Explain(err).Code != CodeTable {
		return t.sinkFault(r.sink, err)
	}
	if !r.sink.Create || t.conn.Rollback(ctx) != nil {
		return t.fault(place, err)
	}
	if no := t.mayMake(ctx, r); no != nil {
		return t.fault(place, no)
	}
	return fault.Passing(CodeTable, place, err, "start again: nothing is published in the table, and it is made anew")
}

// begin starts the transaction and locks the epoch row by advancing it.
func (t *Target) begin(ctx context.Context, out sink.Output) error {
	if err := t.conn.Begin(ctx); err != nil {
		return t.fault(t.place(), err)
	}
	if !t.exact() {
		return nil
	}
	got, err := t.conn.Query(ctx, advanceEpoch, t.query, t.ID(), t.owner, number(t.newest.Batch), number(out.Batch), out.Digest, out.Attempt)
	if err != nil {
		return t.epochFault(err)
	}
	if len(got) == 1 {
		return nil
	}
	return t.lostRow(ctx)
}

func number(id checkpoint.BatchID) string { return strconv.FormatInt(int64(id), 10) }

// failed ends the transaction after an error, and gives the connection up where it may be the reason.
func (t *Target) failed(ctx context.Context, err error) error {
	if t.fencedBy != nil || t.cfg.Database.Explain(err).Broken || t.conn.Rollback(ctx) != nil {
		t.drop(ctx)
	}
	return err
}

// refused is failed for an error of writing rows. It looks for all rows that the database does not take.
func (t *Target) refused(ctx context.Context, parts []part, s *Sink, err error) error {
	p := t.cfg.Database.Explain(err)
	if !p.Data {
		return t.failed(ctx, t.sinkFault(s, err))
	}
	if t.conn.Rollback(ctx) != nil {
		t.drop(ctx)
		return t.fault(t.tablePlace(s), err)
	}
	r := t.sieve(ctx, parts)
	if r == nil {
		return fault.New(p.Code, t.tablePlace(s), err, cmp.Or(p.Together, wayOutTogether))
	}
	place := t.tablePlace(t.routes[r.Rows[0].Sink].sink)
	code, wayOut := p.Code, p.WayOut
	if first := t.cfg.Database.Explain(r.Err); first.Code != "" {
		code, wayOut = first.Code, first.WayOut
	}
	return fault.New(code, place, r, wayOut)
}
