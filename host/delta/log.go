package delta

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
)

// logDir is the folder of the log, relative to the table.
const logDir = "_delta_log"

// Log is the log of one table. It is safe for concurrent use. Between calls it keeps the newest snapshot it has seen.
type Log struct {
	files   durable.Files
	objects durable.Objects
	dir     string
	now     func() time.Time

	mu   sync.Mutex
	last *state
}

// Option changes how a Log works.
type Option func(*Log)

// WithObjects sets where the log is kept. Names are relative to the table. PutIfAbsent is what keeps two writers apart, so all
// writers of a table must agree on it.
func WithObjects(o durable.Objects) Option { return func(l *Log) { l.objects = o } }

// OpenLog returns the log of the table in dir. Nothing is read.
func OpenLog(files durable.Files, dir string, now func() time.Time, opts ...Option) *Log {
	l := &Log{files: files, objects: durable.NewObjects(files, dir), dir: dir, now: now}
	for _, opt := range opts {
		opt(l)
	}
	return l
}

func entryName(version int64) string { return path.Join(logDir, fmt.Sprintf("%020d.json", version)) }

// Entry reads one version. errors.Is(err, ErrNoVersion) says that it is not there.
func (l *Log) Entry(ctx context.Context, version int64) (*Entry, error) {
	name := entryName(version)
	content, err := l.objects.Read(ctx, name, MaxEntryBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(CodeNoVersion, l.place(name), ErrNoVersion, "see whether the log was cleaned; begin at a version that is there")
	}
	if err != nil {
		return nil, wrap("read entry", l.place(name), err)
	}
	e, err := parseEntry(version, content)
	if err != nil {
		return nil, damaged(l.place(name), "%w", err)
	}
	return e, nil
}

// exists reports whether a version is there.
func (l *Log) exists(ctx context.Context, version int64) (bool, error) {
	_, err := l.objects.Read(ctx, entryName(version), 0)
	switch {
	case err == nil, errors.Is(err, durable.ErrTooLarge):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, wrap("look for entry", l.place(entryName(version)), err)
}

// Latest returns the newest version, at least from, which must be there; with a negative from the log is listed.
func (l *Log) Latest(ctx context.Context, from int64) (int64, error) {
	if from < 0 {
		found, err := l.list(ctx)
		if err != nil {
			return -1, err
		}
		from = found.newest()
	}
	for {
		there, err := l.exists(ctx, from+1)
		if err != nil || !there {
			return from, err
		}
		from++
	}
}

// Snapshot returns the newest version, reading on from the one that was read before. errors.Is(err, ErrNoTable) says that there
// is no log.
func (l *Log) Snapshot(ctx context.Context) (*Snapshot, error) {
	l.mu.Lock()
	s := l.last
	l.mu.Unlock()
	var err error
	if s == nil {
		if s, err = l.load(ctx, newestVersion); err != nil {
			return nil, err
		}
	}
	if s, err = l.readOn(ctx, s, newestVersion); err != nil {
		return nil, err
	}
	l.keep(s)
	return l.snapshot(s), nil
}

// SnapshotAt returns one version. errors.Is(err, ErrNoVersion) says that it is not there or cannot be made any more.
func (l *Log) SnapshotAt(ctx context.Context, version int64) (*Snapshot, error) {
	l.mu.Lock()
	s := l.last
	l.mu.Unlock()
	var err error
	if s == nil || s.version > version {
		if s, err = l.load(ctx, version); err != nil {
			return nil, err
		}
	}
	if s, err = l.readOn(ctx, s, version); err != nil {
		return nil, err
	}
	if s.version != version {
		return nil, fault.New(CodeNoVersion, l.place(entryName(version)), ErrNoVersion, fmt.Sprintf("use version %d at most", s.version))
	}
	return l.snapshot(s), nil
}

// newestVersion stands for as far as there is.
const newestVersion = int64(1<<63 - 1)

// readOn applies entries until version to, or until there is none.
func (l *Log) readOn(ctx context.Context, s *state, to int64) (*state, error) {
	for s.version < to {
		e, err := l.Entry(ctx, s.version+1)
		if errors.Is(err, ErrNoVersion) {
			e, err = l.tail(ctx, s.version+1)
			if err == nil && e == nil {
				return s, nil
			}
		}
		if err == nil {
			s, err = l.advance(s, e)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// tail makes sure that the log ends before a version that was not there: with a later one there it has lost an entry, unless
// both have been written just now.
func (l *Log) tail(ctx context.Context, missing int64) (*Entry, error) {
	later, err := l.exists(ctx, missing+1)
	if err != nil || !later {
		return nil, err
	}
	e, err := l.Entry(ctx, missing)
	if errors.Is(err, ErrNoVersion) {
		return nil, damaged(l.place(entryName(missing)), "%w: the entry is missing, and the one after it is there", ErrNoVersion)
	}
	return e, err
}

func (l *Log) advance(s *state, e *Entry) (*state, error) {
	next, err := s.apply(e)
	if err == nil {
		err = next.check()
	}
	if err != nil {
		return nil, damaged(l.place(entryName(e.Version)), "%w", err)
	}
	return next, nil
}

// keep remembers the newest state.
func (l *Log) keep(s *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.last.version < s.version {
		l.last = s
	}
}
