package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
)

// Reason says why a record is superseded. It stands in the name that the record is kept under.
type Reason string

// The reasons.
const (
	// Torn: an incomplete last record, of a batch that no target has published.
	Torn Reason = "torn"
	// Undone: a decision that no target has published is taken back.
	Undone Reason = "undone"
	// Amended: an undecided plan makes room for another one for the same batch.
	Amended Reason = "amended"
)

// WritePlan writes offsets/N durably: one sync of a file and one of the directory. Batch ids follow each other, and the
// batch before must be decided. A source that is not in any plan gets the next number, one that is no longer in p keeps
// its line. A record that is there already is an error with code CodeConcurrent, unless this Log has tried to write
// these very bytes before.
func (l *Log) WritePlan(ctx context.Context, p Plan) error {
	if p.Batch != l.next.plan+1 || l.next.decision != l.next.plan {
		return l.bug("plan %d cannot follow plan %d and decision %d", p.Batch, l.next.plan, l.next.decision)
	}
	full, err := l.number(p)
	if err != nil {
		return err
	}
	text, err := encodePlan(&full)
	if err != nil {
		return errorf(CodeInvalid, wayRestart, []string{recordName(offsetsDir, p.Batch)}, "%w", err)
	}
	if err := l.put(ctx, offsetsDir, p.Batch, text); err != nil {
		return err
	}
	l.next.plan = p.Batch
	l.adopt(&full)
	return nil
}

// number puts the sources in the order of their numbers and adds the lines of those that the plan leaves out.
func (l *Log) number(p Plan) (Plan, error) {
	ends := make(map[string]Position, len(p.Sources))
	for _, s := range p.Sources {
		if _, twice := ends[s.Name]; twice {
			return Plan{}, l.bug("plan %d has source %s twice", p.Batch, s.Name)
		}
		ends[s.Name] = s.End
		l.SourceNumber(s.Name)
	}
	p.Sources = make([]SourcePosition, len(l.names))
	for i, name := range l.names {
		end, ok := ends[name]
		if !ok {
			end = l.lastPlan.Position(name)
		}
		p.Sources[i] = SourcePosition{Name: name, End: end}
	}
	return p, nil
}

// WriteDecision writes commits/N durably: one sync of a file and one of the directory. The batch must be the last one
// planned. Publishing may begin when it has returned nil. A record that is there already is an error as in WritePlan.
func (l *Log) WriteDecision(ctx context.Context, d Decision) error {
	if d.Batch != l.next.plan || l.next.decision != l.next.plan-1 {
		return l.bug("decision %d cannot follow plan %d and decision %d", d.Batch, l.next.plan, l.next.decision)
	}
	text, err := encodeDecision(&d)
	if err != nil {
		return errorf(CodeInvalid, wayRestart, []string{recordName(commitsDir, d.Batch)}, "%w", err)
	}
	if err := l.put(ctx, commitsDir, d.Batch, text); err != nil {
		return err
	}
	l.next.decision = d.Batch
	l.keep.note(d.Batch, d.Revision)
	return nil
}

// put creates a record. The name is the fence between two processes that both believe to hold the checkpoint.
func (l *Log) put(ctx context.Context, log string, id BatchID, text []byte) error {
	name := recordName(log, id)
	again := l.mine.name == name && bytes.Equal(l.mine.text, text)
	l.mine = attempted{name, text}
	err := l.objects.PutIfAbsent(ctx, name, text)
	if errors.Is(err, fs.ErrExist) && again {
		return l.rewrite(ctx, name, text)
	}
	if errors.Is(err, fs.ErrExist) {
		return errorf(CodeConcurrent, "make sure that one process alone uses this checkpoint, then start the job again",
			[]string{name}, "another process has written this record: %w", err)
	}
	return ioError("write", name, err)
}

// rewrite gives a record that was read back its bytes anew. The kernel may hold pages that it once failed to write and
// has since called clean: only writing them again makes sure. The name never stops leading to these bytes.
func (l *Log) rewrite(ctx context.Context, name string, text []byte) error {
	have, err := l.objects.Read(ctx, name, maxRecord)
	if err != nil {
		return ioError("read", name, err)
	}
	if !bytes.Equal(have, text) {
		return errorf(CodeConcurrent, "make sure that one process alone uses this checkpoint, then start the job again",
			[]string{name}, "another process has written this record")
	}
	return ioError("write", name, l.objects.Replace(ctx, name, text))
}

// Tail reads the last plan, and the decision of the same batch if there is one; nil, nil before the first batch. Both
// are checked, written again and synced, so that they may be acted upon.
//
// A last record that is incomplete is a *TornError, returned together with the tail as it is without that record: for a
// torn plan N the plan and decision of N-1, for a torn decision N the plan N alone. The caller asks the targets whether
// one has published N; if none has, it calls Supersede with Torn.
func (l *Log) Tail(ctx context.Context) (*Plan, *Decision, error) {
	v, err := look(ctx, l.files, l.dir)
	if err != nil {
		return nil, nil, err
	}
	if err := v.err(); err != nil {
		return nil, nil, err
	}
	if err := l.loadEnds(ctx, v); err != nil {
		return nil, nil, err
	}
	if l.next.plan == NoBatch {
		return nil, nil, nil
	}
	p, d, err := l.settle(ctx, l.next.plan, l.next.decision == l.next.plan)
	var torn *TornError
	if !errors.As(err, &torn) || torn.Decision || !v.offsets.has(torn.Batch-1) {
		return p, d, err
	}
	p, d, whyNot := l.settle(ctx, torn.Batch-1, true)
	if whyNot != nil {
		return nil, nil, whole(whyNot)
	}
	return p, d, torn
}

// settle reads a plan and its decision and makes them durable.
func (l *Log) settle(ctx context.Context, id BatchID, decided bool) (*Plan, *Decision, error) {
	p, err := l.readPlan(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if err := l.again(ctx, offsetsDir, id); err != nil || !decided {
		return p, nil, err
	}
	d, err := l.readDecision(ctx, id)
	if err != nil {
		return p, nil, err
	}
	if err := l.again(ctx, commitsDir, id); err != nil {
		return p, nil, err
	}
	l.prove(ctx, d.Revision)
	return p, d, nil
}

func (l *Log) again(ctx context.Context, log string, id BatchID) error {
	text, err := loadRecord(ctx, l.files, l.dir, log, id)
	if err != nil {
		return err
	}
	name := recordName(log, id)
	return ioError("write", name, l.objects.Replace(ctx, name, text))
}

// Supersede moves the last record of a batch out of the log, durably, and keeps it under a hidden name that holds the
// reason and the attempt: with Torn the record that is torn, with Undone the decision, with Amended the plan, which
// must be undecided.
func (l *Log) Supersede(ctx context.Context, id BatchID, why Reason) error {
	log, attempt, err := l.superseded(ctx, id, why)
	if err != nil {
		return err
	}
	if err := moveAside(l.files, l.dir, log, id, string(why)+"-"+attempt); err != nil {
		return err
	}
	v, err := look(ctx, l.files, l.dir)
	if err != nil {
		return err
	}
	return l.loadEnds(ctx, v)
}

// superseded finds the record that a reason is about, and the attempt for its new name.
func (l *Log) superseded(ctx context.Context, id BatchID, why Reason) (log, attempt string, err error) {
	decided := l.next.decision == id
	if id != l.next.plan {
		return "", "", l.bug("batch %d is not the last: %d is", id, l.next.plan)
	}
	var torn *TornError
	_, perr := l.readPlan(ctx, id)
	switch {
	case why == Amended && !decided && !errors.As(perr, &torn):
		return offsetsDir, l.opts.Unique(), perr
	case why == Undone && decided:
		d, err := l.Decision(ctx, id)
		if err != nil {
			return "", "", err
		}
		return commitsDir, attemptName(d.Attempt, l.opts.Unique), nil
	case why == Torn && decided:
		_, derr := l.readDecision(ctx, id)
		if errors.As(derr, &torn) {
			return commitsDir, l.opts.Unique(), nil
		}
	case why == Torn && errors.As(perr, &torn):
		return offsetsDir, l.opts.Unique(), nil
	}
	return "", "", l.bug("batch %d has no record that could be superseded as %s", id, why)
}

// attemptName keeps what a decision calls its attempt out of a file's name unless it has the form of one.
func attemptName(attempt string, unique func() string) string {
	if len(attempt) == 8 && strings.Trim(attempt, "0123456789abcdef") == "" {
		return attempt
	}
	return unique()
}
