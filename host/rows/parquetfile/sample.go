package parquetfile

import "github.com/wasmill/wasmill/host/rows"

// A column of strings gets a dictionary when its first values repeat: of so many, at most half differ.
const (
	sampleMost  = 1000
	sampleLeast = 64
)

// sample decides on dictionaries.
type sample struct {
	seen map[string]struct{}
	key  []byte
}

// dictionaries returns one byte for each leaf, 1 where it is to have a dictionary. The slice is valid until the next call.
func (s *sample) dictionaries(from []Rows, leaves []leafColumn) []byte {
	if s.seen == nil {
		s.seen = make(map[string]struct{}, sampleMost)
	}
	s.key = s.key[:0]
	for i := range leaves {
		if leaves[i].typ.Kind == rows.String && s.short(from, &leaves[i]) && s.repeats(from, &leaves[i]) {
			s.key = append(s.key, 1)
		} else {
			s.key = append(s.key, 0)
		}
	}
	return s.key
}

// short reports whether no value is longer than a bound: the bounds of a column with a dictionary are whole values.
func (s *sample) short(from []Rows, leaf *leafColumn) bool {
	if !leaf.flat {
		return eachSlot(from, leaf, func(v *rows.Vector, slot int) bool { return v.Ends[slot+1]-v.Ends[slot] <= maxBound })
	}
	for _, r := range from {
		ends := r.Table.Column(leaf.path[0]).Ends
		if r.Index == nil {
			for i := range r.Table.Len() {
				if ends[i+1]-ends[i] > maxBound {
					return false
				}
			}
			continue
		}
		for _, i := range r.Index {
			if ends[i+1]-ends[i] > maxBound {
				return false
			}
		}
	}
	return true
}

func (s *sample) repeats(from []Rows, leaf *leafColumn) bool {
	clear(s.seen)
	n := 0
	all := eachSlot(from, leaf, func(v *rows.Vector, slot int) bool {
		if n == sampleMost {
			return false
		}
		n++
		if b := v.Bytes(slot); !s.has(b) {
			s.seen[string(b)] = struct{}{}
		}
		return 2*len(s.seen) <= sampleMost
	})
	return (all || n == sampleMost) && n >= sampleLeast && 2*len(s.seen) <= n
}

func (s *sample) has(b []byte) bool {
	_, ok := s.seen[string(b)]
	return ok
}

// eachSlot visits the values of a leaf, nulls left out, as long as visit wants more. It reports whether all were visited.
func eachSlot(from []Rows, leaf *leafColumn, visit func(v *rows.Vector, slot int) bool) bool {
	more := true
	w := walker{path: leaf.path, visit: func(v *rows.Vector, slot, _, _ int) {
		if more && slot >= 0 {
			more = visit(v, slot)
		}
	}}
	for _, r := range from {
		for k := 0; k < r.Len() && more; k++ {
			w.row(r.Table, r.row(k))
		}
	}
	return more
}
