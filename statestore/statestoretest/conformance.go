// Package statestoretest is the conformance suite of the backends of the state store.
//
// What statestore.Backend promises is checked here against maps; how fast a backend is, and how it survives the death of
// its process, is for its own tests.
package statestoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/statestore"
)

// Query is the identity that the suite opens backends with.
const Query = "6f2ad1b0-0000-4000-8000-00000000000a"

// Run runs the suite. fresh returns an opener of an empty backend; opening it again after Close finds what was applied.
func Run(t *testing.T, fresh func(t *testing.T) statestore.Opener) {
	for name, test := range map[string]func(*testing.T, *disk){
		"empty": testEmpty, "model": testModel, "failed apply": testFailedApply, "reads during an apply": testReadsDuringApply,
		"discard": testDiscard, "buffers": testBuffers, "points": testPoints, "concurrent": testConcurrent, "other query": testOtherQuery,
		"large values": testLargeValues,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, &disk{opener: fresh(t), dir: t.TempDir()})
		})
	}
}

// disk opens the backend of one test again and again.
type disk struct {
	opener statestore.Opener
	dir    string
	points []string
}

func (d *disk) open(t *testing.T) statestore.Backend {
	t.Helper()
	b, err := d.opener(t.Context(), d.config(Query))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func (d *disk) config(query string) statestore.BackendConfig {
	return statestore.BackendConfig{
		Files: durable.OS(), Dir: d.dir, Query: query,
		Point: func(name string) { d.points = append(d.points, name) }, Warning: func(string, error) {},
	}
}

func (d *disk) reopen(t *testing.T, b statestore.Backend) statestore.Backend {
	t.Helper()
	must(t, b.Close())
	return d.open(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// each yields a sorted map's changes; "" deletes.
func each(m map[string]string) iter.Seq2[statestore.Change, error] {
	return func(yield func(statestore.Change, error) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			c := statestore.Change{Key: []byte(k)}
			if v := m[k]; v != "" {
				c.Value = []byte(v)
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func apply(t *testing.T, b statestore.Backend, batch int64, changes map[string]string) {
	t.Helper()
	must(t, b.Apply(t.Context(), marker(batch), each(changes)))
}

func marker(batch int64) statestore.Marker {
	return statestore.Marker{Batch: batch, Meta: fmt.Appendf(nil, `{"batch":%d}`, batch)}
}

func testEmpty(t *testing.T, d *disk) {
	b := d.open(t)
	for range 2 {
		m, err := b.Marker(1000)
		if m.Batch != -1 || err != nil || b.Oldest() != -1 || b.Durable() != -1 {
			t.Errorf("marker %+v, %v; oldest %d, durable %d", m, err, b.Oldest(), b.Durable())
		}
		compare(t, b, -1, nil)
		compare(t, b, 7, nil)
		b = d.reopen(t, b)
	}
}

// compare checks everything that can be read as of a batch against what should be there.
func compare(t *testing.T, b statestore.Backend, asOf int64, want map[string]string) {
	t.Helper()
	for k, v := range want {
		got, found, err := b.Get(asOf, []byte(k), []byte("dst"))
		if err != nil || !found || string(got) != "dst"+v {
			t.Fatalf("as of %d: get %q: %q %v %v, want %q", asOf, k, got, found, err, v)
		}
	}
	keys := slices.Sorted(maps.Keys(want))
	compareWalk(t, b, asOf, statestore.Range{}, nil, want, keys, false)
	slices.Reverse(keys)
	compareWalk(t, b, asOf, statestore.Range{}, nil, want, keys, true)
}

func compareWalk(t *testing.T, b statestore.Backend, asOf int64, r statestore.Range, seek []byte, want map[string]string, keys []string, descending bool) {
	t.Helper()
	c, err := b.Cursor(asOf, r, descending)
	must(t, err)
	walk(t, c, seek, want, keys)
	must(t, c.Close())
}

func walk(t *testing.T, c statestore.Cursor, seek []byte, want map[string]string, keys []string) {
	t.Helper()
	n := 0
	for c.Seek(seek); c.Valid(); c.Next() {
		v, err := c.Value()
		must(t, err)
		if n == len(keys) || string(c.Key()) != keys[n] || string(v) != want[keys[n]] {
			t.Fatalf("walk from %q: %d: %q=%q, want %q", seek, n, c.Key(), v, keys)
		}
		n++
	}
	must(t, c.Err())
	if n != len(keys) {
		t.Fatalf("walk from %q: %d of %d keys", seek, n, len(keys))
	}
}

// random keys are few, share prefixes, and hold the bytes that order gets wrong.
func randomKey(r *rand.Rand) string {
	n := 1 + r.IntN(4)
	b := []byte{0x10}
	for range n {
		b = append(b, []byte{0, 1, 'a', 'b', 0xfe, 0xff}[r.IntN(6)])
	}
	return string(b)
}

func testModel(t *testing.T, d *disk) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			model(t, d, rand.New(rand.NewPCG(seed, 1)), int64(seed)*1000)
		})
	}
}

// model applies random batches and compares every retained one after each.
func model(t *testing.T, d *disk, r *rand.Rand, first int64) {
	b := d.open(t)
	m, err := b.Marker(1 << 60)
	must(t, err)
	if m.Batch >= first {
		t.Fatalf("the backend has batch %d", m.Batch)
	}
	state := contents(t, b)
	type version struct {
		batch int64
		state map[string]string
	}
	var versions []version
	batch := first
	for range 25 {
		batch += 1 + int64(r.IntN(3))
		changes := map[string]string{}
		for range r.IntN(60) {
			changes[randomKey(r)] = []string{"", "x", "longer value"}[r.IntN(3)] // "" deletes, also what is not there
		}
		apply(t, b, batch, changes)
		state = maps.Clone(state)
		for k, v := range changes {
			if v == "" {
				delete(state, k)
			} else {
				state[k] = v
			}
		}
		versions = append(versions, version{batch, state})
		if r.IntN(5) == 0 {
			b = d.reopen(t, b)
			if b.Durable() != batch {
				t.Fatalf("closed cleanly at %d, durable %d", batch, b.Durable())
			}
		}
		if r.IntN(6) == 0 {
			i := r.IntN(len(versions))
			must(t, b.Discard(versions[i].batch))
			versions = versions[i:]
		}
		v := versions[r.IntN(len(versions))]
		compare(t, b, v.batch, v.state)
		randomWalks(t, b, v.batch, v.state, r)
		m, err := b.Marker(v.batch)
		must(t, err)
		if m.Batch != v.batch || string(m.Meta) != fmt.Sprintf(`{"batch":%d}`, v.batch) {
			t.Fatalf("marker %+v as of %d", m, v.batch)
		}
	}
}

func contents(t *testing.T, b statestore.Backend) map[string]string {
	out := map[string]string{}
	c, err := b.Cursor(1<<60, statestore.Range{}, false)
	must(t, err)
	for c.Seek(nil); c.Valid(); c.Next() {
		v, err := c.Value()
		must(t, err)
		out[string(c.Key())] = string(v)
	}
	must(t, c.Err())
	must(t, c.Close())
	return out
}

// randomWalks compares walks in random ranges, several on one cursor.
func randomWalks(t *testing.T, b statestore.Backend, asOf int64, state map[string]string, r *rand.Rand) {
	t.Helper()
	for range 6 {
		bounds := statestore.Range{Lower: []byte(randomKey(r)), Upper: []byte(randomKey(r))}
		if r.IntN(3) == 0 {
			bounds.Upper = nil
		}
		descending := r.IntN(2) == 0
		c, err := b.Cursor(asOf, bounds, descending)
		must(t, err)
		for range 3 {
			seek := []byte(randomKey(r))
			if r.IntN(4) == 0 {
				seek = nil
			}
			var keys []string
			for _, k := range slices.Sorted(maps.Keys(state)) {
				inside := k >= string(bounds.Lower) && (bounds.Upper == nil || k < string(bounds.Upper))
				ahead := k >= string(seek)
				if descending {
					ahead = len(seek) == 0 || k < string(seek)
				}
				if inside && ahead {
					keys = append(keys, k)
				}
			}
			if descending {
				slices.Reverse(keys)
			}
			walk(t, c, seek, state, keys)
		}
		must(t, c.Close())
	}
}

func testFailedApply(t *testing.T, d *disk) {
	b := d.open(t)
	apply(t, b, 3, map[string]string{"\x10a": "1", "\x10b": "1"})
	before := map[string]string{"\x10a": "1", "\x10b": "1"}
	after := map[string]string{"\x10b": "1"}
	changes := map[string]string{"\x10a": ""}
	for i := range 3000 {
		k := fmt.Sprintf("\x10k%05d", i)
		changes[k], after[k] = strings.Repeat("v", 50), strings.Repeat("v", 50)
	}
	trouble := errors.New("trouble")
	for _, at := range []int{0, 1, 2999} {
		err := b.Apply(t.Context(), marker(4), func(yield func(statestore.Change, error) bool) {
			n := 0
			for c := range each(changes) {
				if n++; n > at {
					yield(statestore.Change{}, trouble)
					return
				}
				if !yield(c, nil) {
					return
				}
			}
		})
		if !errors.Is(err, trouble) {
			t.Fatalf("apply: %v", err)
		}
		if m, err := b.Marker(1 << 60); m.Batch != 3 || err != nil {
			t.Fatalf("marker %+v, %v", m, err)
		}
		compare(t, b, 3, before)
		if at == 1 {
			b = d.reopen(t, b)
			compare(t, b, 3, before)
		}
	}
	apply(t, b, 4, changes)
	compare(t, b, 3, before)
	compare(t, b, 4, after)
	b = d.reopen(t, b)
	compare(t, b, 3, before)
	compare(t, b, 4, after)
}

func testReadsDuringApply(t *testing.T, d *disk) {
	b := d.open(t)
	before := map[string]string{"\x10a": "1", "\x10b": "1", "\x10c": "1"}
	apply(t, b, 0, before)
	open, err := b.Cursor(0, statestore.Range{}, false)
	must(t, err)
	open.Seek(nil)
	must(t, b.Apply(t.Context(), marker(1), func(yield func(statestore.Change, error) bool) {
		for c := range each(map[string]string{"\x10a": "2", "\x10b": "", "\x10c": "2", "\x10d": "2"}) {
			if !yield(c, nil) {
				return
			}
			compare(t, b, 0, before)
		}
	}))
	walk(t, open, nil, before, []string{"\x10a", "\x10b", "\x10c"})
	must(t, open.Close())
	compare(t, b, 0, before)
	compare(t, b, 1, map[string]string{"\x10a": "2", "\x10c": "2", "\x10d": "2"})
}

func testDiscard(t *testing.T, d *disk) {
	b := d.open(t)
	states := map[int64]map[string]string{}
	for i := range int64(10) {
		states[i] = map[string]string{"\x10a": fmt.Sprint(i), fmt.Sprintf("\x10k%d", i): "x"}
		apply(t, b, i, map[string]string{"\x10a": fmt.Sprint(i), fmt.Sprintf("\x10k%d", i): "x", fmt.Sprintf("\x10k%d", i-1): ""})
	}
	must(t, b.Discard(4))
	must(t, b.Discard(2))
	for range 2 {
		if b.Oldest() != 4 {
			t.Errorf("oldest %d", b.Oldest())
		}
		for i := int64(4); i < 10; i++ {
			compare(t, b, i, states[i])
		}
		b = d.reopen(t, b)
	}
	must(t, b.Discard(9))
	apply(t, b, 10, map[string]string{"\x10a": ""})
	compare(t, b, 9, states[9])
	compare(t, b, 10, map[string]string{"\x10k9": "x"})
	if b.Oldest() != 9 {
		t.Errorf("oldest %d", b.Oldest())
	}
}

func testBuffers(t *testing.T, d *disk) {
	b := d.open(t)
	key, value, meta := []byte("\x10key"), []byte("value"), []byte("meta")
	must(t, b.Apply(t.Context(), statestore.Marker{Batch: 0, Meta: meta}, func(yield func(statestore.Change, error) bool) {
		yield(statestore.Change{Key: key, Value: value}, nil)
	}))
	clear(key)
	clear(value)
	clear(meta)
	compare(t, b, 0, map[string]string{"\x10key": "value"})
	m, err := b.Marker(0)
	must(t, err)
	if string(m.Meta) != "meta" {
		t.Errorf("meta %q", m.Meta)
	}
	clear(m.Meta)
	if m, _ := b.Marker(0); string(m.Meta) != "meta" {
		t.Errorf("meta %q", m.Meta)
	}
	got, _, err := b.Get(0, []byte("\x10key"), make([]byte, 0, 100))
	must(t, err)
	clear(got)
	lower := []byte("\x10")
	c, err := b.Cursor(0, statestore.Range{Lower: lower}, false)
	must(t, err)
	lower[0] = 0xff // the bounds are the caller's
	walk(t, c, nil, map[string]string{"\x10key": "value"}, []string{"\x10key"})
	must(t, c.Close())
}

func testPoints(t *testing.T, d *disk) {
	b := d.open(t)
	for i := range 2 {
		d.points = nil
		changes := map[string]string{}
		for k := range 5000 * i {
			changes[fmt.Sprintf("\x10%06d", k)] = "v"
		}
		apply(t, b, int64(i), changes)
		n := len(d.points)
		if n == 0 || d.points[n-1] != "apply-marker" || slices.Index(d.points, "apply-marker") != n-1 || (i == 1 && n < 2) {
			t.Errorf("%d changes: points %v", len(changes), d.points)
		}
	}
	changes := map[string]string{}
	for k := range 5000 {
		changes[fmt.Sprintf("\x10%06d", k)] = "v"
	}
	compare(t, b, 1, changes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Apply(ctx, marker(2), each(changes)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled apply: %v", err)
	}
}

// testConcurrent reads as of sealed batches from several goroutines while others are applied.
func testConcurrent(t *testing.T, d *disk) {
	b := d.open(t)
	const keys = 50
	at := func(batch int64) map[string]string {
		m := map[string]string{}
		for k := range keys {
			m[fmt.Sprintf("\x10%03d", k)] = fmt.Sprintf("%d of %d", batch, k)
		}
		return m
	}
	apply(t, b, 0, at(0))
	stop := make(chan struct{})
	done := make(chan error, 3)
	for i := range 3 {
		go func() { done <- readAll(b, i%2 == 0, stop) }()
	}
	for batch := range int64(40) {
		apply(t, b, batch+1, at(batch+1))
	}
	close(stop)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	compare(t, b, 40, at(40))
}

// readAll reads the newest batch again and again: all of its values must be of that batch.
func readAll(b statestore.Backend, descending bool, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		m, err := b.Marker(1 << 60)
		if err != nil {
			return err
		}
		c, err := b.Cursor(m.Batch, statestore.Range{}, descending)
		if err != nil {
			return err
		}
		n := 0
		for c.Seek(nil); c.Valid(); c.Next() {
			v, err := c.Value()
			if err != nil {
				return err
			}
			if !bytes.HasPrefix(v, fmt.Appendf(nil, "%d of ", m.Batch)) {
				return fmt.Errorf("as of %d: %s", m.Batch, v)
			}
			n++
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil || n != 50 {
			return fmt.Errorf("as of %d: %d keys, %w", m.Batch, n, err)
		}
	}
}

func testOtherQuery(t *testing.T, d *disk) {
	b := d.open(t)
	apply(t, b, 0, map[string]string{"\x10a": "1"})
	must(t, b.Close())
	other, err := d.opener(t.Context(), d.config("another"))
	if err == nil {
		_ = other.Close()
	}
	if !errors.Is(err, statestore.ErrDamaged) {
		t.Errorf("opened by another query: %v", err)
	}
}

func testLargeValues(t *testing.T, d *disk) {
	b := d.open(t)
	state := map[string]string{}
	for i := range 12 {
		state[fmt.Sprintf("\x10%02d", i)] = strings.Repeat(string(rune('a'+i)), statestore.MaxValue+9)
	}
	state["\x10"+strings.Repeat("k", statestore.MaxKey+20)] = "long key"
	apply(t, b, 0, state)
	compare(t, b, 0, state)
	b = d.reopen(t, b)
	compare(t, b, 0, state)
}
