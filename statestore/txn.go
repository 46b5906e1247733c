package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"
)

// BatchInfo is what a batch is begun with. Times are milliseconds; a watermark of 0 is none yet.
type BatchInfo struct {
	Batch               int64
	TimeMS, WatermarkMS int64
	Lanes               int // of every stage, at most Groups
	Stages              []Stage
}

// Txn is the state as one running batch sees it: its own writes over the state as of all sealed batches.
type Txn struct {
	store  *Store // nil for that of a View
	info   BatchInfo
	query  string
	files  changelogFiles
	basis  *basis
	ids    *ids
	stages []stageIDs
	bounds []*timerBounds
	lanes  []Lane
	// removals are what the batch deletes by itself: expired entries and those of retired tables, by key.
	removals   []removal
	nextExpiry int64 // no entry that stays expires before it
	caches     map[cacheKey]*cache
	release    func()

	held         int64 // memory of the overlays when they were summed up
	hits, misses int64 // of the cache, when the batch is closed

	attempt string // of the changelog that was written
	summed  bool
	summary Summary
	set     changeSet

	closed atomic.Bool
	mu     sync.Mutex // for the memory of overlays
	free   func(*overlay)
	take   func() *overlay
}

// removal is an entry that a batch deletes by itself.
type removal struct {
	key    []byte
	expiry int64 // of the entry, or unknownExpiry
}

type cacheKey struct {
	transform   uint16
	lane, lanes int
}

// Summary says what a batch changes.
type Summary struct {
	Digest         string // xxh3-128 of the entries of the changelog, 32 hex digits; "" when there are none
	Entries, Bytes int64  // of the changelog, uncompressed
	Stages         []StageSummary
}

// StageSummary counts the entries of tables, timers left out, that a batch puts and removes in one stage.
type StageSummary struct{ Updated, Removed int64 }

// newTxn makes a transaction over a basis. bounds gives what is known of a transform's timers.
func (s *Store) newTxn(b *basis, info BatchInfo, bounds func(transform uint16) *times) (*Txn, error) {
	if info.Lanes < 1 || info.Lanes > Groups {
		return nil, fmt.Errorf("%d lanes, of 1 to %d", info.Lanes, Groups)
	}
	ids, stages, err := b.ids.resolve(info.Stages)
	if err != nil {
		return nil, err
	}
	t := &Txn{
		info: info, query: s.cfg.Query, files: changelogFiles{s.files, path.Join(s.dir, changelogDir)},
		basis: b, ids: ids, stages: stages, nextExpiry: unknownTime,
	}
	t.lanes = make([]Lane, len(stages)*info.Lanes)
	t.bounds = make([]*timerBounds, len(stages))
	for i := range stages {
		t.bounds[i] = newTimerBounds(bounds(stages[i].transform))
		for j := range info.Lanes {
			l := &t.lanes[i*info.Lanes+j]
			l.txn, l.stage, l.lane, l.timers = t, i, j, t.bounds[i]
			l.from, l.to = groupsOf(j, info.Lanes)
		}
	}
	return t, nil
}

// Lane returns one lane of a stage, both by their number from 0.
func (t *Txn) Lane(stage, lane int) *Lane { return &t.lanes[stage*t.info.Lanes+lane] }

func (t *Txn) takeOverlay() *overlay {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.take == nil {
		return &overlay{}
	}
	return t.take()
}

// Sum settles what the batch changes: call it when all lanes are done. It sorts and digests. Nothing may be written after it.
func (t *Txn) Sum(ctx context.Context) (Summary, error) {
	if t.closed.Load() {
		return Summary{}, ErrClosed
	}
	if t.summed {
		return t.summary, nil
	}
	if err := ctx.Err(); err != nil {
		return Summary{}, err
	}
	for i := range t.lanes {
		t.held += t.lanes[i].Held()
	}
	runs := t.runs()
	t.summary.Stages = make([]StageSummary, len(t.stages))
	for _, r := range runs {
		t.set.add(r.run)
		if r.stage >= 0 {
			t.summary.Stages[r.stage].Updated += r.updated
			t.summary.Stages[r.stage].Removed += r.removed
		}
		if err := t.ids.noteExpiring(r.run); err != nil {
			return Summary{}, err
		}
	}
	t.summary.Entries, t.summary.Bytes = t.set.entries, t.set.bytes
	if t.set.entries > 0 {
		sum := t.set.digest()
		t.summary.Digest = hex.EncodeToString(sum[:])
	}
	t.summed = true
	return t.summary, nil
}

// builtRun is the changes of one lane, or of one retired transform (stage -1).
type builtRun struct {
	*run
	stage            int
	updated, removed int64
}

// runs builds the sorted changes of all lanes at once and returns them in key order.
func (t *Txn) runs() []*builtRun {
	var wg sync.WaitGroup
	order := make([]int, len(t.stages))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(t.stages[a].transform) - int(t.stages[b].transform) })
	left := t.removals
	out := make([]*builtRun, 0, len(t.lanes)+4)
	for _, stage := range order {
		var before []removal
		before, left = cutBelow(left, appendHead(nil, t.stages[stage].transform, 0, 0))
		out = appendRetired(out, before)
		for i := range t.info.Lanes {
			l := t.Lane(stage, i)
			var mine []removal
			mine, left = cutBelow(left, appendHead(nil, t.stages[stage].transform, uint8(l.to), 0))
			if l.over == nil && len(mine) == 0 {
				continue
			}
			b := &builtRun{run: &run{}, stage: stage}
			out = append(out, b)
			wg.Go(func() { l.build(b, mine) })
		}
	}
	out = appendRetired(out, left)
	wg.Wait()
	return out
}

// cutBelow splits a sorted list at a key.
func cutBelow(list []removal, key []byte) (below, rest []removal) {
	at, _ := slices.BinarySearchFunc(list, key, func(r removal, key []byte) int { return bytes.Compare(r.key, key) })
	return list[:at], list[at:]
}

func appendRetired(out []*builtRun, list []removal) []*builtRun {
	if len(list) == 0 {
		return out
	}
	r := &run{replaced: make([]int64, 0, len(list))}
	for _, x := range list {
		r.delete(x.key)
		r.replaced = append(r.replaced, x.expiry)
	}
	r.finish(nil)
	return append(out, &builtRun{run: r, stage: -1})
}

// build settles what a lane changes, with what the batch removes by itself, and takes it over into the lane's cache.
func (l *Lane) build(b *builtRun, removals []removal) {
	o, now := l.overlay(), l.txn.info.TimeMS
	for _, x := range removals {
		r := l.touch(x.key)
		if r.flags&recRead == 0 && x.expiry != unknownExpiry {
			r.flags |= recRead | recBaseFound
			r.baseExpiry = x.expiry
		}
		r.flags |= recForced
		if r.flags&recWritten == 0 {
			r.flags |= recWritten | recDeleted
		}
	}
	writes := o.writes()
	tr := l.txn.ids.find(l.txn.stages[l.stage].transform)
	expires := slices.ContainsFunc(tr.Tables, func(t tableID) bool { return t.Expires })
	hashes := o.hash[:0]
	b.refs = make([]ref, 0, len(writes))
	for i := range writes {
		r := writes[i].record
		if !r.effective(now) {
			l.remember(r)
			continue
		}
		timer := r.key[4] == 0 && r.key[5] == timerTable
		if r.flags&recDeleted != 0 {
			b.delete(r.key)
			b.removed += one(!timer)
		} else {
			b.put(r.key, r.value, r.expiry)
			b.updated += one(!timer)
		}
		hashes = append(hashes, r.hash)
		if expires {
			b.replaced = append(b.replaced, r.replacedExpiry())
		}
		if !timer {
			l.remember(r)
		}
	}
	o.hash = hashes
	b.finish(hashes)
	l.updateLists(writes)
}

// updateLists takes what the batch writes over into the lists of scanned keys.
func (l *Lane) updateLists(writes []sortable) {
	if l.cache == nil || len(l.cache.lists.young)+len(l.cache.lists.old) == 0 {
		return
	}
	for len(writes) > 0 {
		key := writes[0].key
		n, used := binary.Uvarint(key[headLen:])
		prefix := key[:headLen+used+int(n)]
		same := 1
		for same < len(writes) && bytes.HasPrefix(writes[same].key, prefix) {
			same++
		}
		l.cache.lists.update(prefix, writes[:same])
		writes = writes[same:]
	}
}

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func (r *record) replacedExpiry() int64 {
	switch {
	case r.flags&recRead == 0:
		return unknownExpiry
	case r.flags&recBaseFound == 0:
		return 0
	}
	return r.baseExpiry
}

// remember notes the value that a batch leaves: what was read is likely to be read again.
func (l *Lane) remember(r *record) {
	found := r.flags&recDeleted == 0
	if r.flags&recRead != 0 {
		l.cache.put(r.hash, r.key, r.value, r.expiry, found)
		return
	}
	l.cache.update(r.hash, r.key, r.value, r.expiry, found)
}

// noteExpiring marks the tables that have got entries with an expiry.
func (t *ids) noteExpiring(r *run) error {
	for i := range r.expiring {
		k, err := parseKey(r.expiring[i].key)
		if err != nil {
			return err
		}
		tr := t.find(k.transform)
		if tr == nil {
			return fmt.Errorf("no transform has the id %d", k.transform)
		}
		tab := tr.find(k.table)
		if tab == nil {
			return fmt.Errorf("no table of %q has the id %d", tr.Name, k.table)
		}
		tab.Expires = true
	}
	return nil
}

// meta is what the changelog and the backend's marker say.
func (t *Txn) meta() *meta {
	return &meta{
		Version: metaVersion, Query: t.query, Batch: t.info.Batch, IDs: t.ids, Digest: t.summary.Digest, After: t.basis.link,
	}
}

// Close gives the memory of the overlays back. It may be called more than once, and after that of the store.
func (t *Txn) Close() {
	if t.closed.Swap(true) {
		return
	}
	for i := range t.lanes {
		l := &t.lanes[i]
		t.hits, t.misses = t.hits+l.hits, t.misses+l.misses
		l.close()
	}
	if t.release != nil {
		t.release()
	}
}

func (l *Lane) close() {
	for _, s := range l.scans {
		if s != nil {
			_ = s.cursor.Close() // nothing was written
		}
	}
	l.scans, l.short = [2]*scan{}, [2]*scan{}
	if l.over != nil && l.txn.free != nil {
		l.over.reset()
		l.txn.free(l.over)
	}
	l.over, l.cache = nil, nil
}
