package delta

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// Commit writes the version after base, 0 when base is nil, and returns once it is durable. The entry must not be there:
// errors.Is(err, ErrExists) says that another writer was first, and the caller looks at what it wrote (Conflicts) and may
// commit again on a newer base. After any other error it is open whether the entry is there; the txnId in it tells whose it is.
//
// Commit puts commitInfo first and gives it the in-commit timestamp that the table asks for. It checks that the actions may
// stand in one entry. It does not check the gate.
func (l *Log) Commit(ctx context.Context, base *Snapshot, actions []Action) (*Entry, error) {
	e := &Entry{Actions: slices.Clone(actions)}
	if base != nil {
		e.Version = base.Version + 1
	}
	name := entryName(e.Version)
	content, err := l.prepare(base, e)
	if err != nil {
		return nil, fault.New(CodeInvalid, l.place(name), err, "this is an error in Wasmill; please report it")
	}
	if base == nil {
		if err := durable.MakeDir(l.files, path.Join(l.dir, logDir)); err != nil {
			return nil, wrap("make the log's directory", l.place(logDir), err)
		}
	}
	err = l.objects.PutIfAbsent(ctx, name, content)
	if errors.Is(err, fs.ErrExist) {
		return nil, fault.New(CodeExists, l.place(name), ErrExists, "commit again on the newest version")
	}
	if err != nil {
		return nil, wrap("commit", l.place(name), err)
	}
	l.follow(base, e)
	return e, nil
}

var errNoAction = errors.New("no action in it")

// prepare completes and checks an entry and encodes it.
func (l *Log) prepare(base *Snapshot, e *Entry) ([]byte, error) {
	if len(e.Actions) == 0 {
		return nil, errNoAction
	}
	for i := range e.Actions {
		err := e.Actions[i].check()
		if e.Actions[i] == (Action{}) {
			err = errNoAction
		}
		if err != nil {
			return nil, err
		}
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	meta := e.Metadata()
	if meta == nil && base != nil {
		meta = &base.Metadata
	}
	if meta.InCommitTimestamps() {
		if err := l.stamp(base, e); err != nil {
			return nil, err
		}
	}
	content, err := e.encode()
	if err == nil && len(content) > MaxEntryBytes {
		err = durable.ErrTooLarge
	}
	return content, err
}

// stamp sets the in-commit timestamp: the clock, or one millisecond after the version before when the clock is behind.
func (l *Log) stamp(base *Snapshot, e *Entry) error {
	at := l.now().UnixMilli()
	if base != nil && base.state.inCommit {
		at = max(at, base.TimestampMS+1)
	}
	for i := range e.Actions {
		if c := e.Actions[i].CommitInfo; c != nil {
			stamped := *c
			stamped.InCommitTimestamp = &at
			e.Actions[i].CommitInfo = &stamped
			return nil
		}
	}
	return errors.New("the table has in-commit timestamps, and the entry has no commitInfo")
}

// follow keeps the state after a commit, so that it need not be read back.
func (l *Log) follow(base *Snapshot, e *Entry) {
	s := &state{version: -1}
	if base != nil {
		s = base.state
	}
	if next, err := s.apply(e); err == nil && next.check() == nil {
		l.keep(next)
	}
}
