package statestore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/statestore"
	"github.com/wasmill/wasmill/statestore/mem"
)

func benchStore(b *testing.B, cache int64) *statestore.Store {
	b.Helper()
	s, err := statestore.Open(b.Context(), statestore.Config{
		Files: faulty.New().Process(), Dir: "/c/state", Query: query, Backend: mem.Open, BackendName: "mem", CacheBytes: cache,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func benchBatch(b *testing.B, s *statestore.Store, n int64, run func(l *statestore.Lane)) {
	txn, err := s.Begin(b.Context(), statestore.BatchInfo{Batch: n, Lanes: 1, Stages: oneStage})
	if err != nil {
		b.Fatal(err)
	}
	defer txn.Close()
	run(txn.Lane(0, 0))
	if _, err := txn.Sum(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := s.Seal(b.Context(), txn); err != nil {
		b.Fatal(err)
	}
}

func benchEntry(i int, buf []byte) statestore.Entry {
	buf = fmt.Appendf(buf[:0], "customer-%06d", i)
	return statestore.Entry{Group: uint8(i % 64), Key: buf, Sub: binary.BigEndian.AppendUint64(nil, uint64(i))}
}

// A get, the batch's own writes and reads included.
func BenchmarkGet(b *testing.B) {
	const keys = 10_000
	entries := make([]statestore.Entry, keys)
	for i := range entries {
		entries[i] = benchEntry(i, nil)
	}
	value := make([]byte, 40)
	fill := func(l *statestore.Lane) {
		for _, e := range entries {
			_ = l.Put(e, value, 0)
		}
	}
	for _, from := range []string{"overlay", "cache", "backend"} {
		b.Run(from, func(b *testing.B) {
			cache := int64(64 << 20)
			if from == "backend" {
				cache = -1
			}
			s := benchStore(b, cache)
			benchBatch(b, s, 0, fill)
			benchBatch(b, s, 1, func(l *statestore.Lane) {
				for _, e := range entries {
					_, _, _ = l.Get(e)
				}
			})
			txn, err := s.Begin(b.Context(), statestore.BatchInfo{Batch: 2, Lanes: 1, Stages: oneStage})
			if err != nil {
				b.Fatal(err)
			}
			defer txn.Close()
			l := txn.Lane(0, 0)
			if from == "overlay" {
				fill(l)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%keys == 0 && from != "overlay" {
					l.Reset()
				}
				if _, found, err := l.Get(entries[i%keys]); !found || err != nil {
					b.Fatal(found, err)
				}
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	const keys = 10_000
	entries := make([]statestore.Entry, keys)
	for i := range entries {
		entries[i] = benchEntry(i, nil)
	}
	value := make([]byte, 40)
	s := benchStore(b, 0)
	txn, err := s.Begin(b.Context(), statestore.BatchInfo{Lanes: 1, Stages: oneStage})
	if err != nil {
		b.Fatal(err)
	}
	defer txn.Close()
	l := txn.Lane(0, 0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%keys == 0 {
			l.Reset()
		}
		if err := l.Put(entries[i%keys], value, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// A scan of one key's entries, of the batch's own and of older ones, by how many there are.
func BenchmarkScan(b *testing.B) {
	for _, entries := range []int{0, 4, 100} {
		for _, from := range []string{"overlay", "backend"} {
			b.Run(fmt.Sprintf("%s/%d", from, entries), func(b *testing.B) {
				s := benchStore(b, 0)
				const keys = 1000
				fill := func(l *statestore.Lane) {
					for i := range keys {
						for j := range entries {
							_ = l.Put(statestore.Entry{Key: fmt.Append(nil, "key", i), Sub: fmt.Append(nil, j)}, []byte("value"), 0)
						}
					}
					_ = l.Put(statestore.Entry{Key: []byte("other")}, nil, 0)
				}
				if from == "backend" {
					benchBatch(b, s, 0, fill)
				}
				txn, err := s.Begin(b.Context(), statestore.BatchInfo{Batch: 1, Lanes: 1, Stages: oneStage})
				if err != nil {
					b.Fatal(err)
				}
				defer txn.Close()
				l := txn.Lane(0, 0)
				if from == "overlay" {
					fill(l)
				}
				names := make([][]byte, keys)
				for i := range names {
					names[i] = fmt.Append(nil, "key", i)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					n := 0
					if err := l.Scan(statestore.Entry{Key: names[i%keys]}, nil, false, func([]byte, []byte) bool { n++; return true }); err != nil || n != entries {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
}

// discarding is a backend that takes time for nothing.
type discarding struct{ statestore.Backend }

func (discarding) Apply(context.Context, statestore.Marker, iter.Seq2[statestore.Change, error]) error {
	return nil
}

// A whole batch: read, change and put a hundred thousand entries of ten thousand keys, sum up, write, seal.
func BenchmarkBatch(b *testing.B) {
	entries := make([]statestore.Entry, 10_000)
	for i := range entries {
		entries[i] = benchEntry(i, nil)
	}
	cfg := config(faulty.New().Process(), func(ctx context.Context, c statestore.BackendConfig) (statestore.Backend, error) {
		m, err := mem.Open(ctx, c)
		return discarding{m}, err
	})
	s, err := statestore.Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	n := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		txn, err := s.Begin(b.Context(), statestore.BatchInfo{Batch: n, Lanes: 1, Stages: oneStage})
		if err != nil {
			b.Fatal(err)
		}
		l := txn.Lane(0, 0)
		var value [40]byte
		for i := range 100_000 {
			e := entries[i*7%len(entries)]
			old, _, _ := l.Get(e)
			copy(value[:], old)
			binary.LittleEndian.PutUint64(value[:], binary.LittleEndian.Uint64(value[:])+1)
			_ = l.Put(e, value[:], 0)
		}
		if _, err := txn.Sum(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := txn.Write(b.Context(), fmt.Sprintf("%08x", n)); err != nil {
			b.Fatal(err)
		}
		if err := s.Seal(b.Context(), txn); err != nil {
			b.Fatal(err)
		}
		txn.Close()
		n++
	}
}

// Timers that are due: found in their order and fired.
func BenchmarkDue(b *testing.B) {
	const timers = 10_000
	s := benchStore(b, 0)
	n := int64(0)
	for b.Loop() {
		benchBatch(b, s, n, func(l *statestore.Lane) {
			for i := range timers {
				_ = l.SetTimer(statestore.Timer{AtMS: n, Group: uint8(i % 64), Key: fmt.Append(nil, "customer-", i)})
			}
		})
		txn, err := s.Begin(b.Context(), statestore.BatchInfo{Batch: n + 1, WatermarkMS: n + 1, Lanes: 1, Stages: oneStage})
		if err != nil {
			b.Fatal(err)
		}
		fired := 0
		if _, err := txn.Lane(0, 0).Due(timers, func(*statestore.Timer) error { fired++; return nil }); err != nil || fired != timers {
			b.Fatal(fired, err)
		}
		if _, err := txn.Sum(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := s.Seal(b.Context(), txn); err != nil {
			b.Fatal(err)
		}
		txn.Close()
		n += 2
	}
}
