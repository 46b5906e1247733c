package delta

import (
	"iter"
	"slices"
	"strings"
)

// sorted is a map in byte order of its keys that is never changed: with returns another one that shares most of the memory.
// Changes are kept in a small overlay that is merged into the base once it grows, so that a change of one key costs about the
// square root of the number of keys.
type sorted[V any] struct {
	base, over []item[V]
	n          int
}

type item[V any] struct {
	key   string
	value V
	gone  bool // in the overlay: the key is not there any more
}

// minOverlay is the size up to which an overlay is never merged.
const minOverlay = 64

func (s sorted[V]) len() int { return s.n }

func find[V any](items []item[V], key string) (int, bool) {
	return slices.BinarySearchFunc(items, key, func(i item[V], k string) int { return strings.Compare(i.key, k) })
}

func (s sorted[V]) get(key string) (v V, ok bool) {
	if i, found := find(s.over, key); found {
		return s.over[i].value, !s.over[i].gone
	}
	if i, found := find(s.base, key); found {
		return s.base[i].value, true
	}
	return v, false
}

// with returns the map after the changes, of which the last one of a key counts. It may reorder changes.
func (s sorted[V]) with(changes []item[V]) sorted[V] {
	if len(changes) == 0 {
		return s
	}
	slices.SortStableFunc(changes, func(a, b item[V]) int { return strings.Compare(a.key, b.key) })
	last := changes[:0]
	for i, c := range changes {
		if i+1 < len(changes) && changes[i+1].key == c.key {
			continue
		}
		last = append(last, c)
	}
	n := s.n
	for _, c := range last {
		_, there := s.get(c.key)
		switch {
		case there && c.gone:
			n--
		case !there && !c.gone:
			n++
		}
	}
	out := sorted[V]{base: s.base, over: merge(s.over, last, true), n: n}
	if size := len(out.over); size > minOverlay && size > len(s.base)/size {
		out.base, out.over = merge(s.base, out.over, false), nil
	}
	return out
}

// only returns the map of those that are to be kept.
func (s sorted[V]) only(keep func(V) bool) sorted[V] {
	var out []item[V]
	for key, value := range s.all() {
		if keep(value) {
			out = append(out, item[V]{key: key, value: value})
		}
	}
	return sorted[V]{base: out, n: len(out)}
}

// merge lays newer over older; keepGone keeps the marks of what is gone.
func merge[V any](older, newer []item[V], keepGone bool) []item[V] {
	out := make([]item[V], 0, len(older)+len(newer))
	for len(older) > 0 || len(newer) > 0 {
		switch {
		case len(newer) == 0 || len(older) > 0 && older[0].key < newer[0].key:
			out, older = append(out, older[0]), older[1:]
			continue
		case len(older) > 0 && older[0].key == newer[0].key:
			older = older[1:]
		}
		if keepGone || !newer[0].gone {
			out = append(out, newer[0])
		}
		newer = newer[1:]
	}
	return out
}

// all yields keys and values in byte order of the keys.
func (s sorted[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		base, over := s.base, s.over
		for len(base) > 0 || len(over) > 0 {
			var next item[V]
			if len(over) == 0 || len(base) > 0 && base[0].key < over[0].key {
				next, base = base[0], base[1:]
			} else {
				if len(base) > 0 && base[0].key == over[0].key {
					base = base[1:]
				}
				next, over = over[0], over[1:]
			}
			if !next.gone && !yield(next.key, next.value) {
				return
			}
		}
	}
}
