package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// readPlan reads a plan. One that cannot be decoded is a *TornError; the caller knows whether it may be.
func (l *Log) readPlan(ctx context.Context, id BatchID) (*Plan, error) {
	p, foreign, err := loadPlan(ctx, l.files, l.dir, id)
	if err != nil {
		return nil, err
	}
	if foreign {
		return nil, errorf(CodeForeign, wayForeign, []string{recordName(offsetsDir, id)}, "the plan of a Spark query, whose sources have no names")
	}
	return p, nil
}

// wholePlan reads a plan that must be readable.
func (l *Log) wholePlan(ctx context.Context, id BatchID) (*Plan, error) {
	p, err := l.readPlan(ctx, id)
	return p, whole(err)
}

// whole turns the torn record of a batch that is not the last into an unreadable one.
func whole(err error) error {
	var torn *TornError
	if errors.As(err, &torn) {
		return errorf(CodeUnreadable, wayVerify, []string{torn.File}, "not readable: %w", torn.Err)
	}
	return err
}

// loadPlan reads offsets/N; *TornError when it cannot be decoded.
func loadPlan(ctx context.Context, files durable.Files, dir string, id BatchID) (p *Plan, foreign bool, err error) {
	text, err := loadRecord(ctx, files, dir, offsetsDir, id)
	if err != nil {
		return nil, false, err
	}
	p, foreign, err = decodePlan(id, text)
	return p, foreign, decodeError(err, offsetsDir, id)
}

// loadDecision reads commits/N; *TornError when it cannot be decoded.
func loadDecision(ctx context.Context, files durable.Files, dir string, id BatchID) (d *Decision, foreign bool, err error) {
	text, err := loadRecord(ctx, files, dir, commitsDir, id)
	if err != nil {
		return nil, false, err
	}
	d, foreign, err = decodeDecision(id, text)
	return d, foreign, decodeError(err, commitsDir, id)
}

func loadRecord(ctx context.Context, files durable.Files, dir, log string, id BatchID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := recordName(log, id)
	text, err := durable.ReadFile(files, path.Join(dir, name), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf(CodeMissing, "see `wasmill checkpoint show` for the batches that are kept", []string{name},
			"there is no such record: it was never written, or retention has removed it: %w", fs.ErrNotExist)
	}
	if errors.Is(err, durable.ErrTooLarge) {
		return nil, decodeError(err, log, id)
	}
	return text, ioError("read", name, err)
}

func decodeError(err error, log string, id BatchID) error {
	if err == nil {
		return nil
	}
	name := recordName(log, id)
	if errors.Is(err, errFuture) {
		return errorf(CodeFuture, wayUpgrade, []string{name}, "%w", err)
	}
	return &TornError{Batch: id, Decision: log == commitsDir, File: name, Err: err}
}

// Plan reads the plan of a retained batch.
func (l *Log) Plan(ctx context.Context, id BatchID) (*Plan, error) { return l.wholePlan(ctx, id) }

// Decision reads the decision of a retained batch. A batch without one is an error with code CodeMissing.
func (l *Log) Decision(ctx context.Context, id BatchID) (*Decision, error) {
	d, err := l.readDecision(ctx, id)
	return d, whole(err)
}

// readDecision reads a decision. One that cannot be decoded is a *TornError; the caller knows whether it may be.
func (l *Log) readDecision(ctx context.Context, id BatchID) (*Decision, error) {
	d, foreign, err := loadDecision(ctx, l.files, l.dir, id)
	if err != nil {
		return nil, err
	}
	if foreign {
		return nil, errorf(CodeForeign, wayForeign, []string{recordName(commitsDir, id)}, "Spark has taken this batch over")
	}
	return d, nil
}
