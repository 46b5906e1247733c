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

// dictionaries returns one byte for each of the columns, 1 where it is to have a dictionary. The slice is valid until the
// next call.
func (s *sample) dictionaries(from []Rows, schema *rows.Schema, columns []int) []byte {
	if s.seen == nil {
		s.seen = make(map[string]struct{}, sampleMost)
	}
	s.key = s.key[:0]
	for _, c := range columns {
		repeats := schema.Column(c).Type.Kind == rows.String && short(from, c) && s.repeats(from, c)
		if repeats {
			s.key = append(s.key, 1)
		} else {
			s.key = append(s.key, 0)
		}
	}
	return s.key
}

// short reports whether no value is longer than a bound: the bounds of a column with a dictionary are whole values.
func short(from []Rows, col int) bool {
	for _, r := range from {
		ends := r.Table.Column(col).Ends
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

func (s *sample) repeats(from []Rows, col int) bool {
	clear(s.seen)
	n := 0
	for _, r := range from {
		v := r.Table.Column(col)
		for k := 0; k < r.Len() && n < sampleMost; k++ {
			i := k
			if r.Index != nil {
				i = int(r.Index[k])
			}
			if v.Valid[i] == 0 {
				continue
			}
			n++
			if b := v.Bytes(i); !s.has(b) {
				if 2*len(s.seen) > sampleMost {
					return false
				}
				s.seen[string(b)] = struct{}{}
			}
		}
	}
	return n >= sampleLeast && 2*len(s.seen) <= n
}

func (s *sample) has(b []byte) bool {
	_, ok := s.seen[string(b)]
	return ok
}
