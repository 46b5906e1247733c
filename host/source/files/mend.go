package files

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

// inside reports whether a batch ended inside that file, so that its rest is still to come.
func (s *Source) inside(path string) bool {
	last := s.seen.pos.At
	return last != nil && last.File.Path == path
}

// resized is about a file that was read with another size. whole: all of it was read.
func resized(path string, was, is int64, whole bool) *fault.Error {
	switch {
	case is > was && whole:
		return changed(path, "the file grew from %d to %d bytes after it was planned; what came since was not read", was, is)
	case is > was:
		return changed(path, "the file grew from %d to %d bytes after it was planned", was, is)
	}
	return changed(path, "the file shrank from %d to %d bytes after it was planned", was, is)
}

// refuseResized is the answer to a file whose size is another one than it was read with.
func (s *Source) refuseResized(ctx context.Context, f found, size int64) error {
	err := resized(f.path, size, f.size, !s.inside(f.path))
	switch last := s.seen.pos.At; {
	case s.inside(f.path):
		return s.wayOut(ctx, err, &last.File, &last.cut, s.frozenSize(f.path))
	case f.size > size:
		err.WayOut += skipOnce + fmt.Sprintf("the %d bytes that were added are then left out for good", f.size-size)
	default:
		err.WayOut += skipOnce + "the file is then taken as it is; it was read whole, and nothing of it is read again"
	}
	return err
}

// takeResized takes files that were read and have another size now as they are: the log notes the new size, and that nothing
// of them is read again.
func (s *Source) takeResized(entries []entry) ([]entry, error) {
	var later []found
	now := s.cfg.Clock()
	for i := range s.resized {
		f := &s.resized[i]
		if len(entries) == maxFiles {
			later = append(later, s.resized[i:]...)
			break
		}
		e, file, err := s.pin(f, now)
		switch {
		case errors.Is(err, errUnsettled):
			later = append(later, *f)
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		if err := file.Close(); err != nil {
			return nil, unreadable(f.path, err)
		}
		size := s.seen.sizes[pathKey(f.path)]
		e.End = &place{}
		entries = append(entries, *e)
		if e.Size > size {
			s.leftOut(&source.LeftOutError{Split: f.path, Detail: detail(resized(f.path, size, e.Size, true)), Records: -1, Bytes: e.Size - size})
		} else {
			s.say(f.path, detail(resized(f.path, size, e.Size, true))+"; it was read whole, and nothing of it is read again")
		}
	}
	s.resized = later
	return entries, nil
}

// planRest plans the rest of the file that the position before was cut in. Where the file has changed since, SkipLost takes
// it up as it is now, by an entry of its own, or leaves its rest out.
func (s *Source) planRest(ctx context.Context, next *position, left *budget) (entries []entry, moved bool, err error) {
	last := s.seen.pos.At
	if last == nil {
		return nil, false, nil
	}
	var got scanned
	if err = s.restResized(last); err == nil {
		got, err = s.resume(ctx, last, left)
	}
	switch {
	case err == nil && got.eof:
		next.Done = &got.end
	case err == nil:
		next.At = &at{File: last.File, cut: cut{got.end, got.sum}}
	case !lost(err):
		return nil, false, err
	case !s.cfg.SkipLost:
		return nil, false, s.wayOut(ctx, err, &last.File, &last.cut, s.frozenSize(last.File.Path))
	default:
		entries, err = s.takeRest(ctx, next, left, err)
		return entries, err == nil, err
	}
	return nil, true, nil
}

// restResized tells that a file to be read on has another size now, where that is taken as it is: what was added is read too.
func (s *Source) restResized(last *at) error {
	if !s.cfg.SkipLost {
		return nil
	}
	info, err := s.cfg.Files.Stat(last.File.Path)
	if err != nil {
		return nil //nolint:nilerr // opening it says the same, in words
	}
	if size := min(info.Size, s.frozenSize(last.File.Path)); size != last.File.Size {
		return resized(last.File.Path, last.File.Size, size, false)
	}
	return nil
}

func (s *Source) resume(ctx context.Context, last *at, left *budget) (scanned, error) {
	e := &last.File
	if s.cfg.Format == Parquet {
		f, err := s.open(e)
		if err != nil {
			return scanned{}, err
		}
		return s.planPart(ctx, e, f, nil, last.cut, left)
	}
	st, err := s.takeCursor(e, last.Off)
	if err != nil {
		return scanned{}, err
	}
	if st == nil {
		if st, err = s.openStream(e, last.Off); err != nil {
			return scanned{}, err
		}
	}
	return s.planPart(ctx, e, nil, st, last.cut, left)
}

// takeRest goes on in a file that has changed since a part of it was read: with its rest as it is now if what was read is
// still there byte by byte, else behind it, without its rest.
func (s *Source) takeRest(ctx context.Context, next *position, left *budget, why error) ([]entry, error) {
	last := s.seen.pos.At
	path := last.File.Path
	e, f, err := s.asNow(path, s.frozenSize(path), true)
	if errors.Is(err, fs.ErrNotExist) {
		next.Done = &last.place
		s.leftOut(s.gone(&last.File, last.place, nil))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	next.Done = &last.place
	st, err := s.after(ctx, e, f, &last.cut)
	if err != nil {
		return nil, err
	}
	if st != nil {
		got, err := s.planPart(ctx, e, nil, st, last.cut, left)
		if err == nil {
			s.say(path, detail(why)+"; what was read of it, up to "+s.spot(last.place)+", is as it was: its rest is read as it is now")
			if !got.eof {
				next.At = &at{File: *e, cut: cut{got.end, got.sum}}
			} else {
				e.End = &got.end
			}
			e.Begin = &last.cut
			return []entry{*e}, nil
		}
		if !lost(err) {
			return nil, err
		}
		why = err
	}
	lines, bytes := s.countRest(ctx, e, last.place)
	s.leftOut(&source.LeftOutError{Split: path, Detail: detail(why) + "; " + s.unlike(&last.cut, st != nil), Records: lines, Bytes: bytes, Unit: s.unit()})
	e.End = &place{}
	return []entry{*e}, nil
}

// asNow opens a file as it is now, of at most so many bytes. One without a byte is not there. settle refuses one that may
// still be being written.
func (s *Source) asNow(path string, most int64, settle bool) (*entry, durable.File, error) {
	f, err := s.cfg.Files.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		return nil, nil, unreadable(path, err)
	}
	e, err := s.pinnedNow(path, f, most, settle)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return e, f, nil
}

func (s *Source) pinnedNow(path string, f durable.File, most int64, settle bool) (*entry, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	size := min(info.Size, most)
	if size == 0 {
		return nil, fs.ErrNotExist
	}
	if settle && !s.frozen {
		if s.rest.path != path {
			s.rest = found{path: path}
		}
		if !s.settled(&s.rest, info, s.cfg.Clock()) {
			return nil, errUnsettled
		}
	}
	tag, err := etag(f, size)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return &entry{URI: toURI(path), Path: path, Time: info.ModTime.UnixMilli(), Size: size, ETag: tag}, nil
}

// frozenSize is how much of a file belongs to the input.
func (s *Source) frozenSize(path string) int64 {
	if s.frozen {
		i, ok := slices.BinarySearchFunc(s.snapshot, path, func(f found, path string) int { return strings.Compare(f.path, path) })
		if ok {
			return s.snapshot[i].size
		}
	}
	return math.MaxInt64
}

// after returns the content of a file from a place on, or nil if what stands before it is not known to be what was read. It
// takes over the file.
func (s *Source) after(ctx context.Context, e *entry, f durable.File, c *cut) (*stream, error) {
	if s.cfg.Format == Parquet || c.Sum == "" {
		return nil, f.Close()
	}
	st, err := newStream(f, e.Path, e.Size, s.cfg.Compression)
	if lost(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	same, err := s.holds(ctx, st, c)
	if err != nil || !same {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

// holds reports whether a stream, read from its beginning to a place, is what was read up to there.
func (s *Source) holds(ctx context.Context, st *stream, c *cut) (bool, error) {
	buf := s.scratch.Get().(*[]byte)
	defer s.scratch.Put(buf)
	var sum uint32
	for st.off < c.Off {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := st.fill((*buf)[:min(c.Off-st.off, blockSize)])
		switch {
		case err == io.EOF || lost(err):
			return false, nil
		case err != nil:
			return false, err
		}
		sum = crc32.Update(sum, castagnoli, (*buf)[:n])
	}
	return sumText(sum) == c.Sum, nil
}
