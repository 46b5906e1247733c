package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
)

// none is the batch before the first.
const none = -1

// Keys of this package's own records; keys of the caller begin with another byte.
var (
	markerKey = []byte{0, 'm'} // the newest whole batch, written last
	begunKey  = []byte{0, 'b'} // the newest batch of which anything may be here, written first
	oldestKey = []byte{0, 'o'} // below it versions may be gone
	fillKey   = []byte{0, 'z'} // nobody reads it; it fills a memtable up, so that it is written out
	firstKey  = []byte{0x10}   // no key of the caller is below
)

// Parts that an Apply writes at a time: small, so that reads and the batch that runs are not held up. With the usual
// memtable they are 512 KiB and 2048 entries.
const (
	chunkShare = 8    // of a memtable, in bytes
	entryShare = 2048 // bytes of a memtable to an entry of a part
)

// maxLag is the number of batches that may be applied and not yet in tables: what a start has to load at most.
const maxLag = 400

// arenas is how many memtables there are at most: one that is filled, one that waits, one that becomes a table.
const arenas = 3

// bitDelete is Badger's mark of a deletion in the meta of a written pair.
const bitDelete = 1

type backend struct {
	cfg   statestore.BackendConfig
	files durable.Files
	lock  io.Closer
	db    *badgerdb.DB
	trim  trimmer

	memTable int64

	applied, durable, oldest atomic.Int64
	torn                     int64 // a batch that was written in part, or none

	// write guards what is written: one Apply, Discard or Flush at a time.
	write   sync.Mutex
	pending []pendingOldest
	lag     int                                // batches applied since the memtable was last seen to go to a table
	recent  struct{ keys, bytes atomic.Int64 } // written since then

	closeOnce sync.Once
	closeErr  error
}

// pendingOldest is a call of Discard that a crash could still undo: versions are dropped once the record of it is safe.
type pendingOldest struct {
	oldest, after int64 // after: the newest batch when it was written
}

// version is the version of what batch wrote: the state before any batch is version 0.
func version(batch int64) uint64 { return uint64(batch + 1) }

func (b *backend) damage(err error) error {
	return fmt.Errorf("%w: %s: %w", statestore.ErrDamaged, b.cfg.Dir, err)
}

// guard turns a panic of Badger, which damaged tables can cause, into an error.
func (b *backend) guard(err *error) {
	if p := recover(); p != nil {
		*err = b.damage(fmt.Errorf("read: %v", p))
	}
}

// Get returns the value of key as of a batch.
func (b *backend) Get(asOf int64, key, dst []byte) (value []byte, found bool, err error) {
	defer b.guard(&err)
	b.trim.tick(b)
	return b.get(version(asOf), key, dst)
}

func (b *backend) get(at uint64, key, dst []byte) (value []byte, found bool, err error) {
	txn := b.db.NewTransactionAt(at, false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, fmt.Errorf("read state: %w", err)
	}
	err = item.Value(func(sealed []byte) error {
		v, ok := unseal(key, item.Version(), sealed)
		if !ok {
			return b.damage(fmt.Errorf("the value of key %x does not match its checksum", key))
		}
		dst = append(dst, v...)
		return nil
	})
	return dst, err == nil, err
}

// marker is the record of a batch that is here as a whole.
type marker struct {
	batch int64
	query string
	meta  []byte
}

func (m marker) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.batch))
	dst = binary.AppendUvarint(dst, uint64(len(m.query)))
	return append(append(dst, m.query...), m.meta...)
}

func parseMarker(b []byte) (m marker, ok bool) {
	batch, n := binary.Uvarint(b)
	if n <= 0 || batch > math.MaxInt64 {
		return m, false
	}
	b = b[n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return m, false
	}
	b = b[n:]
	return marker{batch: int64(batch), query: string(b[:size]), meta: b[size:]}, true
}

func (b *backend) readMarker(at uint64) (m marker, found bool, err error) {
	defer b.guard(&err)
	v, found, err := b.get(at, markerKey, nil)
	if err != nil || !found {
		return m, false, err
	}
	m, ok := parseMarker(v)
	if !ok {
		return m, false, b.damage(errors.New("its marker cannot be read"))
	}
	return m, true, nil
}

// readNumber reads the newest value of one of the small records.
func (b *backend) readNumber(key []byte) (n int64, found bool, err error) {
	defer b.guard(&err)
	v, found, err := b.get(math.MaxUint64, key, nil)
	if err != nil || !found {
		return none, false, err
	}
	if len(v) != 8 {
		return none, false, b.damage(fmt.Errorf("record %q cannot be read", key[1:]))
	}
	return int64(binary.BigEndian.Uint64(v)), true, nil
}

// Marker is that of the newest batch at or below asOf.
func (b *backend) Marker(asOf int64) (statestore.Marker, error) {
	m, found, err := b.readMarker(version(asOf))
	if err != nil || !found {
		return statestore.Marker{Batch: none}, err
	}
	return statestore.Marker{Batch: m.batch, Meta: m.meta}, nil
}

// Oldest is the oldest batch as of whose end can be read.
func (b *backend) Oldest() int64 { return b.oldest.Load() }

// room is an error while the disk is too full to write to.
func (b *backend) room() error {
	free, err := b.cfg.Files.Free(b.cfg.Dir)
	if err != nil {
		return fmt.Errorf("free space: %w", err)
	}
	if free < minFree {
		return fmt.Errorf("write state to %s: %d bytes are free, %d are needed: %w", b.cfg.Dir, free, int64(minFree), syscall.ENOSPC)
	}
	return nil
}

// Apply writes a batch: its number, its changes, its marker. It returns when reads see them; Durable says when they
// outlive the process.
func (b *backend) Apply(ctx context.Context, m statestore.Marker, changes iter.Seq2[statestore.Change, error]) error {
	b.write.Lock()
	defer b.write.Unlock()
	if last := b.applied.Load(); m.Batch <= last {
		return fmt.Errorf("apply batch %d: batch %d is applied", m.Batch, last)
	}
	if b.torn != none && b.torn != m.Batch {
		return b.damage(fmt.Errorf("it holds a part of batch %d, which is not the one to apply, %d", b.torn, m.Batch))
	}
	w := b.newWriter(ctx, version(m.Batch))
	b.torn = m.Batch
	w.number(begunKey, m.Batch)
	for c, err := range changes {
		if err != nil {
			w.drop()
			return err
		}
		if err := w.change(c); err != nil {
			return err
		}
	}
	if err := w.send("apply-chunk"); err != nil {
		return err
	}
	w.put(markerKey, marker{batch: m.Batch, query: b.cfg.Query, meta: m.Meta}.append(nil))
	if err := w.send("apply-marker"); err != nil {
		return err
	}
	b.torn = none
	b.applied.Store(m.Batch)
	b.lag++
	b.advance()
	if b.lag < maxLag {
		return nil
	}
	return b.fill(ctx)
}

// Begun is the batch of an Apply that did not end.
func (b *backend) Begun() int64 {
	b.write.Lock()
	defer b.write.Unlock()
	return b.torn
}

// Discard says that no batch below oldest is read any more.
func (b *backend) Discard(oldest int64) error {
	b.write.Lock()
	defer b.write.Unlock()
	// Batches after the marker that changed nothing are not known here.
	if oldest = min(oldest, b.applied.Load()); oldest <= b.oldest.Load() {
		return nil
	}
	// Its own version makes one record of it, whenever it is written: two values of one key and version must never be.
	w := b.newWriter(context.Background(), version(oldest))
	w.number(oldestKey, oldest)
	if err := w.send(""); err != nil {
		return err
	}
	b.oldest.Store(oldest)
	b.pending = append(b.pending, pendingOldest{oldest, b.applied.Load()})
	b.advance()
	return nil
}

// Durable is the newest batch that is here after the process dies at this moment; later ones have to be applied again.
func (b *backend) Durable() int64 {
	if b.write.TryLock() {
		b.advance()
		b.write.Unlock()
	}
	return b.durable.Load()
}

// advance finds out how far tables go. They are written in order, so one with anything of a version holds, with those
// before it, everything below that version.
func (b *backend) advance() {
	top := uint64(0)
	for _, t := range b.db.Tables() {
		top = max(top, t.MaxVersion)
	}
	if top < 2 {
		return
	}
	safe := min(int64(top)-2, b.applied.Load())
	if safe > b.durable.Load() {
		// Badger syncs a new table and the manifest that lists it, but not always the table's name.
		if err := b.files.SyncDir(b.cfg.Dir); err != nil {
			b.cfg.Warning("sync the state's folder", err)
			return
		}
		b.durable.Store(safe)
		b.lag = 0
		b.recent.keys.Store(0)
		b.recent.bytes.Store(0)
	}
	for len(b.pending) > 0 && b.pending[0].after < safe {
		b.db.SetDiscardTs(version(b.pending[0].oldest))
		b.pending = b.pending[1:]
	}
}

// Flush sees to it that what is applied goes to a table soon, and does not wait for that.
func (b *backend) Flush(ctx context.Context) error {
	b.write.Lock()
	defer b.write.Unlock()
	if b.advance(); b.durable.Load() >= b.applied.Load() {
		return nil
	}
	return b.fill(ctx)
}

// fill fills the memtable up, with one pair over and over, until Badger begins a new one. The pair is one version above
// what is applied: when a table has it, the batch before is in tables as a whole.
func (b *backend) fill(ctx context.Context) error {
	b.lag = 0
	before, err := b.logs()
	if err != nil {
		return err
	}
	w := b.newWriter(ctx, version(b.applied.Load()+1))
	pad := make([]byte, b.memTable/chunkShare)
	for written := int64(0); written <= 2*b.memTable; written += int64(len(pad)) {
		w.put(fillKey, pad)
		if err := w.send(""); err != nil {
			return err
		}
		if now, err := b.logs(); err != nil || now != before {
			return err
		}
	}
	return nil
}

// logs is the name of the newest memtable's log; the next one has a higher number.
func (b *backend) logs() (newest string, err error) {
	listed, err := b.files.List(b.cfg.Dir)
	if err != nil {
		return "", fmt.Errorf("list state: %w", err)
	}
	for _, f := range listed {
		if strings.HasSuffix(f.Name, ".mem") {
			newest = max(newest, f.Name)
		}
	}
	return newest, nil
}

// Stats sums up the tables and what is not in them yet.
func (b *backend) Stats() statestore.BackendStats {
	s := statestore.BackendStats{Versions: b.recent.keys.Load(), Bytes: b.recent.bytes.Load()}
	for _, t := range b.db.Tables() {
		s.Versions += int64(t.KeyCount)
		s.Bytes += int64(t.OnDiskSize)
	}
	s.Memory = arenas * b.memTable
	return s
}

// writer collects pairs of one version into chunks.
type writer struct {
	b       *backend
	ctx     context.Context
	version uint64
	loader  *badgerdb.KVLoader
	entries int
	bytes   int
	slab    []byte
	err     error
}

func (b *backend) newWriter(ctx context.Context, version uint64) *writer {
	return &writer{b: b, ctx: ctx, version: version}
}

// change adds one change and writes the chunk when it is full.
func (w *writer) change(c statestore.Change) error {
	if c.Value == nil {
		w.add(&pb.KV{Key: c.Key, Version: w.version, Meta: []byte{bitDelete}})
	} else {
		w.put(c.Key, c.Value)
	}
	if int64(w.entries) < w.b.memTable/entryShare && int64(w.bytes) < w.b.memTable/chunkShare {
		return w.err
	}
	return w.send("apply-chunk")
}

func (w *writer) number(key []byte, n int64) {
	w.put(key, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// put adds a pair. Sealed values share slabs, which are Badger's until the chunk is written and garbage after.
func (w *writer) put(key, value []byte) {
	if need := len(value) + sumSize; cap(w.slab)-len(w.slab) < need {
		w.slab = make([]byte, 0, max(64<<10, need))
	}
	from := len(w.slab)
	w.slab = seal(w.slab, key, w.version, value)
	w.add(&pb.KV{Key: key, Value: w.slab[from:len(w.slab):len(w.slab)], Version: w.version})
}

func (w *writer) add(kv *pb.KV) {
	if w.err != nil {
		return
	}
	if w.loader == nil {
		w.loader = w.b.db.NewKVLoader(1)
	}
	w.err = w.loader.Set(kv)
	w.entries++
	w.bytes += len(kv.Key) + len(kv.Value)
}

// send writes the chunk and waits for it.
func (w *writer) send(point string) error {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil {
		w.err = w.b.room()
	}
	if w.err != nil {
		w.drop()
		return fmt.Errorf("write state: %w", w.err)
	}
	w.b.trim.look(w.b)
	if point != "" {
		w.b.cfg.Point(point)
	}
	w.b.recent.keys.Add(int64(w.entries))
	w.b.recent.bytes.Add(int64(w.bytes))
	loader := w.loader
	w.loader, w.entries, w.bytes = nil, 0, 0
	if loader == nil {
		return nil
	}
	if err := loader.Finish(); err != nil {
		w.err = err
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// drop forgets what was not written.
func (w *writer) drop() { w.loader = nil }
