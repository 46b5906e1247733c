package rows

import "strconv"

// step is one step of the path to a value: a field, an element of a list, or a key of a map.
type step struct {
	name string // of a field or a key
	at   int    // of an element
	kind Kind   // of what is stepped into; 0 for columns and fields
}

// outwards records that what does not fit lies in v, which is found by the step. It is called from the inside outwards.
func (t *Table) outwards(v *Vector, s step) {
	if len(t.path) == 0 {
		t.failed = v
	}
	t.path = append(t.path, s)
}

// structure reads an object into slot n of a struct.
func (t *Table) structure(v *Vector, b []byte, i, n int) (int, failure) {
	if b[i] != '{' {
		return i, wrongType(b, i)
	}
	if t.careful {
		return t.objectLast(v.record, b, i, n)
	}
	return t.object(v.record, b, i, n)
}

// list reads an array into slot n.
func (t *Table) list(v *Vector, b []byte, i, n int) (int, failure) {
	if b[i] != '[' {
		return i, wrongType(b, i)
	}
	elements := v.Children[0]
	at := i
	start := int(v.Ends[n])
	k := start
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		v.Ends[n+1] = uint32(k)
		return i + 1, failure{}
	}
	for {
		if k == maxData {
			return at, failure{tooLong, at}
		}
		elements.Reserve(k + 1)
		var fail failure
		if i, fail = t.value(elements, b, i, k); fail.code != fits {
			t.outwards(elements, step{at: k - start, kind: List})
			return i, fail
		}
		k++
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ',' && b[i] != ']' {
			return i, failure{notJSON, i}
		}
		i++
		if b[i-1] == ']' {
			v.Ends[n+1] = uint32(k)
			return i, failure{}
		}
	}
}

// mapping reads an object into slot n of a map: each key as a string that stands for a value of the key's type.
func (t *Table) mapping(v *Vector, b []byte, i, n int) (int, failure) {
	if b[i] != '{' {
		return i, wrongType(b, i)
	}
	keys, values := v.Children[0], v.Children[1]
	at := i
	start := int(v.Ends[n])
	k := start
	var seen keySet
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		v.Ends[n+1] = uint32(k)
		return i + 1, failure{}
	}
	for {
		if k == maxData {
			return at, failure{tooLong, at}
		}
		keys.Reserve(k + 1)
		values.Reserve(k + 1)
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != '"' {
			return i, failure{notJSON, i}
		}
		from := i
		var fail failure
		if i, fail = t.value(keys, b, i, k); fail.code == fits && !seen.add(keys, start, k) {
			fail = failure{duplicate, from}
		}
		if fail.code != fits {
			t.outwards(keys, step{name: excerpt(b, from), kind: Map})
			return i, fail
		}
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ':' {
			return i, failure{notJSON, i}
		}
		if i, fail = t.value(values, b, i+1, k); fail.code != fits {
			t.outwards(values, step{name: keyText(keys, k), kind: Map})
			return i, fail
		}
		k++
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ',' && b[i] != '}' {
			return i, failure{notJSON, i}
		}
		i++
		if b[i-1] == '}' {
			v.Ends[n+1] = uint32(k)
			return i, failure{}
		}
	}
}

// keySet finds the keys that a map has twice.
type keySet struct {
	many map[string]struct{}
	key  []byte
}

// fewKeys are compared one by one, which takes no memory.
const fewKeys = 8

// add reports whether the key in slot k differs from those from start on.
func (s *keySet) add(keys *Vector, start, k int) bool {
	if k-start < fewKeys {
		for i := start; i < k; i++ {
			if keys.equalSlots(i, k) {
				return false
			}
		}
		return true
	}
	if s.many == nil {
		s.many = make(map[string]struct{}, 4*fewKeys)
		for i := start; i < k; i++ {
			s.many[string(keys.AppendText(s.key[:0], i))] = struct{}{}
		}
	}
	s.key = keys.AppendText(s.key[:0], k)
	if _, ok := s.many[string(s.key)]; ok {
		return false
	}
	s.many[string(s.key)] = struct{}{}
	return true
}

// equalSlots compares two slots of a map's keys.
func (v *Vector) equalSlots(i, k int) bool {
	switch v.store {
	case inBools:
		return v.Bools[i] == v.Bools[k]
	case inI32:
		return v.I32[i] == v.I32[k]
	case inI64:
		return v.I64[i] == v.I64[k]
	case inWide:
		return v.Wide[i] == v.Wide[k]
	}
	return string(v.Bytes(i)) == string(v.Bytes(k))
}

// keyText shows the key of a map in a path.
func keyText(keys *Vector, slot int) string { return excerpt(keys.AppendJSON(nil, slot), 0) }

// appendPath writes steps as "a.b[3].m{\"key\"}".
func appendPath(dst []byte, path []step) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		switch s := path[i]; s.kind {
		case List:
			dst = append(strconv.AppendInt(append(dst, '['), int64(s.at), 10), ']')
		case Map:
			dst = append(append(append(dst, '{'), s.name...), '}')
		default:
			if len(dst) > 0 {
				dst = append(dst, '.')
			}
			dst = append(dst, s.name...)
		}
	}
	return dst
}
