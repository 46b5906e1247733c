package statestore

import (
	"bytes"
	"fmt"
)

// Lane is the state of one lane of one stage as its batch sees it. It is used by one goroutine at a time; lanes are
// independent of each other.
type Lane struct {
	txn      *Txn
	stage    int
	lane     int
	from, to int // key groups
	over     *overlay
	cache    *cache
	scratch  []byte
	second   []byte
	scans    [2]*scan // through the backend, upwards and downwards
	short    [2]*scan // over a list
	timers   *timerBounds
	held     *int64 // up to which event-time timers are due, where that is not the batch's watermark
	passed   uint64
	hits     int64 // reads that the cache could answer, and those it could not
	misses   int64
}

// overlay takes memory for the lane when it is first used.
func (l *Lane) overlay() *overlay {
	if l.over == nil {
		l.over = l.txn.takeOverlay()
	}
	return l.over
}

// encode checks an entry and writes its key into the lane's scratch.
func (l *Lane) encode(e *Entry) ([]byte, error) {
	if l.txn.closed.Load() {
		return nil, ErrClosed
	}
	ids := &l.txn.stages[l.stage]
	if int(e.Table) >= len(ids.tables) {
		return nil, fmt.Errorf("table %d of %d", e.Table, len(ids.tables))
	}
	if err := l.check(e.Group, e.Key, e.Sub); err != nil {
		return nil, err
	}
	l.scratch = appendKey(l.scratch[:0], ids.transform, e.Group, ids.tables[e.Table], e.Key, e.Sub)
	return l.scratch, nil
}

func (l *Lane) check(group uint8, key, sub []byte) error {
	if int(group) < l.from || int(group) >= l.to {
		return fmt.Errorf("key group %d in lane %d, which has %d to %d", group, l.lane, l.from, l.to-1)
	}
	if len(key)+len(sub) > MaxKey {
		return fmt.Errorf("key of %d and sub of %d bytes, at most %d together: %w", len(key), len(sub), MaxKey, ErrLimit)
	}
	return nil
}

// Get returns the value of an entry, the batch's own writes included, or found = false. The bytes are valid until the next
// write to the lane, or its Reset.
func (l *Lane) Get(e Entry) (value []byte, found bool, err error) {
	key, err := l.encode(&e)
	if err != nil {
		return nil, false, err
	}
	now := l.txn.info.TimeMS
	o := l.overlay()
	hash := hashKey(key)
	r := o.find(hash, key)
	if r != nil && r.flags&recWritten != 0 {
		if r.flags&recDeleted != 0 || expired(r.expiry, now) {
			return nil, false, nil
		}
		return r.value, true, nil
	}
	if r == nil {
		if r, err = l.load(hash, key); err != nil {
			return nil, false, err
		}
	}
	if r.flags&recBaseFound == 0 || expired(r.baseExpiry, now) {
		return nil, false, nil
	}
	return r.base, true, nil
}

// load reads an entry of the state before the batch into a new record.
func (l *Lane) load(hash uint64, key []byte) (*record, error) {
	if value, expiry, state := l.cache.get(hash, key); state != cacheUnknown {
		l.hits++
		r := l.over.add(hash, key)
		r.flags |= recRead
		if state == cacheFound {
			r.flags |= recBaseFound
			r.base, r.baseExpiry = value, expiry
		}
		return r, nil
	}
	l.misses++
	stored, found, err := l.txn.basis.get(hash, key, &l.second)
	if err != nil {
		return nil, err
	}
	r := l.over.add(hash, key)
	r.flags |= recRead
	if !found {
		l.cache.put(hash, key, nil, 0, false)
		return r, nil
	}
	value, expiry, err := parseStored(stored)
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	r.base, r.baseExpiry = l.over.arena.copy(value), expiry
	r.flags |= recBaseFound
	l.cache.put(hash, key, value, expiry, true)
	return r, nil
}

// Put stores a value. The entry is hidden from expiryMS (milliseconds of batch time) on, and removed some time after; 0
// is never.
func (l *Lane) Put(e Entry, value []byte, expiryMS int64) error {
	key, err := l.encode(&e)
	if err != nil {
		return err
	}
	if len(value) > MaxValue {
		return fmt.Errorf("value of %d bytes, at most %d: %w", len(value), MaxValue, ErrLimit)
	}
	l.put(key, value, expiryMS)
	return nil
}

func (l *Lane) put(key, value []byte, expiry int64) {
	r := l.touch(key)
	if r.flags&recDeleted != 0 {
		r.flags |= recRemade
	}
	l.over.setValue(r, value)
	r.expiry = expiry
	r.flags &^= recDeleted
	l.over.written(r)
}

// touch finds or makes the record of a key, without reading it.
func (l *Lane) touch(key []byte) *record {
	o := l.overlay()
	hash := hashKey(key)
	if r := o.find(hash, key); r != nil {
		return r
	}
	return o.add(hash, key)
}

// Delete removes an entry; one that is not there is none.
func (l *Lane) Delete(e Entry) error {
	key, err := l.encode(&e)
	if err != nil {
		return err
	}
	l.remove(l.touch(key))
	return nil
}

func (l *Lane) remove(r *record) {
	r.flags |= recDeleted
	r.expiry = 0
	l.over.written(r)
}

// Reset forgets what the lane has read, written and fired.
func (l *Lane) Reset() {
	if l.over != nil {
		l.over.reset()
	}
	l.passed = 0
	l.timers.reset(l.from, l.to)
}

// HoldWatermark lets event-time timers of this lane be due up to a time in milliseconds, instead of the batch's watermark,
// until another call; Reset does not change it.
func (l *Lane) HoldWatermark(ms int64) { l.held = &ms }

// Held is the memory of the lane's overlay in bytes.
func (l *Lane) Held() int64 {
	if l.over == nil {
		return 0
	}
	return l.over.held()
}

// effective reports whether what a record writes goes into the changelog of a batch with time now.
func (r *record) effective(now int64) bool {
	if r.flags&recWritten == 0 {
		return false
	}
	if r.flags&recForced != 0 && r.flags&recDeleted != 0 || r.flags&recRead == 0 {
		return true
	}
	there := r.flags&recBaseFound != 0 && !expired(r.baseExpiry, now)
	if r.flags&recDeleted != 0 {
		return there
	}
	return !there || r.baseExpiry != r.expiry || !bytes.Equal(r.base, r.value)
}
