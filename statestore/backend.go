package statestore

import (
	"context"
	"iter"

	"github.com/wasmill/wasmill/checkpoint/durable"
)

// Backend keeps key-value pairs as of the end of each retained batch. It holds sealed batches only and knows nothing of
// what keys and values mean. Two packages implement it: statestore/badger, and statestore/mem for tests; both pass
// statestoretest.
//
// A batch is named by its number; -1 is the state before any batch and is empty. Reads name the batch as of whose end
// they read (asOf); between two applied batches they see the older one. All methods but Close may be called at the same
// time from several goroutines, except that only one Apply runs at a time. Reads go on during an Apply and never see any
// part of a batch above their asOf, not even of an Apply that was torn by the death of the process.
//
// Keys of the store begin with a byte from 0x10 on; a backend may keep keys of its own below, which no cursor shows.
//
// The store never reads below Oldest or while it reads moves Oldest above; a backend need not guard against it.
type Backend interface {
	// Marker is that of the newest batch at or below asOf that was applied completely; Batch is -1 when there is none.
	// The bytes belong to the caller.
	Marker(asOf int64) (Marker, error)
	// Oldest is the oldest batch as of whose end can still be read: -1 as long as nothing was discarded. It is kept over
	// closing and opening, and it never goes back.
	Oldest() int64
	// Get appends the value of key to dst and returns it. The key is the caller's and is not kept.
	Get(asOf int64, key, dst []byte) (value []byte, found bool, err error)
	// Cursor walks the keys of r, downwards when descending is set. It starts nowhere: call Seek first. It is used by one
	// goroutine and must be closed before the backend is.
	Cursor(asOf int64, r Range, descending bool) (Cursor, error)
	// Durable is the newest batch that is still here when the machine stops now. Later ones must be applied again from their
	// changelogs. For a backend without a disk it is that of the last marker.
	Durable() int64
	// Begun is a batch above the last marker of which an Apply, that did not end, may have left a part here; -1 for none. The
	// next Apply must be of that batch.
	Begun() int64
	// Flush asks for Durable to catch up with the last marker soon. It does not wait.
	Flush(ctx context.Context) error
	// Apply writes all changes of batch m.Batch, which is above the last marker's, and then its marker, and returns when
	// reads see all of it. Keys come in ascending order, each once. The bytes of a change are valid, and unchanged, until
	// Apply returns. When changes gives an error, Apply returns it and the marker stays as it was; so it does when the
	// process dies. The same changes are then applied again in full, byte for byte the same.
	//
	// It calls BackendConfig.Point with "apply-chunk" before each part it writes and "apply-marker" before the one with
	// the marker.
	Apply(ctx context.Context, m Marker, changes iter.Seq2[Change, error]) error
	// Discard says that nothing is read as of a batch below oldest any more. oldest is never above the last marker.
	Discard(oldest int64) error
	Stats() BackendStats
	// Close leaves Durable at the last marker when it returns nil. It may be called more than once.
	Close() error
}

// Marker says which batch a backend has, and carries what the store must know of it.
type Marker struct {
	Batch int64
	Meta  []byte
}

// Change is one pair to write, or one key to delete when Value is nil. A value is never nil or empty otherwise.
type Change struct {
	Key, Value []byte
}

// Range is the keys from Lower on and below Upper. An empty Upper is no bound.
type Range struct {
	Lower, Upper []byte
}

// Cursor walks keys in order. Key and Value are valid until the next call on the cursor and must not be written to.
type Cursor interface {
	// Seek moves to the first key at or above key; a descending cursor to the last key below key (for which an empty key
	// is the end of everything). Keys outside the range are never stood on.
	Seek(key []byte)
	Next()
	// Valid reports whether the cursor stands on a pair. When it does not, Err says whether that is the end or trouble.
	Valid() bool
	Key() []byte
	Value() ([]byte, error)
	Err() error
	Close() error
}

// BackendStats is what a backend knows of itself without reading.
type BackendStats struct {
	// Versions is about how many pairs are stored, those of indexes included. One that keeps what was replaced and deleted until
	// it is compacted counts that too, so it is no number of keys.
	Versions int64
	Bytes    int64 // on disk, or in memory for one without a disk
	Memory   int64 // bytes of caches and tables in memory, as far as known
}

// BackendConfig is what a backend is opened with.
type BackendConfig struct {
	// Files is the file system of the job. A backend that cannot use it (Badger maps its files) takes Dir from the
	// operating system.
	Files durable.Files
	// Dir is the backend's own folder, "<checkpoint>/state/<name>"; the backend makes it.
	Dir string
	// Query is the job's identity. A folder of another one is refused.
	Query string
	// Fresh takes away what is in the folder first.
	Fresh bool
	// Point is told of named points of Apply, for tests that end the process there. Never nil.
	Point func(name string)
	// Warning is told of trouble that does not end anything. Never nil.
	Warning func(op string, err error)
}

// Opener opens a backend. A folder that cannot be read as what it should be is an error that wraps ErrDamaged, so that
// the caller can build a new one.
type Opener func(ctx context.Context, cfg BackendConfig) (Backend, error)
