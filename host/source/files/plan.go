package files

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/source"
)

// maxFiles bounds the files of one batch.
const maxFiles = 10_000

// Latest plans on from a position: first the rest of a file that was cut, then new files in byte order of path. It reads
// what it plans once, to know where records end. A file that cannot be read ends the batch before it, and is an error
// when it comes first.
func (s *Source) Latest(ctx context.Context, from checkpoint.Position, limit source.Limit) (to checkpoint.Position, err error) {
	defer func() {
		if err != nil {
			s.seen = nil // half done: made anew from disk
		}
	}()
	if err := s.restore(from); err != nil {
		return checkpoint.Position{}, err
	}
	if err := s.look(ctx); err != nil {
		return checkpoint.Position{}, err
	}
	s.cache.drop()
	left := newBudget(limit)
	var next position
	entries, moved, err := s.planRest(ctx, &next, left)
	if errors.Is(err, errUnsettled) {
		return from, nil
	}
	if err != nil {
		return checkpoint.Position{}, err
	}
	if entries, err = s.takeResized(entries); err != nil {
		return checkpoint.Position{}, err
	}
	if next.At == nil {
		entries, err = s.planNew(ctx, &next, left, entries)
	}
	if err != nil && (len(entries) == 0 && !moved || ctx.Err() != nil) {
		return checkpoint.Position{}, err
	}
	if len(entries) == 0 && !moved {
		return from, nil
	}
	return s.advance(next, entries)
}

// look brings the list of pending files up to date.
func (s *Source) look(ctx context.Context) error {
	all := s.snapshot
	if s.frozen && s.listed {
		return nil
	}
	if !s.frozen {
		if !s.listed {
			s.lister.last = time.Time{}
		}
		var fresh bool
		var err error
		all, fresh, err = s.lister.refresh(ctx, s.cfg.Clock())
		if err != nil {
			return err
		}
		if !fresh {
			return nil
		}
	}
	watched := map[string]found{}
	for _, f := range slices.Concat(s.pending, s.resized) {
		if !f.watched.IsZero() {
			watched[f.path] = f
		}
	}
	pending := make([]found, 0, 16)
	s.resized = s.resized[:0]
	for _, f := range all {
		size, ok := s.seen.sizes[pathKey(f.path)]
		now := f
		if w, ok := watched[f.path]; ok {
			f = w
		}
		switch {
		case !ok:
			pending = append(pending, f)
		case size >= 0 && size != now.size:
			if !s.cfg.SkipLost {
				return s.refuseResized(ctx, now, size)
			}
			if !s.inside(f.path) {
				s.resized = append(s.resized, f)
			}
		}
	}
	s.pending, s.listed = pending, true
	s.remark(all)
	return nil
}

// planNew plans pending files until the budget is spent or a file does not fit whole.
func (s *Source) planNew(ctx context.Context, next *position, left *budget, before []entry) (entries []entry, err error) {
	entries = before
	var later []found
	now := s.cfg.Clock()
	i := 0
	defer func() {
		s.pending = s.pending[i:]
		if len(later) > 0 {
			s.pending = append(later, s.pending...)
		}
	}()
	for ; i < len(s.pending) && len(entries) < maxFiles && !left.spent(); i++ {
		if err := ctx.Err(); err != nil {
			return entries, err
		}
		e, f, err := s.pin(&s.pending[i], now)
		switch {
		case errors.Is(err, errUnsettled):
			later = append(later, s.pending[i])
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return entries, err
		}
		got, err := s.planFile(ctx, e, f, left)
		if err != nil {
			return entries, err
		}
		if !got.eof && got.end.Line == 0 {
			break // not one record of it fits
		}
		if got.eof {
			e.End = &got.end
		} else {
			next.At = &at{File: *e, cut: cut{got.end, got.sum}}
		}
		entries = append(entries, *e)
	}
	return entries, nil
}

func (s *Source) planFile(ctx context.Context, e *entry, f durable.File, left *budget) (scanned, error) {
	if s.cfg.Format == Parquet {
		return s.planPart(ctx, e, f, nil, cut{}, left)
	}
	st, err := newStream(f, e.Path, e.Size, s.cfg.Compression)
	if err != nil {
		return scanned{}, err
	}
	return s.planPart(ctx, e, nil, st, cut{}, left)
}

// planPart plans a file from a place on, and keeps what reading it can use. It takes over the open file or stream.
func (s *Source) planPart(ctx context.Context, e *entry, f durable.File, st *stream, from cut, left *budget) (got scanned, err error) {
	if f != nil {
		defer closeWith(&err, f)
		got, err = planParquet(f, e, from.place, left)
	} else {
		got, err = s.planStream(ctx, e, st, from.place, newSums(from.Off, from.Sum), left)
	}
	if err == nil {
		left.take(from.place, got)
	}
	return got, err
}

func (s *Source) planStream(ctx context.Context, e *entry, st *stream, from place, digest *sums, left *budget) (scanned, error) {
	buf := s.scratch.Get().(*[]byte)
	defer s.scratch.Put(buf)
	in := &blocks{ctx: ctx, st: st, buf: *buf, sums: digest}
	if st.packed() {
		in.cache = s.cache
	}
	got, err := s.scan(in, from, left)
	if err != nil {
		if in.cache != nil {
			in.giveUp()
		}
		return scanned{}, errors.Join(err, st.Close())
	}
	got.sum = in.sums.before(got.end.Off, in.base, in.block)
	s.keep(e, in, from, got)
	if !st.packed() || got.eof || st.off != got.end.Off {
		return got, st.Close()
	}
	return got, s.setCursor(&cursor{file: e.key(), off: st.off, stream: st})
}

func (s *Source) scan(in *blocks, from place, left *budget) (scanned, error) {
	if s.cfg.Format == CSV {
		return scanCSV(in, from, left, &s.cfg)
	}
	return scanText(in, from, left)
}

// keep puts a planned part into the cache.
func (s *Source) keep(e *entry, in *blocks, from place, got scanned) {
	if in.cache == nil && len(got.marks) < 2 {
		return
	}
	if n := len(in.chunks); n > 0 {
		in.chunks[n-1] = s.cache.shrink(in.chunks[n-1])
	}
	s.cache.put(e.key(), &kept{from: from, end: got.end, marks: got.marks, chunks: in.chunks})
}

// errUnsettled says that a file may still be being written.
var errUnsettled = errors.New("the file is not settled")

// pin opens a pending file and fixes what will be read of it.
func (s *Source) pin(f *found, now time.Time) (*entry, durable.File, error) {
	file, err := s.cfg.Files.Open(f.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		return nil, nil, unreadable(f.path, err)
	}
	e, err := s.pinned(file, f, now)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return e, file, nil
}

func (s *Source) pinned(file durable.File, f *found, now time.Time) (*entry, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, unreadable(f.path, err)
	}
	size := info.Size
	switch {
	case s.frozen && size < f.size && !s.cfg.SkipLost:
		return nil, changed(f.path, "the file shrank from %d to %d bytes since the job began", f.size, size)
	case s.frozen:
		size = min(size, f.size) // what is appended now is not part of the input
	case size == 0 || !s.settled(f, info, now):
		return nil, errUnsettled
	}
	tag, err := etag(file, size)
	if err != nil {
		return nil, unreadable(f.path, err)
	}
	return &entry{URI: toURI(f.path), Path: f.path, Time: info.ModTime.UnixMilli(), Size: size, ETag: tag}, nil
}

// settled reports whether a file was left alone for long enough. A time stamp of the future says nothing: then the file
// is watched for as long.
func (s *Source) settled(f *found, info durable.Info, now time.Time) bool {
	switch {
	case !info.ModTime.After(now):
		return now.Sub(info.ModTime) >= s.cfg.Settle
	case f.watched.IsZero() || info.Size != f.size || !info.ModTime.Equal(f.mtime):
		f.size, f.mtime, f.watched = info.Size, info.ModTime, now
		return false
	}
	return now.Sub(f.watched) >= s.cfg.Settle
}
