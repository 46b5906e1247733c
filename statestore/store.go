package statestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"sync"
	"time"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Defaults of Config.
const (
	DefaultCacheBytes     = 32 << 20
	DefaultBacklogBatches = 64
	DefaultBacklogBytes   = 32 << 20
	DefaultApplyBatches   = 8
	DefaultApplyBytes     = 4 << 20
	DefaultApplyAfter     = 300 * time.Millisecond

	DefaultSnapshotBytes   = 16 << 20
	DefaultSnapshotBatches = 1000
	DefaultSnapshotPart    = 2 << 20
)

// Config is what a Store is opened with.
type Config struct {
	Files durable.Files
	// Dir is "<checkpoint>/state". Changelogs are in changelog/ below it; the backend has a folder of its own there.
	Dir   string
	Query string // the job's identity
	// Backend opens the backend, and BackendName names its folder; "" is "badger".
	Backend     Opener
	BackendName string
	// CacheBytes bounds the memory of last values, over all lanes. 0 is DefaultCacheBytes, negative none.
	CacheBytes int64
	// Backlog bounds of what waits to be applied. 0 is the default.
	BacklogBatches int
	BacklogBytes   int64
	// Sealed batches are applied as one when so many wait, or so many bytes of them, or when no other came for so long: what
	// they write several times, or write and delete again, reaches the backend once or never. 0 is the default; 1 batch is
	// one at a time.
	ApplyBatches int
	ApplyBytes   int64
	ApplyAfter   time.Duration
	// A snapshot is written when so many bytes of changelogs (or as many as the last snapshot has) or so many batches with
	// changes have come since the last one. 0 is the default; negative batches: there are no snapshots, and changelogs go as
	// Retain says, which is for tests.
	SnapshotBytes   int64
	SnapshotBatches int
	// SnapshotPart is the bytes of a snapshot that are written, at least, after a batch is applied. 0 is the default.
	SnapshotPart int64
	Events       Events
	// Now is the clock of durations; nil leaves them 0.
	Now func() time.Time
}

// Events are told of what happens in the background. Nil functions are left out. They must not call the store.
type Events struct {
	// Point is told of named points of seal and apply, for tests that end the process there: "seal", "apply-begin",
	// "apply-chunk", "apply-marker", "apply-end", "snapshot-begin", "snapshot-part", "snapshot-link", "snapshot-end", "discard",
	// "rebuild-begin", "rebuild-load", "rebuild-end", and "clear" before the backend removes a file.
	Point func(name string)
	// Applied is told of each applied batch: entries and bytes of its changelog, uncompressed.
	Applied func(batch, entries, bytes int64, took time.Duration)
	// Snapshot is told of each snapshot: entries and bytes, uncompressed, those of the index by expiry included.
	Snapshot func(batch, entries, bytes int64)
	// Rebuilt is told that the backend was built anew, from the snapshot of a batch (-1: from changelogs alone), and why.
	Rebuilt func(snapshot int64, why error)
	// Warning is told of trouble that does not end anything.
	Warning func(op string, err error)
}

func (c *Config) fill() {
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.BacklogBatches <= 0 {
		c.BacklogBatches = DefaultBacklogBatches
	}
	if c.BacklogBytes <= 0 {
		c.BacklogBytes = DefaultBacklogBytes
	}
	if c.SnapshotBytes <= 0 {
		c.SnapshotBytes = DefaultSnapshotBytes
	}
	if c.SnapshotBatches == 0 {
		c.SnapshotBatches = DefaultSnapshotBatches
	}
	if c.SnapshotPart <= 0 {
		c.SnapshotPart = DefaultSnapshotPart
	}
	if c.ApplyBatches <= 0 {
		c.ApplyBatches = DefaultApplyBatches
	}
	if c.ApplyBytes <= 0 {
		c.ApplyBytes = DefaultApplyBytes
	}
	if c.ApplyAfter <= 0 {
		c.ApplyAfter = DefaultApplyAfter
	}
	if c.BackendName == "" {
		c.BackendName = "badger"
	}
	if c.Events.Point == nil {
		c.Events.Point = func(string) {}
	}
	if c.Events.Applied == nil {
		c.Events.Applied = func(int64, int64, int64, time.Duration) {}
	}
	if c.Events.Snapshot == nil {
		c.Events.Snapshot = func(int64, int64, int64) {}
	}
	if c.Events.Rebuilt == nil {
		c.Events.Rebuilt = func(int64, error) {}
	}
	if c.Events.Warning == nil {
		c.Events.Warning = func(string, error) {}
	}
	if c.Now == nil {
		c.Now = func() time.Time { return time.Time{} }
	}
}

// Store is the state of one job's sealed batches. Begin, Seal, Load and Retain are for one goroutine; all else may be
// called at any time.
type Store struct {
	cfg     Config
	files   durable.Files
	dir     string
	backend Backend

	mu      sync.Mutex
	changed *sync.Cond // of what follows
	closed  bool
	failed  error // of an apply: the end of the job
	applied int64 // newest batch whose changes are all in the backend
	last    int64 // newest sealed batch
	marked  int64 // newest batch that the backend has a marker of
	horizon int64 // the oldest batch that can be read, as told to the backend or about to be
	link    link  // the newest changelog that is part of the state
	damaged error // of the backend, until it is built anew
	waiting []*pending
	backlog int64 // bytes of waiting
	hurry   bool  // what waits is to be applied however little it is
	begun   int64 // a batch that was applied in part before the start, or -1
	drained bool  // the last apply of a closed store was begun
	idle    *time.Timer
	pending []int64 // applied batches with changes that the backend may lose; ascending
	ids     *ids
	bounds  map[uint16]*times
	expiry  int64 // no entry expires before it
	empty   map[retiredID]bool
	caches  map[cacheKey]*cache
	free    []*overlay
	pins    map[int64]int // bases that are read, by asOf
	open    map[closer]struct{}
	oldest  int64              // as asked by Retain
	floor   int64              // the oldest changelog that a rebuild needs
	others  map[int64][]string // names of changelogs of batches that are not sealed yet
	stats   Stats              // its counters

	snap snapshots // of the goroutine that applies
	work sync.WaitGroup
}

type closer interface{ Close() }

// pending is a sealed batch that waits to be applied.
type pending struct {
	batch int64
	set   changeSet
	ids   *ids
	after link // the changelog before this one
	own   link

	merged int    // how many batches it is made of
	base   int64  // the batch that it changes the state of
	tables []*ids // of those batches, newest first
}

// Open opens the state of a job. Its folder is made when it is missing.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg.fill()
	if err := durable.MakeDir(cfg.Files, path.Join(cfg.Dir, changelogDir)); err != nil {
		return nil, fmt.Errorf("open the state: %w", err)
	}
	s := &Store{cfg: cfg, files: cfg.Files, dir: cfg.Dir, oldest: -1}
	s.changed = sync.NewCond(&s.mu)
	s.pins, s.open, s.empty = make(map[int64]int), make(map[closer]struct{}), make(map[retiredID]bool)
	if err := s.openFiles(); err != nil {
		return nil, fmt.Errorf("open the state: %w", err)
	}
	if err := s.openBackend(ctx); err != nil {
		return nil, fmt.Errorf("open the state: %w", err)
	}
	s.work.Go(s.applyAll)
	return s, nil
}

// openBackend opens the backend. A damaged one is given up, and nothing can be read until Rewind has built a new one.
func (s *Store) openBackend(ctx context.Context) error {
	backend, err := s.cfg.Backend(ctx, s.backendConfig())
	if err == nil {
		if err = s.adopt(backend); err == nil {
			return nil
		}
		err = errors.Join(err, backend.Close())
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	s.damaged = err
	return s.adopt(noBackend{err})
}

func (s *Store) backendConfig() BackendConfig {
	return BackendConfig{
		Files: s.files, Dir: path.Join(s.dir, s.cfg.BackendName), Query: s.cfg.Query,
		Point: s.cfg.Events.Point, Warning: s.cfg.Events.Warning,
	}
}

// adopt takes over what a backend has. Nothing may wait or be open.
func (s *Store) adopt(backend Backend) error {
	m, err := readMarker(backend, math.MaxInt64, s.cfg.Query)
	if err != nil {
		return err
	}
	if m.Base > max(backend.Oldest(), 0) {
		if err := backend.Discard(m.Base); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend = backend
	s.marked, s.horizon, s.begun = m.Batch, -1, backend.Begun()
	s.applied, s.last, s.ids, s.link = m.Batch, m.Batch, m.IDs, m.link()
	s.waiting, s.pending, s.backlog = nil, nil, 0
	s.bounds, s.caches = make(map[uint16]*times), nil
	s.expiry = unknownTime
	clear(s.empty)
	for _, tr := range s.ids.Transforms {
		s.bounds[tr.ID] = allTimes(unknownTime)
	}
	return nil
}

// readMarker reads what a backend has as of a batch: its Batch is -1 when there is nothing.
func readMarker(backend Backend, asOf int64, query string) (*meta, error) {
	mark, err := backend.Marker(asOf)
	if err != nil {
		return nil, err
	}
	if mark.Batch < 0 {
		return &meta{Version: metaVersion, Query: query, Batch: -1, IDs: &ids{Next: 1}, After: noLink}, nil
	}
	m, err := decodeMeta(mark.Meta)
	switch {
	case err != nil:
		return nil, fmt.Errorf("marker of batch %d: %w: %w", mark.Batch, ErrDamaged, err)
	case m.Batch != mark.Batch:
		return nil, fmt.Errorf("marker of batch %d speaks of batch %d: %w", mark.Batch, m.Batch, ErrDamaged)
	case m.Query != query:
		return nil, fmt.Errorf("the state folder belongs to query %s, not %s: %w", m.Query, query, ErrDamaged)
	}
	return m, nil
}

// Applied is the newest batch whose changes are in the backend, -1 for none.
func (s *Store) Applied() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

// Last is the newest batch in the store: applied, or waiting to be.
func (s *Store) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Durable is the newest batch that nothing above would have to be loaded for if the machine stopped now: Last when all
// changes are in the backend for good.
func (s *Store) Durable() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if len(s.pending) > 0 {
		return s.pending[0] - 1
	}
	if len(s.waiting) > 0 {
		return s.waiting[0].batch - 1
	}
	return s.last
}

// settle forgets the batches that the backend has for good.
func (s *Store) settle() {
	durable := s.backend.Durable()
	for len(s.pending) > 0 && s.pending[0] <= durable {
		s.pending = s.pending[1:]
	}
}

// ready says whether the store can go on.
func (s *Store) ready() error {
	if s.closed {
		return ErrClosed
	}
	return errors.Join(s.failed, s.damaged)
}

// basisLocked is the state as of the newest sealed batch. It is pinned until release.
func (s *Store) basisLocked() *basis {
	b := &basis{backend: s.backend, asOf: s.applied, ids: s.ids, link: s.link}
	for i := len(s.waiting) - 1; i >= 0; i-- {
		b.pending = append(b.pending, s.waiting[i])
	}
	s.pins[b.asOf]++
	return b
}

func (s *Store) releaseLocked(b *basis) {
	if s.pins[b.asOf]--; s.pins[b.asOf] == 0 {
		delete(s.pins, b.asOf)
	}
}

// Begin begins a batch on the state as of all sealed ones. Batches between Last and this one have changed nothing.
func (s *Store) Begin(ctx context.Context, info BatchInfo) (*Txn, error) {
	t, err := s.begin(info)
	if err != nil {
		return nil, fmt.Errorf("begin batch %d: %w", info.Batch, err)
	}
	if err := t.removeByItself(ctx, s.expiryBound(), s.isEmpty); err != nil {
		t.Close()
		return nil, fmt.Errorf("begin batch %d: %w", info.Batch, err)
	}
	return t, nil
}

func (s *Store) begin(info BatchInfo) (*Txn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	if info.Batch <= s.last {
		return nil, fmt.Errorf("batch %d is sealed already", s.last)
	}
	s.skipTo(info.Batch - 1)
	b := s.basisLocked()
	t, err := s.newTxn(b, info, s.boundsOf)
	if err != nil {
		s.releaseLocked(b)
		return nil, err
	}
	t.store = s
	t.take, t.free = s.takeOverlay, s.giveOverlay
	t.release = func() { s.forget(t, b) }
	s.lendCaches(t)
	s.open[t] = struct{}{}
	return t, nil
}

// skipTo notes that the batches up to this one have changed nothing.
func (s *Store) skipTo(batch int64) {
	s.last = max(s.last, batch)
	if len(s.waiting) == 0 {
		s.applied = max(s.applied, s.last)
	}
}

// boundsOf is what is known of a transform's timers.
func (s *Store) boundsOf(transform uint16) *times {
	if b := s.bounds[transform]; b != nil {
		return b
	}
	return allTimes(never) // it is new and has none
}

func (s *Store) expiryBound() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expiry
}

// lendCaches gives the caches of last values to a batch, which has them for itself.
func (s *Store) lendCaches(t *Txn) {
	if s.cfg.CacheBytes < 0 || len(t.lanes) == 0 {
		return
	}
	t.caches, s.caches = s.caches, nil
	if t.caches == nil {
		t.caches = make(map[cacheKey]*cache)
	}
	used := make(map[cacheKey]*cache, len(t.lanes))
	for i := range t.lanes {
		l := &t.lanes[i]
		k := cacheKey{t.stages[l.stage].transform, l.lane, t.info.Lanes}
		c := t.caches[k]
		if c == nil {
			c = &cache{}
		}
		c.setBudget(s.cfg.CacheBytes / int64(len(t.lanes)))
		used[k], l.cache = c, c
	}
	t.caches = used
}

// forget is the end of a batch. Its caches are good again if it was sealed, or has not taken its own changes over.
func (s *Store) forget(t *Txn, b *basis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, t)
	s.releaseLocked(b)
	s.stats.CacheHits += t.hits
	s.stats.CacheMisses += t.misses
	if t.caches != nil && !t.summed && s.caches == nil && s.last < t.info.Batch {
		s.caches = t.caches
	}
	t.caches = nil
}

// maxFree is how many overlays are kept for the next batch.
const maxFree = 64

func (s *Store) takeOverlay() *overlay {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		o := s.free[n-1]
		s.free = s.free[:n-1]
		return o
	}
	return &overlay{}
}

func (s *Store) giveOverlay(o *overlay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < maxFree && !s.closed {
		s.free = append(s.free, o)
	}
}

// Close applies what was left to be applied later, or waits for a running apply, and closes the backend. If more waits, it
// is loaded again by the next start.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.idle != nil {
		s.idle.Stop()
	}
	open := make([]closer, 0, len(s.open))
	for c := range s.open {
		open = append(open, c)
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	s.work.Wait()
	err := s.snap.drop(s)
	for _, c := range open {
		c.Close()
	}
	if err := errors.Join(err, s.backend.Close()); err != nil {
		return fmt.Errorf("close the state: %w", err)
	}
	return nil
}
