// Package mem is a backend of the state store in memory, for tests and simulations. It passes the same conformance suite
// as the one on disk.
//
// A Disk keeps what was applied over closing and opening, as a disk does over the end of a process. The package must not
// know what keys and values mean, nor be linked into the program.
package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/wasmill/wasmill/statestore"
)

// Disk is what stays when a backend is closed. It may be open once at a time.
type Disk struct {
	mu       sync.Mutex
	versions []version // ascending
	oldest   int64
	open     bool
	query    string
}

// version is the state as of one batch: a tree that is never changed.
type version struct {
	marker statestore.Marker
	root   *node
}

// New returns an empty disk.
func New() *Disk { return &Disk{oldest: -1} }

// Clone returns a disk with the same content, of which nothing is open.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{versions: slices.Clone(d.versions), oldest: d.oldest, query: d.query}
}

// Rewind takes away the batches above one, as a crash does with what was not durable.
func (d *Disk) Rewind(batch int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.versions = slices.DeleteFunc(d.versions, func(v version) bool { return v.marker.Batch > batch })
}

// Open is a statestore.Opener.
func (d *Disk) Open(_ context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open {
		return nil, errors.New("open the state in memory: it is open already")
	}
	if cfg.Fresh {
		d.versions, d.oldest, d.query = nil, -1, ""
	}
	if d.query != "" && d.query != cfg.Query {
		return nil, fmt.Errorf("the state in memory belongs to query %s, not %s: %w", d.query, cfg.Query, statestore.ErrDamaged)
	}
	d.open, d.query = true, cfg.Query
	return &backend{disk: d, point: cfg.Point}, nil
}

// Open opens a new backend in memory that nobody else sees. It is a statestore.Opener.
func Open(ctx context.Context, cfg statestore.BackendConfig) (statestore.Backend, error) {
	return New().Open(ctx, cfg)
}

type backend struct {
	disk   *Disk
	point  func(string)
	closed bool
}

func (b *backend) at(asOf int64) version {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	for _, v := range slices.Backward(b.disk.versions) {
		if v.marker.Batch <= asOf {
			return v
		}
	}
	return version{marker: statestore.Marker{Batch: -1}}
}

func (b *backend) Marker(asOf int64) (statestore.Marker, error) {
	m := b.at(asOf).marker
	m.Meta = bytes.Clone(m.Meta)
	return m, nil
}

func (b *backend) Oldest() int64 {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	return b.disk.oldest
}

func (b *backend) Durable() int64 {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	if n := len(b.disk.versions); n > 0 {
		return b.disk.versions[n-1].marker.Batch
	}
	return -1
}

func (b *backend) Begun() int64 { return -1 } // what was begun is not seen until it is done

func (b *backend) Flush(context.Context) error { return nil }

func (b *backend) Get(asOf int64, key, dst []byte) ([]byte, bool, error) {
	for n := b.at(asOf).root; n != nil; {
		switch c := bytes.Compare(key, n.key); {
		case c == 0:
			return append(dst, n.value...), true, nil
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return dst, false, nil
}

// chunk is how many changes come between two points.
const chunk = 1000

func (b *backend) Apply(ctx context.Context, m statestore.Marker, changes iter.Seq2[statestore.Change, error]) error {
	last := b.at(1<<63 - 1)
	if m.Batch <= last.marker.Batch {
		return fmt.Errorf("batch %d after batch %d", m.Batch, last.marker.Batch)
	}
	root, n := last.root, 0
	var before []byte
	for c, err := range changes {
		if err == nil && n > 0 && bytes.Compare(c.Key, before) <= 0 {
			err = fmt.Errorf("key %x after key %x", c.Key, before)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if n%chunk == 0 {
			b.point("apply-chunk")
		}
		n++
		before = append(before[:0], c.Key...)
		if c.Value == nil {
			root = root.without(c.Key)
		} else {
			root = root.with(bytes.Clone(c.Key), bytes.Clone(c.Value))
		}
	}
	b.point("apply-marker")
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	m.Meta = bytes.Clone(m.Meta)
	b.disk.versions = append(b.disk.versions, version{m, root})
	return nil
}

func (b *backend) Discard(oldest int64) error {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	if oldest <= b.disk.oldest {
		return nil
	}
	b.disk.oldest = oldest
	first := 0 // the newest version at or below oldest stays
	for i, v := range b.disk.versions {
		if v.marker.Batch <= oldest {
			first = i
		}
	}
	b.disk.versions = slices.Delete(b.disk.versions, 0, first)
	return nil
}

func (b *backend) Stats() statestore.BackendStats {
	root := b.at(1<<63 - 1).root
	if root == nil {
		return statestore.BackendStats{}
	}
	return statestore.BackendStats{Versions: root.count, Bytes: root.bytes, Memory: root.bytes}
}

func (b *backend) Close() error {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	if !b.closed {
		b.closed, b.disk.open = true, false
	}
	return nil
}
