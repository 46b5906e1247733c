package statestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// snapshotDir is the folder of snapshots in that of the state. A snapshot is named by its batch.
const snapshotDir = "snapshot"

// The format of a snapshot is that of a changelog with another magic number: all entries as of the end of a batch, and
// after them the keys of the index by expiry.
const (
	snapshotMagic   = "WMS1"
	snapshotVersion = 1
)

const (
	keptSnapshots = 2
	// snapshotParts is how many parts a large snapshot is written in, one after each apply, so that the work is spread over
	// many batches and the file is synced in small pieces.
	snapshotParts = 256
)

// snapshots decides when one is written, and writes it bit by bit. Only the goroutine that applies uses it, and Close
// after that has ended.
type snapshots struct {
	kept    []int64 // batches, ascending
	size    int64   // of the newest, uncompressed
	bytes   int64   // of changelogs since it was begun
	batches int
	writing *snapshot
}

// snapshot is one that is being written.
type snapshot struct {
	batch  int64
	name   string // while it is not whole
	file   durable.File
	cursor Cursor
	out    *blockWriter
	raw    []byte
}

func (s *Store) snapshotPath(batch int64) string {
	return path.Join(s.dir, snapshotDir, strconv.FormatInt(batch, 10))
}

// openFiles looks what snapshots and changelogs there are.
func (s *Store) openFiles() error {
	dir := path.Join(s.dir, snapshotDir)
	if err := durable.MakeDir(s.files, dir); err != nil {
		return err
	}
	list, err := s.files.List(dir)
	if err != nil {
		return err
	}
	for _, info := range list {
		batch, err := strconv.ParseInt(info.Name, 10, 64)
		switch {
		case err == nil && batch >= 0 && strconv.FormatInt(batch, 10) == info.Name:
			s.snap.kept = insertSorted(s.snap.kept, batch)
		case strings.HasPrefix(info.Name, ".") && strings.HasSuffix(info.Name, ".tmp"):
			if err := s.files.Remove(path.Join(dir, info.Name)); err != nil {
				return err
			}
		}
	}
	newest := int64(-1)
	if n := len(s.snap.kept); n > 0 {
		newest = s.snap.kept[n-1]
		s.snap.size = s.snapshotSize(newest)
	}
	s.setFloor()
	return s.openChangelogs(newest)
}

func insertSorted(list []int64, n int64) []int64 {
	i := len(list)
	for i > 0 && list[i-1] > n {
		i--
	}
	return append(list[:i], append([]int64{n}, list[i:]...)...)
}

// openChangelogs notes the names of all changelogs, and counts those above the newest snapshot.
func (s *Store) openChangelogs(newest int64) error {
	s.others = make(map[int64][]string)
	list, err := s.files.List(path.Join(s.dir, changelogDir))
	if err != nil {
		return err
	}
	for _, info := range list {
		batch, ok := batchOf(info.Name)
		if !ok || info.Dir || strings.HasPrefix(info.Name, ".") {
			continue
		}
		s.others[batch] = append(s.others[batch], info.Name)
		if batch > newest {
			s.snap.bytes += info.Size
			s.snap.batches++
		}
	}
	return nil
}

// snapshotSize reads the uncompressed size at a snapshot's end. It is used for timing alone, and may be wrong.
func (s *Store) snapshotSize(batch int64) int64 {
	f, err := s.files.Open(s.snapshotPath(batch))
	if err != nil {
		return 0
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil || info.Size < endLen {
		return 0
	}
	var end [endLen]byte
	if _, err := f.ReadAt(end[:], info.Size-endLen); err != nil {
		return 0
	}
	return int64(min(binary.LittleEndian.Uint64(end[16:]), 1<<62))
}

// setFloor keeps the changelogs after the oldest snapshot, or all while there is none.
func (s *Store) setFloor() {
	floor := int64(0)
	if s.cfg.SnapshotBatches < 0 {
		floor = math.MaxInt64
	}
	if len(s.snap.kept) > 0 {
		floor = s.snap.kept[0] + 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor = floor
}

// noteAttempt remembers the changelog of an attempt until its batch is sealed.
func (s *Store) noteAttempt(batch int64, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.others[batch], name) {
		s.others[batch] = append(s.others[batch], name)
	}
}

// dropOthers removes the changelogs of other attempts at a batch that is about to be sealed.
func (s *Store) dropOthers(batch int64, attempt string) error {
	s.mu.Lock()
	names := s.others[batch]
	delete(s.others, batch)
	s.mu.Unlock()
	for _, name := range names {
		if name == changelogName(batch, attempt) {
			continue
		}
		if err := s.files.Remove(path.Join(s.dir, changelogDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove another attempt: %w", err)
		}
	}
	return nil
}

// step is called after each applied batch. Trouble is told and the snapshot given up: the older ones and the changelogs
// after them stay.
func (c *snapshots) step(s *Store, p *pending) {
	c.bytes += p.set.bytes
	c.batches += p.merged
	if s.cfg.SnapshotBatches < 0 {
		return
	}
	if c.writing == nil {
		if c.bytes < max(s.cfg.SnapshotBytes, c.size) && c.batches < s.cfg.SnapshotBatches {
			return
		}
		c.bytes, c.batches = 0, 0
		s.cfg.Events.Point("snapshot-begin")
		if err := c.begin(s, p.batch); err != nil {
			c.fail(s, err)
			return
		}
	}
	done, err := c.part(s)
	if err == nil && done {
		err = c.finish(s)
	}
	if err != nil {
		c.fail(s, err)
	}
}

// fail gives a snapshot up. When the state itself cannot be read, the job must not go on.
func (c *snapshots) fail(s *Store, err error) {
	s.cfg.Events.Warning("write a snapshot of the state", errors.Join(err, c.drop(s)))
	if errors.Is(err, ErrDamaged) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err
		s.changed.Broadcast()
	}
}

func (c *snapshots) begin(s *Store, batch int64) error {
	m, err := readMarker(s.backend, batch, s.cfg.Query)
	if err != nil {
		return err
	}
	head, err := m.encode()
	if err != nil {
		return err
	}
	name := path.Join(s.dir, snapshotDir, "."+strconv.FormatInt(batch, 10)+".tmp")
	f, err := s.files.Create(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.pins[batch]++
	s.mu.Unlock()
	w := &snapshot{batch: batch, name: name, file: f}
	c.writing = w
	if w.out, err = newBlockWriter(f, snapshotMagic, snapshotVersion, head); err != nil {
		return err
	}
	if w.cursor, err = s.backend.Cursor(batch, Range{Lower: []byte{dataPrefix}, Upper: []byte{indexPrefix + 1}}, false); err != nil {
		return err
	}
	w.cursor.Seek(nil)
	return nil
}

// part writes the next entries, durably. done is true when there are no more.
func (c *snapshots) part(s *Store) (done bool, err error) {
	w := c.writing
	s.cfg.Events.Point("snapshot-part")
	target := max(s.cfg.SnapshotPart, c.size/snapshotParts)
	for written := int64(0); written < target && w.cursor.Valid(); {
		w.raw = w.raw[:0]
		count := 0
		for ; int64(len(w.raw)) < min(blockTarget, target) && w.cursor.Valid(); w.cursor.Next() {
			stored, err := w.cursor.Value()
			if err != nil {
				return false, err
			}
			w.raw = appendEntry(w.raw, w.cursor.Key(), stored)
			count++
		}
		if err := w.out.entries(w.raw, count); err != nil {
			return false, err
		}
		written += int64(len(w.raw))
	}
	if err := errors.Join(w.cursor.Err(), w.out.flush()); err != nil {
		return false, err
	}
	return !w.cursor.Valid(), w.file.Sync()
}

// appendEntry appends a put as changelogs have it.
func appendEntry(dst, key, stored []byte) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	return append(binary.AppendUvarint(dst, uint64(len(stored)+1)), stored...)
}

// finish makes the snapshot whole, gives it its name and removes the oldest. The backend is asked to make durable what
// the snapshot has, so that a restart does not need changelogs that may go.
func (c *snapshots) finish(s *Store) error {
	w := c.writing
	entries, size := int64(w.out.count), int64(w.out.size)
	if err := errors.Join(w.out.finish(), w.file.Sync()); err != nil {
		return err
	}
	s.cfg.Events.Point("snapshot-link")
	dir := path.Join(s.dir, snapshotDir)
	if err := s.files.Rename(w.name, s.snapshotPath(w.batch)); err != nil {
		return err
	}
	w.name = ""
	if err := s.files.SyncDir(dir); err != nil {
		return err
	}
	if c.size = size; !slices.Contains(c.kept, w.batch) { // batches that are applied again may be written again
		c.kept = insertSorted(c.kept, w.batch)
	}
	if err := c.drop(s); err != nil {
		return err
	}
	for len(c.kept) > keptSnapshots {
		if err := s.files.Remove(s.snapshotPath(c.kept[0])); err != nil {
			return err
		}
		c.kept = c.kept[1:]
	}
	s.setFloor()
	s.cfg.Events.Snapshot(w.batch, entries, size)
	s.cfg.Events.Point("snapshot-end")
	return s.backend.Flush(context.Background())
}

// drop ends the snapshot that is being written, if any, and removes what is not whole.
func (c *snapshots) drop(s *Store) error {
	w := c.writing
	if w == nil {
		return nil
	}
	c.writing = nil
	var errs []error
	if w.cursor != nil {
		errs = append(errs, w.cursor.Close())
	}
	errs = append(errs, w.file.Close())
	if w.name != "" {
		errs = append(errs, s.files.Remove(w.name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[w.batch]--; s.pins[w.batch] == 0 {
		delete(s.pins, w.batch)
	}
	return errors.Join(errs...)
}

// openSnapshot opens a snapshot for reading. The caller closes the file.
func (s *Store) openSnapshot(batch int64) (*blockReader, *meta, durable.File, error) {
	name := s.snapshotPath(batch)
	fail := func(offset int64, err error) error {
		return &FileError{File: name, Batch: batch, Offset: offset, Err: err}
	}
	f, err := s.files.Open(name)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := newBlockReader(f, snapshotMagic, snapshotVersion)
	if err != nil {
		return nil, nil, nil, errors.Join(fail(r.at(), err), f.Close())
	}
	r.index = true
	m, err := decodeMeta(r.head)
	switch {
	case err != nil && !errors.Is(err, ErrNewer):
		err = corrupt("%v", err)
	case err != nil:
	case m.Query != s.cfg.Query:
		err = corrupt("it belongs to query %s, not %s", m.Query, s.cfg.Query)
	case m.Batch != batch:
		err = corrupt("it is that of batch %d", m.Batch)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(fail(0, err), f.Close())
	}
	return r, m, f, nil
}

// visitSnapshot reads a whole snapshot. The bytes given to visit are valid during the call.
func (s *Store) visitSnapshot(ctx context.Context, batch int64, visit func(key, stored []byte) error) (m *meta, err error) {
	r, m, f, err := s.openSnapshot(batch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		raw, err := r.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return m, nil
			}
			return nil, &FileError{File: s.snapshotPath(batch), Batch: batch, Offset: r.offset, Err: err}
		}
		for len(raw) > 0 {
			key, stored, rest, err := splitEntry(raw)
			if err != nil {
				return nil, err
			}
			if err := visit(key, stored); err != nil {
				return nil, err
			}
			raw = rest
		}
	}
}
