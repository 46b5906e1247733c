package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sink"
)

// A target may refuse rows that their lanes took, as those that break a constraint of a database. What it refuses depends on
// more than the batch's input, so it is written into an amended plan: whoever runs the batch again, and whatever the database
// holds by then, sets the same rows aside.

// maxRefusals bounds how often rows of one batch are refused. A target that has looked for no more than so many names others
// the next time; how many may be set aside in all is for the job's error policy to say.
const maxRefusals = 1000

// refuse takes up which records of the lane's sinks were refused in an earlier attempt at the batch. Places are those of the
// revision that ran; another one finds out for itself.
func (l *lane) refuse(b *batchRun) {
	if b.plan.Refused == nil || b.plan.Refused.Revision != b.revision {
		return
	}
	for i := range b.plan.Refused.Rows {
		row := &b.plan.Refused.Rows[i]
		for _, s := range l.sinks {
			if row.Lane != l.index || row.Sink != s.node.Name {
				continue
			}
			if s.refused == nil {
				s.refused = map[int64]*sink.Misfit{}
			}
			s.refused[row.Row] = &sink.Misfit{Code: row.Code, Column: row.Column, Reason: row.Reason}
		}
	}
}

// placeOf is the place, among all records that came for a sink, of one that the sink took.
func (s *sinkLane) placeOf(row int64) int64 {
	for _, left := range s.left {
		if left > row {
			break
		}
		row++
	}
	return row
}

// without plans an undecided batch anew without the rows that a target refuses, and runs it. why is the error that says so.
func (e *Engine) without(ctx context.Context, b *batch, refused *sink.Refused, why error, tries int) error {
	if b.decision != nil {
		return why
	}
	if e.cfg.Errors.Policy != DeadLetter && e.cfg.Errors.Policy != Skip {
		return e.stoppedAt(ctx, b, refused, why)
	}
	if tries == maxRefusals {
		return leads(why, wayOutMany)
	}
	all := &checkpoint.Refused{Revision: e.cfg.Revision}
	if before := b.plan.Refused; before != nil && before.Revision == e.cfg.Revision {
		all.Rows = append(all.Rows, before.Rows...)
	}
	for i := range refused.Rows {
		row, err := e.refusedRow(b, &refused.Rows[i])
		if err != nil {
			return fmt.Errorf("%w: %w", err, why)
		}
		all.Rows = append(all.Rows, row)
	}
	e.cfg.Events.warning(e.settingAside(b.plan.Batch, refused.Rows), why)
	for _, t := range e.targets {
		e.cfg.Events.warning("drop what target "+t.ID()+" staged", t.Abort(ctx, b.plan.Batch))
	}
	p := *b.plan
	p.Refused = all
	if err := e.rewrite(ctx, b, &p); err != nil {
		return err
	}
	b.attempt = e.cfg.NewAttempt()
	clear(b.staged)
	b.close()
	return e.runBatch(ctx, b)
}

const (
	wayOutDecided = "the batch is decided with these rows, so none of them can be set aside or changed any more: make the place take them as they are (a constraint that is new there, a row that somebody else has added, a type that is narrower), then start again"
	wayOutMany    = "start again: what is found so far stays set aside, and the rest is looked for"
)

// leads gives a fault another way out.
func leads(err error, wayOut string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	other := *f
	other.WayOut = wayOut
	return &other
}

// stoppedAt runs a batch once more without its first refused row, for the error that names the row's record. why stays where
// the target says more of it than that. Nothing is written down: what is refused now may be taken at the next start.
func (e *Engine) stoppedAt(ctx context.Context, b *batch, refused *sink.Refused, why error) error {
	if _, coded := errors.AsType[*fault.Error](why); coded || refused.Err != nil {
		return why
	}
	row, err := e.refusedRow(b, &refused.Rows[0])
	if err != nil {
		return fmt.Errorf("%w: %w", err, why)
	}
	p := *b.plan
	p.Refused = &checkpoint.Refused{Revision: e.cfg.Revision, Rows: []checkpoint.RefusedRow{row}}
	b.close()
	out, err := e.runner.run(ctx, input{
		query: e.cfg.Log.QueryID(), revision: e.cfg.Revision, plan: &p, prev: b.prev, begin: e.beginState(), most: e.cfg.MaxHeld,
	})
	if err == nil {
		b.out = out
		b.close()
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.ErrCode == CodeRecordStopped {
		return err
	}
	return why
}

// settingAside says what becomes of rows that sinks refuse.
func (e *Engine) settingAside(batch checkpoint.BatchID, rows []sink.Refusal) string {
	var by []string
	for i := range rows {
		if !slices.Contains(by, rows[i].Sink) {
			by = append(by, rows[i].Sink)
		}
	}
	what, verb := "set aside", "refuse"
	if e.cfg.Errors.Policy == Skip {
		what = "leave out"
	}
	if len(by) == 1 {
		verb = "refuses"
	}
	return fmt.Sprintf("%s %d rows of batch %d that %s %s", what, len(rows), batch, strings.Join(by, ", "), verb)
}

// refusedRow finds the record that a refused row stems from.
func (e *Engine) refusedRow(b *batch, r *sink.Refusal) (checkpoint.RefusedRow, error) {
	for i := range e.cfg.Graph.Sinks {
		node := &e.cfg.Graph.Sinks[i]
		if node.Name != r.Sink {
			continue
		}
		if len(node.Inputs) == 0 {
			return checkpoint.RefusedRow{}, fault.New(CodeLetterRefused, "sink "+r.Sink, errors.New("a dead letter is refused"),
				"give the table of dead letters columns and constraints that take any letter: they stand in the reference of the job file under dead letters")
		}
		if r.Lane < 0 || r.Lane >= len(b.out.lanes[i]) || r.Row < 0 || r.Row >= b.out.sinks[i][r.Lane].Rows() {
			break
		}
		lane := b.out.lanes[i][r.Lane]
		place := e.runner.lanes[lane].sinks[i].placeOf(r.Row)
		return checkpoint.RefusedRow{Sink: r.Sink, Lane: lane, Row: place, Code: r.Misfit.Code, Column: r.Misfit.Column, Reason: r.Misfit.Reason}, nil
	}
	return checkpoint.RefusedRow{}, fmt.Errorf("sink %s has no lane %d with a row %d", r.Sink, r.Lane, r.Row)
}
