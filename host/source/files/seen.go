package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/zeebo/xxh3"

	"github.com/wasmill/wasmill/checkpoint"
)

// maxTail is how many entries a position may carry for logs that are not synced yet.
const maxTail = 64

// seen is what a position stands for: its parts, and the files planned up to it with their sizes. Paths are kept as
// 128-bit digests, so that a million files take 40 MB.
type seen struct {
	pos   position
	sizes map[xxh3.Uint128]int64
}

func pathKey(path string) xxh3.Uint128 { return xxh3.HashString128(path) }

// restore makes s.seen stand for the position from, out of the logs and what the position itself carries. Logs that a
// crash has lost are written again.
func (s *Source) restore(from checkpoint.Position) error {
	if s.seen != nil && s.at == from {
		return nil
	}
	pos, err := parsePosition(from)
	if err != nil {
		return err
	}
	if err := s.movedFrom(pos); err != nil && !s.cfg.AllowMoved {
		return err
	}
	sizes := map[xxh3.Uint128]int64{}
	err = s.logs.each(pos, func(e *entry) error {
		size := e.Size
		if e.ETag == "" {
			size = -1 // Spark's own entry, which has no size
		}
		sizes[pathKey(e.Path)] = size
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.rewrite(pos, false); err != nil {
		return err
	}
	s.seen, s.at, s.listed = &seen{pos: *pos, sizes: sizes}, from, false
	return nil
}

// rewrite writes the logs in the position's tail: those that differ from it, or all of them durably.
func (s *Source) rewrite(pos *position, sync bool) error {
	if s.cfg.ReadOnly {
		return nil
	}
	for k := pos.Synced + 1; k <= pos.log; k++ {
		entries, err := s.logs.read(k, pos)
		if err != nil {
			return err
		}
		if !sync {
			same, err := s.logs.holds(k, entries)
			if err != nil {
				return err
			}
			if same {
				continue
			}
		}
		if err := s.logs.write(k, entries, sync); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether log k is on disk with exactly these entries.
func (l logs) holds(k int64, entries []entry) (same bool, err error) {
	want, err := encode(entries)
	if err != nil {
		return false, err
	}
	f, err := l.files.Open(l.plain(k))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unreadable(l.plain(k), err)
	}
	defer closeWith(&err, f)
	got, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	if err != nil {
		return false, unreadable(l.plain(k), err)
	}
	return bytes.Equal(got, want), nil
}

// advance records a batch's new files under the next log id and returns the position after it. The log is written but
// not synced: until the next compacted log, or until there are more than maxTail of them, the entries travel in the
// position itself, which the plan makes durable anyway.
func (s *Source) advance(next position, entries []entry) (checkpoint.Position, error) {
	from := &s.seen.pos
	next.Base = toURI(s.lister.root)
	next.log, next.Synced, next.Sum, next.Tail = from.log, from.Synced, from.Sum, from.Tail
	if len(entries) > 0 {
		if err := s.record(&next, entries); err != nil {
			return checkpoint.Position{}, err
		}
	}
	to, err := next.format()
	if err != nil {
		return checkpoint.Position{}, err
	}
	for i := range entries {
		s.seen.sizes[pathKey(entries[i].Path)] = entries[i].Size
	}
	s.seen.pos, s.at = next, to
	return to, nil
}

func (s *Source) record(next *position, entries []entry) (err error) {
	next.log++
	k := next.log
	for i := range entries {
		entries[i].Log = k
		next.begins = next.begins || entries[i].Begin != nil
	}
	if next.At != nil {
		next.At.File.Log = k
	}
	if next.Sum, err = sum(entries); err != nil {
		return err
	}
	if s.cfg.ReadOnly {
		next.Tail = append(next.Tail[:len(next.Tail):len(next.Tail)], entries...)
		return nil
	}
	switch {
	case isCompact(k):
		err = s.logs.writeCompact(k, &s.seen.pos, entries)
	case len(next.Tail)+len(entries) > maxTail:
		if err = s.rewrite(&s.seen.pos, true); err == nil {
			err = s.logs.write(k, entries, true)
		}
	default:
		next.Tail = append(next.Tail[:len(next.Tail):len(next.Tail)], entries...)
		return s.logs.write(k, entries, false)
	}
	if err != nil {
		return fmt.Errorf("log %d of source %s: %w", k, s.cfg.Name, err)
	}
	next.Synced, next.Tail = k, nil
	return nil
}
