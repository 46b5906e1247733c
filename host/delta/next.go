package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/fault"
)

// Next returns the entry of a version, or nil when the log ends right before it. A reader that follows the log learns so that
// it waits for what is to come, and not for what is lost: errors.Is(err, ErrNoVersion) says that entries from there on were
// cleaned away, that the log has a hole, or that it ends further back.
func (l *Log) Next(ctx context.Context, version int64) (*Entry, error) {
	e, err := l.Entry(ctx, version)
	if !errors.Is(err, ErrNoVersion) {
		return e, err
	}
	if e, err = l.tail(ctx, version); err != nil || e != nil {
		return e, err
	}
	if version == 0 {
		return nil, nil
	}
	if there, err := l.exists(ctx, version-1); err != nil || there {
		return nil, err
	}
	found, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	place := l.place(entryName(version))
	switch last := found.newest(); {
	case last == version-1: // by its checkpoint
		return nil, nil
	case last < version:
		return nil, fault.New(CodeNoVersion, place, fmt.Errorf("%w: the log ends at version %d", ErrNoVersion, last), restoreLog)
	}
	if e, err := l.Entry(ctx, version); !errors.Is(err, ErrNoVersion) {
		return e, err // it has come meanwhile
	}
	return nil, fault.New(CodeNoVersion, place, fmt.Errorf("%w: the log was cleaned", ErrNoVersion), "restore the entry, or go on at a later version")
}

// Oldest returns the oldest version, at least from, that has its entry and of which a snapshot can be made. errors.Is(err,
// ErrNoVersion) says that there is none.
func (l *Log) Oldest(ctx context.Context, from int64) (int64, error) {
	found, err := l.list(ctx)
	if err != nil {
		return -1, err
	}
	for _, v := range found.entries {
		if v >= from && found.whole(v) {
			return v, nil
		}
	}
	return -1, fault.New(CodeNoVersion, l.place(logDir), fmt.Errorf("%w from %d on of which the log has all that it takes", ErrNoVersion, from), restoreLog)
}

// whole reports whether what is listed makes a snapshot of a version.
func (f *listing) whole(version int64) bool {
	for _, c := range f.checkpoints {
		if c.version <= version {
			_, gap := f.missing(c.version+1, version)
			return !gap
		}
	}
	_, gap := f.missing(0, version)
	return !gap
}
